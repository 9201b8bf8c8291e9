"""All leaves as one Lance dataset: the same rows as the scan's, or a refusal that says why."""

from __future__ import annotations

import json
import shutil
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.format.fragments import MOST_BYTES
from lancepart.format.records import FILES
from lancepart.format.rows import Row
from lancepart.read import union, union_sources
from lancepart.storage.cache import cache
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, RowUpdate, metadata_update
from lancepart.storage.root import Root
from tests.conformance.draft import appendix
from tests.conformance.draft.test_000_reading import branched
from tests.support import layouts
from tests.support.catalogs import Place
from tests.support.countries import SCHEMA, rows


def table_at(place: Place, **options: Any) -> lp.PartitionedTable:
    table = lp.create_table(place.root, SCHEMA, ["country"], storage_options=place.storage_options, **options)
    table.append(rows(0))
    table.append(rows(6))
    return table


def assert_same(table: lp.PartitionedTable, where: str | None = None) -> lance.LanceDataset:
    union = table.to_lance(where)
    found = union.to_table(blob_handling="all_binary").sort_by("id")
    assert found.to_pylist() == table.scan(where).to_arrow().sort_by("id").to_pylist()
    assert union.count_rows() == found.num_rows
    return union


@pytest.mark.slow
@pytest.mark.quick
def test_a_union_is_one_dataset_of_all_rows(place: Place) -> None:
    table = table_at(place)

    union = assert_same(table)

    assert isinstance(union, lance.LanceDataset)
    assert union.schema == table.schema
    assert sorted(union.scanner(filter="id IN (3, 7)", columns=["n"]).to_table()["n"].to_pylist()) == [6, 14]
    ids = union.to_table(with_row_id=True, filter="id = 5")["_rowid"].to_pylist()
    assert union._take_rows(ids).to_pylist() == [{"id": 5, "country": None, "n": 10}]


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_every_layout_gives_a_union(local: Place, layout: str) -> None:
    table = layouts.make(layout, local, SCHEMA, "country")
    table.append(rows(0))
    table.append(rows(6))
    table.delete("id = 4")

    assert_same(table)
    assert_same(table, "country = 'US'")
    assert_same(table, "country IS NULL AND n > 4 OR id = 1")


def test_rows_that_do_not_match_are_hidden_and_no_row_is_copied(local: Place) -> None:
    table = table_at(local)
    table.delete("id = 3")

    union = assert_same(table, "n >= 6 AND country <> 'FR'")

    assert all(file.base_id is not None for part in union.get_fragments() for file in part.metadata.files)
    assert table.to_lance("country = 'FR'").to_table()["country"].to_pylist() == ["FR"] * 4
    assert table.to_lance("n < 0").count_rows() == 0


def test_an_older_snapshot_is_a_union_too(local: Place) -> None:
    table = table_at(local)
    before, version = table.scan().to_arrow().sort_by("id"), table.version
    table.delete("country = 'US'")
    table.rename_column("n", "m")

    assert table.to_lance(version=version).to_table().sort_by("id") == before
    assert lp.open_table(local.root, version=version).to_lance().to_table().sort_by("id") == before
    assert table.to_lance().schema.names == ["id", "country", "m"]


def test_columns_are_matched_by_field_id(local: Place) -> None:
    table = table_at(local)
    table.rename_column("n", "old")
    table.add_column(pa.field("n", pa.string()))
    table.append([{"id": 20, "country": "US", "old": 1, "n": "text"}])
    table.drop_column("old")
    table.add_column(pa.field("old", pa.float64()))
    table.append([{"id": 21, "country": "JP", "n": "new", "old": 0.5}])

    union = assert_same(table)

    assert union.schema == table.schema
    assert_same(table, "old IS NULL AND n IS NOT NULL")


def test_a_widened_column_gets_a_file_of_the_unions_own(local: Place) -> None:
    table = table_at(local)
    table.delete("id = 0")
    table.widen_column("n", pa.int64())
    table.append([{"id": 20, "country": "JP", "n": 2**40}])

    union = assert_same(table)

    assert union.schema.field("n").type == pa.int64()
    own = {file.base_id is None for part in union.get_fragments() for file in part.metadata.files}
    assert own == {True, False}


def test_nested_columns_keep_what_is_inside_them(local: Place) -> None:
    inside = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    table = lp.create_table(
        local.root, pa.schema([("id", pa.int64()), ("s", inside), ("v", pa.list_(pa.float32(), 2))]), ["bucket(2, id)"]
    )
    table.append([{"id": n, "s": {"a": n, "b": [{"c": str(n)}]}, "v": [n, n]} for n in range(5)])
    table.rename_column("s", "t")
    table.add_column(pa.field("s", pa.map_(pa.string(), pa.int8())))
    table.append([{"id": 9, "t": None, "v": None, "s": [("k", 1)]}])

    union = assert_same(table)

    assert union.to_table(columns={"c": "t.a"}, filter="t.a = 3")["c"].to_pylist() == [3]


def test_names_that_lance_can_not_have_are_spelled_otherwise(local: Place) -> None:
    table = lp.create_table(local.root, pa.schema([("id", pa.int64()), ("a.b", pa.string())]), ["bucket(2, id)"])
    table.append([{"id": 1, "a.b": "x"}])

    assert table.to_lance().to_table().to_pylist() == [{"id": 1, "a%2Eb": "x"}]


BLOBS = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


@pytest.mark.parametrize("own_type", [False, True])
def test_blobs_are_read_where_they_are(local: Place, own_type: bool) -> None:
    values = [b"small", b"x" * 300_000, None, b""]
    field, array = BLOBS, pa.array(values, pa.large_binary())
    if own_type:
        field, array = lance.blob_field("b"), lance.blob_array(values)
    schema = pa.schema([("id", pa.int64()), field])
    table = lp.create_table(local.root, schema, ["bucket(2, id)"])
    table.append(pa.table([range(4), array], schema=schema))
    table.append(pa.table([[9], array.slice(0, 1)], schema=schema))
    table.delete("id = 0")

    union = table.to_lance()

    found = union.to_table(columns=["id", "b"], blob_handling="all_binary").sort_by("id")
    assert found["b"].to_pylist() == [b"x" * 300_000, None, b"", b"small"]
    place = union.to_table(columns=[], filter="id = 1", with_row_id=True)["_rowid"].to_pylist()
    assert union.take_blobs("b", ids=place)[0].read() == b"x" * 300_000


def test_an_empty_table_is_an_empty_dataset(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"])

    assert table.to_lance().to_table() == SCHEMA.empty_table()
    table.append(rows(0))
    table.delete("true")
    assert table.to_lance().to_table() == SCHEMA.empty_table()


def test_a_leaf_read_at_a_branch_names_the_files_of_its_parent(local: Place) -> None:
    version = branched(local)
    appendix.write_manifest(local.root, appendix.appendix_c(v1={"read_version": version, "read_branch": "dev"}))
    table = lp.open_table(local.root)

    found = table.to_lance().to_table()

    assert 77 in found["id"].to_pylist()
    assert sorted(found.to_pylist(), key=repr) == sorted(table.scan().to_arrow().to_pylist(), key=repr)


def leaf_of(table: lp.PartitionedTable, where: str) -> str:
    (leaf,) = table.scan(where).plan().leaves
    return f"{table.root}/{leaf.location}"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_leaves_in_other_file_formats_stand_beside_each_other(local: Place, version: str) -> None:
    table = table_at(local, transactions="weak")
    uri = leaf_of(table, "country = 'US'")
    lance.write_dataset(lance.dataset(uri).to_table(), uri, mode="overwrite", data_storage_version=version)

    assert_same(table)


def test_files_of_the_oldest_format_are_refused(local: Place) -> None:
    table = table_at(local, transactions="weak")
    uri = leaf_of(table, "country = 'US'")
    lance.write_dataset(lance.dataset(uri).to_table(), uri, mode="overwrite", data_storage_version="legacy")

    with pytest.raises(UnsupportedOperationError, match=r"leaf 'v1.* can't be in a union: its files have the format"):
        table.to_lance()
    assert table.to_lance("country = 'FR'").count_rows() == 4


def test_fragments_of_several_data_files_and_columns_in_another_order(local: Place) -> None:
    table = table_at(local, transactions="weak")
    table.drop_column("n")
    table.add_column(pa.field("extra", pa.string()))
    uri = leaf_of(table, "country = 'US'")
    lance.dataset(uri).drop_columns(["n"])
    lance.dataset(uri).add_columns({"extra": "concat('e', cast(id as string))"})

    union = assert_same(table)

    assert union.to_table(filter="extra = 'e6'")["id"].to_pylist() == [6]


def test_stable_row_ids_of_a_leaf_do_not_matter(local: Place) -> None:
    table = table_at(local, transactions="weak")
    uri = leaf_of(table, "country = 'US'")
    data = lance.dataset(uri).to_table()
    lance.write_dataset(data, uri + "x", enable_stable_row_ids=True).delete("id = 3")
    shutil.rmtree(uri)
    shutil.move(uri + "x", uri)

    assert_same(table)


def test_a_filter_on_what_does_not_exist_is_refused(local: Place) -> None:
    with pytest.raises(InvalidInputError, match="nothing"):
        table_at(local).to_lance("nothing = 1")


@pytest.mark.slow
def test_leaves_that_did_not_change_are_not_opened_again(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    table.delete("id = 5")
    first = assert_same(table)
    looked_at: list[str] = []
    plain = union_sources.open_source

    def noted(task: Any, opener: Any) -> Any:
        looked_at.append(task.leaf.values[0])
        return plain(task, opener)

    monkeypatch.setattr(union_sources, "open_source", noted)
    assert_same(table)
    assert looked_at == []
    table.append([{"id": 20, "country": "JP", "n": 1}, {"id": 21, "country": "FR", "n": 1}])
    assert_same(table)
    assert looked_at == [], "the manifest records the fragments of what changed"
    table.add_column(pa.field("more", pa.string()))
    table.append([{"id": 22, "country": "JP", "n": 1, "more": "x"}, {"id": 23, "country": "IT", "n": 1, "more": "y"}])
    assert_same(table)
    assert len(looked_at) == 2, "one leaf with the older columns, one with those of now"

    assert_same(table, "country = 'US'")
    assert_same(table, "country = 'US' AND n > 6")
    first.delete("country = 'US'")
    assert_same(table)
    assert first.count_rows() < 12
    lp.config.cache_bytes = lp.config.cache_bytes
    looked_at.clear()
    assert_same(table)
    assert len(looked_at) == 2


@pytest.mark.slow
def test_what_is_kept_of_unions_is_counted_and_bounded(local: Place) -> None:
    table = table_at(local)
    lp.config.cache_bytes = 1 << 20
    try:
        table.to_lance()
        held = cache.held_bytes
        table.append([{"id": 20 + n, "country": f"c{n}", "n": 1} for n in range(20)])
        table.to_lance()
        assert held < cache.held_bytes <= 1 << 19
        table.append([{"id": 100 + n, "country": f"d{n}", "n": 1} for n in range(300)])
        assert_same(table)
        assert cache.held_bytes <= 1 << 19
    finally:
        lp.config.cache_bytes = 1 << 30


def manifest_of(table: lp.PartitionedTable) -> Manifest:
    return Manifest(Root.parse(table.root))


def version_row(table: lp.PartitionedTable, leaf: Any) -> Row:
    row = manifest_of(table).snapshot().row(f"{leaf.object_id}${leaf.number}")
    assert row is not None
    return row


def test_leaves_are_not_opened_in_another_process_either(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    table.delete("id = 5")
    table.maintenance.compact()
    looked_at: list[str] = []
    plain = union_sources.open_source
    monkeypatch.setattr(
        union_sources,
        "open_source",
        lambda task, opener: [looked_at.append(task.leaf.object_id), plain(task, opener)][1],
    )
    for _ in range(2):
        lp.config.cache_bytes = lp.config.cache_bytes
        assert_same(lp.open_table(local.root))
    assert len(looked_at) == 2, "one leaf each time"


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        "text",
        {"version": 1, "shape": "0" * 32, "kinds": [], "fragments": []},
        {"version": 1, "shape": "x", "kinds": [[2, 0, "0:2", "0:2"]], "fragments": [[0, 1, [["../../a.lance", 1, 0]]]]},
        {"version": 1, "shape": "0" * 32, "kinds": [[2, 0, "0:9999999999", "0"]], "fragments": []},
    ],
)
def test_a_record_that_is_not_understood_is_not_used(local: Place, damaged: Any) -> None:
    table = table_at(local)
    for leaf in table.scan().plan().leaves:
        row = version_row(table, leaf)
        assert row.metadata is not None
        assert FILES in row.metadata
        change = metadata_update(row.object_id, {**row.metadata, FILES: damaged})
        manifest_of(table).transact(lambda snapshot, retry, change=change: (Change(updates=(change,)), None))
    lp.config.cache_bytes = lp.config.cache_bytes

    assert_same(lp.open_table(local.root))


def test_a_record_counts_for_its_own_version_alone(local: Place) -> None:
    """A client that moves a leaf's version without a record of it is followed."""
    table = table_at(local)
    (leaf,) = table.scan("country = 'US'").plan().leaves
    (past,) = lp.open_table(local.root, version=table.version - 1).scan("country = 'US'").plan().leaves
    assert past.read_version != leaf.read_version
    row = version_row(table, leaf)
    change = RowUpdate(object_id=row.object_id, values={"read_version": past.read_version})
    pointer = RowUpdate(object_id=leaf.object_id, values={"read_version": past.read_version})
    manifest_of(table).transact(lambda snapshot, retry: (Change(updates=(change, pointer)), None))
    lp.config.cache_bytes = lp.config.cache_bytes

    again = lp.open_table(local.root)
    assert assert_same(again).count_rows() == 12 - 2


@pytest.mark.slow
def test_leaves_with_many_fragments_are_opened(local: Place) -> None:
    table = table_at(local)
    for number in range(40):
        table.append([{"id": 100 + number, "country": "US", "n": number}])
    (leaf,) = table.scan("country = 'US'").plan().leaves
    (few,) = table.scan("country = 'FR'").plan().leaves

    assert FILES not in (version_row(table, leaf).metadata or {})
    assert len(json.dumps((version_row(table, few).metadata or {})[FILES])) <= MOST_BYTES
    assert_same(table)


def test_a_fragment_that_indices_know_with_different_deletions_is_covered_by_none() -> None:
    whole, fewer = "leaf a.lance", "leaf a.lance without 3-7"
    known = {whole: 5, fewer: 5, "leaf b.lance": 6}

    numbers = union.Numbers(known)
    assert [numbers.of((whole, fewer)), numbers.of(("leaf b.lance",) * 2)] == [5, 6]
    assert union.Numbers(known).of((whole, whole)) == 7
    assert union.Numbers({whole: 5}).of((whole, fewer)) == 5
