"""The page that maps document 003 to the tests names tests that exist, and all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "conformance-hive.md"


def _named() -> set[tuple[str, str]]:
    found, module = set(), ""
    for line in PAGE.read_text().splitlines():
        above = re.search(r"^Tests in `tests/conformance/hive/(test_\w+)\.py`", line)
        module = above.group(1) if above else module
        found |= {(module, test) for test in re.findall(r"`(test_\w+)`", line)}
    return found


def _written() -> set[tuple[str, str]]:
    return {
        (path.stem, node.name)
        for path in HERE.glob("test_003_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_the_page_names_every_test_and_no_other() -> None:
    assert _named() == _written()


def test_every_file_that_the_page_points_to_exists() -> None:
    pointed = re.findall(r"`(tests/[\w/.]+)`", PAGE.read_text())

    assert [path for path in pointed if not (HERE.parents[2] / path).exists()] == []
