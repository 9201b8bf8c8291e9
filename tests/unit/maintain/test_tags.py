"""Names of snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance.dataset import Tags

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.maintain.tags import hold
from lancepart.model.snapshot_text import number_or_tag
from lancepart.spark.source import wanted_version


def test_a_tag_does_not_read_as_a_number(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidInputError, match="snapshot's number: use another, such as 'v2026'"):
        table.tags.create("2026", table.version)
    assert table.tags.list() == {}
    table.tags.create("2026-01", table.version)
    hold(table._manifest, "2026", table.version)
    assert lp.open_table(table.root, version="2026").version == table.version
    table.tags.delete("2026")
    assert list(table.tags.list()) == ["2026-01"]


def test_tags_are_read_again_when_one_is_deleted_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.tags.create("kept", table.version)
    listed, failures = Tags.list, [True, True]

    def listing(self: Tags) -> dict[str, Any]:
        if failures and failures.pop():
            raise ValueError("Not found: __manifest/_refs/tags/gone.json")
        return listed(self)

    monkeypatch.setattr(Tags, "list", listing)
    assert table.tags.list() == {"kept": table.version}
    assert not failures


def test_texts_are_numbers_or_tags() -> None:
    assert [number_or_tag(text) for text in ("7", "v7", "²", "1" * 30)] == [7, "v7", "²", "1" * 30]
    assert wanted_version({"versionAsOf": "²"}) == "²"
