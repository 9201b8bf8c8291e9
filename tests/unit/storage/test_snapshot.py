"""One version of the manifest, and what is remembered of it."""

from __future__ import annotations

import pytest

from lancepart.format.names import NAMESPACE, TABLE
from lancepart.format.rows import Row
from lancepart.storage import snapshot as snapshots
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change
from lancepart.storage.root import Root
from tests.support.catalogs import Place


@pytest.fixture
def manifest(local: Place) -> Manifest:
    found = Manifest(Root.parse(local.root))
    rows = tuple(Row(object_id=name, object_type=NAMESPACE) for name in ("a", "b'c", "d"))
    leaf = Row(object_id="a$t", object_type=TABLE, location="x/t")
    found.transact(lambda snapshot, retry: (Change(inserts=(*rows, leaf)), None))
    return found


def test_names_with_quotes_are_found(manifest: Manifest) -> None:
    found = manifest.snapshot()
    assert snapshots.literal("b'c") == "'b''c'"
    assert found.row("b'c").object_id == "b'c"
    assert set(found.rows(["b'c", "d", "none"])) == {"b'c", "d"}
    assert found.names("", NAMESPACE, after="a") == ["b'c", "d"]


def test_rows_of_many_ids_come_as_one_table(manifest: Manifest) -> None:
    found = manifest.snapshot()
    assert sorted(found.table_of(["a", "d", "none"]).column("object_id").to_pylist()) == ["a", "d"]
    assert found.ids("a", TABLE) == ["a$t"]
    assert [row.object_id for row in found.overlapping("x/t/inside")] == ["a$t"]


def test_a_handle_to_write_with_leaves_the_snapshot_where_it_is(manifest: Manifest) -> None:
    found = manifest.snapshot()
    handle = found.own_handle()
    handle.delete("object_id = 'd'")

    assert handle.version > found.version
    assert found.row("d") is not None
    assert found.age >= 0
