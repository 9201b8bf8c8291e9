"""The examples of the pages about Spark run, in the session of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import DOCS, ON_SPARK, README, run_page
from tests.support.tiers import slow


@pytest.mark.parametrize("name", ["spark.md", *map(slow, sorted(ON_SPARK - {"spark.md"}))])
def test_the_examples_of_a_page_run(name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / name)


@pytest.mark.slow
def test_the_examples_of_the_readme_run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(README)
