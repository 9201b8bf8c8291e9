"""The examples of the documentation run: the Python blocks of a page in order, in one namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import DOCS, ON_SPARK, README, run_page

PAGES = sorted(page for page in DOCS.rglob("*.md") if "```python" in page.read_text() and page.name not in ON_SPARK)
PAGES.append(README)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, on_spark=False)
