"""The page that maps the documents to the tests names tests that exist, and all of them."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance-catalog.md"


def named() -> set[tuple[str, str]]:
    """The tests that the page names, each with its module: the one named above it, or before ``::``."""
    found, module = set(), ""
    for line in PAGE.read_text().splitlines():
        above = re.search(r"`tests/conformance/catalog/(test_\w+)\.py`", line)
        module = above.group(1) if above else module
        found |= {(other or module, test) for other, test in re.findall(r"`(?:(test_\w+)::)?(test_\w+)`", line)}
    return found


def written() -> set[tuple[str, str]]:
    """The tests that there are, each with its module."""
    return {
        (path.stem, node.name)
        for path in (HERE / "catalog").glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_the_page_names_exists() -> None:
    assert named() - written() == set()


def test_every_conformance_test_of_the_catalog_stands_on_the_page() -> None:
    assert written() - named() == set()
