"""The examples of the documentation run, the Python blocks of a page in one namespace, or it is said why not."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import DOCS, NOT_RUN, ON_SPARK, README, run_page

PAGES = sorted(page for page in DOCS.rglob("*.md") if "```python" in page.read_text() and page.name not in ON_SPARK)
PAGES.append(README)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, on_spark=False)


def blocks() -> list[tuple[str, str, str]]:
    """The code of all pages: the page, the language, the text."""
    found = []
    for page in (README, *sorted(DOCS.rglob("*.md"))):
        name = page.name if page == README else page.relative_to(DOCS).as_posix()
        for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            found.append((name, language, text))
    return found


def test_all_code_runs_or_has_a_reason_why_not() -> None:
    run = {(name, language) for name, language, _ in blocks() if language == "python"}
    run |= {("README.md", "bash"), ("cli.md", "bash")}
    assert {(name, language) for name, language, _ in blocks() if language != "text"} - run == set(NOT_RUN)
    named = {path for reason in NOT_RUN.values() for path in re.findall(r"tests/[\w/]+(?:\.py)?", reason)}
    assert not [path for path in named if not (README.parent / path).exists()]


@pytest.mark.parametrize(("name", "language"), sorted(NOT_RUN))
def test_what_does_not_run_is_well_formed(name: str, language: str) -> None:
    for text in [each for *where, each in blocks() if where == [name, language]]:
        if language == "py":
            compile(text, name, "exec")
        elif language == "sh":
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        elif language == "toml":
            tomllib.loads(text)
