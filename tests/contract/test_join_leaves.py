"""Joins of the older layouts read the leaves that scans read, and no others."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import UnsupportedOperationError
from tests.conformance.draft import appendix
from tests.conformance.draft.appendix import LOCATIONS, V1_LEAF, ids
from tests.conformance.hive import trees
from tests.support.catalogs import Place


def test_a_join_reads_a_leaf_at_its_read_tag(local: Place) -> None:
    appendix.write_leaves(local.root)
    lance.dataset(f"{local.root}/{LOCATIONS[V1_LEAF]}").tags.create("old", 2)
    appendix.write_manifest(local.root, appendix.appendix_c(v1={"read_tag": "old"}))
    table = lp.open_table(local.root)

    joined = table.join(table, on=["event_date", "country"], how="semi")

    assert sorted(joined.to_arrow()["id"].to_pylist()) == ids(table) == [1, 2, 11, 12, 13]


def test_a_leaf_that_names_no_version_is_not_read_in_the_past(local: Place) -> None:
    appendix.write_leaves(local.root)
    appendix.write_manifest(local.root, appendix.appendix_c(v1={}))
    table = lp.open_table(local.root)
    assert len(ids(table)) == 9

    with pytest.raises(UnsupportedOperationError, match="names no read_version"):
        table.scan(version=table.version)
    with pytest.raises(UnsupportedOperationError, match="names no read_version"):
        table.tags.create("now", table.version)


def test_hashes_of_an_unknown_kind_are_no_ground_for_a_join(local: Place) -> None:
    hashed = trees.properties([{"name": "country", "function": "hash"}])
    rows = pa.table({"id": pa.array([1]), "event_date": pa.nulls(1, pa.date32()), "country": ["US"]})
    places = []
    for number, digest in enumerate(("0123456789abcdef", "fedcba9876543210")):
        root, path = f"{local.root}/{number}", f"country_hash={digest}"
        trees.write_tree(root, {path: rows})
        trees.write_manifest(root, [path], hashed)
        places.append(lp.open_table(root))

    join = places[0].join(places[1], on=["country"])
    assert "can't be joined partition by partition" in join.explain()
    assert join.count() == 1


def test_hashes_of_values_of_two_types_are_no_ground_for_a_join(local: Place) -> None:
    left, right = (
        lp.create_table(
            f"{local.root}/{unit}", pa.schema([("d", pa.duration(unit)), ("n", pa.int32())]), ["hash(d)"], layout="hive"
        )
        for unit in ("s", "ms")
    )
    left.append(pa.table({"d": pa.array([1], pa.duration("s"))}))
    right.append(pa.table({"d": pa.array([1000], pa.duration("ms"))}))

    assert "differ in type" in left.join(right, on=["d"]).explain()
    assert left.join(right, on=["d"]).count() == 1
    assert left.join(left, on=["d"]).to_arrow().num_rows == 1
