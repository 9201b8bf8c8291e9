"""The examples of the documentation run, the Python blocks of a page in one namespace, or it is said why not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import DOCS, NOT_RUN, ON_SPARK, README, run_page

PAGES = sorted(page for page in DOCS.rglob("*.md") if "```python" in page.read_text() and page.name not in ON_SPARK)
PAGES.append(README)


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, on_spark=False)


IMPORTING = {"engines.md", "sql.md"}
"""Pages whose examples import an optional library by its name."""
FIRST = {"tutorial.md"}
ALONE = """
import os, sys, tempfile
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "duckdb", "matplotlib", "pyspark"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from tests.support.pages import run_page
for page in sys.argv[1:]:
    os.chdir(tempfile.mkdtemp(dir=os.environ["PAGES"]))
    run_page(Path(page), on_spark=False)
"""


@pytest.mark.parametrize("names", [FIRST, pytest.param(None, marks=pytest.mark.slow)], ids=["first", "all"])
def test_the_examples_need_no_more_than_the_wheel_brings(names: set[str] | None, tmp_path: Path) -> None:
    pages = [page for page in PAGES if page.name not in IMPORTING and (names is None or page.name in names)]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *map(str, pages)],
        env={**os.environ, "PYTHONPATH": str(README.parent), "PAGES": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]


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
