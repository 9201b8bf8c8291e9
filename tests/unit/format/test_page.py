"""The page on the format names every key that stands on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancepart.format import names, records

PAGE = Path(__file__).parents[3] / "docs" / "format.md"
KEYS = {
    value
    for module in (names, records)
    for value in vars(module).values()
    if isinstance(value, str)
    and value.startswith(("lancepart.", "lancepart:"))
    and not value.startswith("lancepart.format.")
}


@pytest.mark.parametrize("key", sorted(KEYS - {names.OWN}))
def test_every_key_is_on_the_page(key: str) -> None:
    assert f"`{key}" in PAGE.read_text()
