"""Versions of leaves that are kept open: commits use them, and keep what they make of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.storage import leaf_handle, open_leaves
from lancepart.storage.cache import cache

SCHEMA = pa.schema([("id", pa.int64()), ("tenant", pa.string()), ("v", pa.list_(pa.float32(), 2))])


def _rows(*ids: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": at, "tenant": "a", "v": [at, at]} for at in ids], schema=SCHEMA)


def _ids(table: lp.PartitionedTable) -> list[int]:
    return [row["id"] for row in table.search([0.0, 0.0], k=50, columns=["id"]).to_list()]


def test_an_append_to_a_leaf_that_is_kept_open_opens_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(_rows(1, 2))
    assert _ids(table) == [1, 2]
    opened: list[object] = []
    real = leaf_handle.leaf_dataset

    def counted(*args: object, **options: object) -> object:
        opened.append(args)
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(leaf_handle, "leaf_dataset", counted)
    table.append(_rows(3))
    table.append(_rows(4))

    assert _ids(table) == [1, 2, 3, 4]
    assert opened == []


def test_what_is_not_kept_open_is_not_kept_by_a_commit(tmp_path: Path) -> None:
    cache.clear()
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(_rows(1))
    table.append(_rows(2))
    (leaf,) = table.scan().plan().leaves

    assert open_leaves.kept_leaf(table.scan().root, leaf.location, leaf.read_version) is None
    assert open_leaves.kept_leaf(table.scan().root, leaf.location, None) is None


def test_another_process_may_commit_between(tmp_path: Path) -> None:
    """A table of its own stands for another process: it keeps nothing of what the first one has open."""
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(_rows(1))
    assert _ids(table) == [1]
    first = table.version
    table.append(_rows(2))
    lp.open_table(tmp_path / "t").overwrite(_rows(7), "tenant = 'a'")
    table.append(_rows(8))

    assert _ids(table) == [7, 8]
    assert [row["id"] for row in table.search([0.0, 0.0], version=first, columns=["id"]).to_list()] == [1]
