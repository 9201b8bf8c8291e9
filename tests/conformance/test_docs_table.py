"""The pages that map the documents to the tests name tests that exist, and all of them."""

from __future__ import annotations

import pytest

from tests.support import mapped

PAGES = {
    "conformance-catalog.md": ("tests/conformance/catalog", "test_*.py"),
    "conformance-partitioning.md": ("tests/conformance/partitioned", "test_002_*.py"),
    "conformance-hive.md": ("tests/conformance/hive", "test_003_*.py"),
    "conformance-draft.md": ("tests/conformance/draft", "test_000_*.py"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_every_test_and_no_other(page: str) -> None:
    folder, files = PAGES[page]

    assert mapped.named(page, folder) == mapped.written(folder, files)
    assert mapped.written(folder, files)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_points_to_exists(page: str) -> None:
    assert mapped.missing(page) == []
