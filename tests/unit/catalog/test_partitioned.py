"""A catalog whose root is a partitioned table."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.catalog import partitioned
from lancepart.errors import UnsupportedOperationError
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from tests.support.catalogs import Place


@pytest.fixture
def manifest(local: Place) -> Manifest:
    table = lp.create_table(local.root, pa.schema([("k", pa.int64())]), ["k"])
    table.append([{"k": 1}])
    table.append([{"k": 1}])
    return Manifest(Root.parse(local.root))


def test_a_root_with_a_spec_is_a_partitioned_table_and_owns_its_levels(manifest: Manifest) -> None:
    snapshot = manifest.snapshot()
    assert partitioned.is_partitioned(snapshot.properties)
    assert partitioned.is_strong(snapshot)
    assert partitioned.owns(snapshot, ["v1"])
    assert not partitioned.owns(snapshot, ["other"])
    with pytest.raises(UnsupportedOperationError, match="append"):
        partitioned.refuse_owned(snapshot, ["v1", "x"], "append")


def test_a_leaf_is_read_at_the_version_that_was_published_last(manifest: Manifest) -> None:
    snapshot = manifest.snapshot()
    (leaf,) = [row for row in snapshot.below("v1") if row.object_type == "table"] or [
        snapshot.row(each) for each in snapshot.scan("object_type = 'table'").column("object_id").to_pylist()
    ]
    current = partitioned.published(snapshot, leaf)
    first = partitioned.numbered(snapshot, leaf, 1)

    assert current.number == 2
    assert first is not None
    assert (first.number, first.version == current.version) == (1, False)
    assert partitioned.numbered(snapshot, leaf, 99) is None


def test_a_plain_catalog_is_none(local: Place) -> None:
    local.catalog().set_root_properties({"a": "b"})
    snapshot = Manifest(Root.parse(local.root)).snapshot()
    assert not partitioned.is_partitioned(snapshot.properties)
    assert not partitioned.is_strong(snapshot)
