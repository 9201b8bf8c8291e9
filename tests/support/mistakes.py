"""What the answer to a mistake must be like."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from lancepart import PartitionedTable
from lancepart.errors import LanceNamespaceError


def answered(act: Callable[[], object], words: Sequence[str]) -> None:
    """A mistake raises an error of the project, short and without insides, that has all words."""
    with pytest.raises(LanceNamespaceError) as raised:
        act()

    text = str(raised.value)
    assert not [word for word in words if word.lower() not in text.lower()], text
    assert len(text) < 1500
    assert "Traceback" not in text
    assert ".rs:" not in text


def answered_unchanged(table: PartitionedTable, act: Callable[[], object], words: Sequence[str]) -> None:
    """The same of a mistake beside a table, which stays as it is."""
    before = table.version
    answered(act, words)
    assert table.version == before
