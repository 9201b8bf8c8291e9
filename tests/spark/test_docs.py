"""The examples of the pages about Spark run: in the session of the tests, or in a process and a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import DOCS, ON_SPARK, README, run_page
from tests.support.tiers import slow


@pytest.mark.parametrize(
    "name", ["spark.md", *map(slow, sorted(ON_SPARK - {"spark.md", "tutorial-spark.md"})), slow("search.md")]
)
def test_the_examples_of_a_page_run(name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / name)


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, DOCS / "tutorial-spark.md", DOCS / "install.md"], ids=lambda page: page.name)
def test_the_examples_run_in_an_empty_folder(page: Path, tmp_path: Path) -> None:
    """Their relative paths are those of Spark, whose process keeps the folder that it was started in."""
    code = f"from pathlib import Path; from tests.support.pages import run_page; run_page(Path({str(page)!r}))"
    environment = {**os.environ, "PYTHONPATH": str(README.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=False, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
