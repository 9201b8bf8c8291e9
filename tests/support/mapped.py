"""Pages that map a document to the tests: what they name, and what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

Tests = set[tuple[str, str]]


def named(page: str, folder: str) -> Tests:
    """The tests that a page names, each with its module: the one named above it, or before ``::``."""
    found: Tests = set()
    module = ""
    for line in _text(page).splitlines():
        above = re.search(rf"`{folder}/(test_\w+)\.py`", line)
        module = above.group(1) if above else module
        found |= {(other or module, test) for other, test in re.findall(r"`(?:(test_\w+)::)?(test_\w+)`", line)}
    return found


def written(folder: str, files: str) -> Tests:
    """The tests that there are, each with its module."""
    return {
        (path.stem, node.name)
        for path in (ROOT / folder).glob(files)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing(page: str) -> list[str]:
    """The files that a page points to and that are not there."""
    return [path for path in re.findall(r"`(tests/[\w/.]+)`", _text(page)) if not (ROOT / path).exists()]


def _text(page: str) -> str:
    return (ROOT / "docs" / page).read_text()
