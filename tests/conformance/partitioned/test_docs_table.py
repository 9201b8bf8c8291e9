"""The page that maps document 002 to the tests names tests that exist, and all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "conformance-partitioning.md"


def _named() -> set[tuple[str, str]]:
    found, module = set(), ""
    for line in PAGE.read_text().splitlines():
        above = re.search(r"^Tests in `tests/conformance/partitioned/(test_\w+)\.py`", line)
        module = above.group(1) if above else module
        found |= {(module, test) for test in re.findall(r"`(test_\w+)`", line)}
    return found


def _written() -> set[tuple[str, str]]:
    return {
        (path.stem, node.name)
        for path in HERE.glob("test_002_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_the_page_names_exists() -> None:
    assert _named() - _written() == set()


def test_every_conformance_test_of_partitioned_tables_stands_on_the_page() -> None:
    assert _written() - _named() == set()


def test_every_file_that_the_page_points_to_exists() -> None:
    pointed = re.findall(r"`(tests/[\w/.]+)`", PAGE.read_text())

    assert [path for path in pointed if not (HERE.parents[2] / path).exists()] == []
