"""Upgrades: the same rows afterwards, the old table until the swap, and nothing done twice."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, ListNamespacesRequest

import lancepart as lp
from lancepart.errors import (
    ConcurrentModificationError,
    InternalError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.maintain import upgrade_copy, upgrade_draft, upgrade_hive
from lancepart.maintain.fingerprint import Fingerprint, fingerprint
from lancepart.model.transforms import Bucket, Identity, Truncate, Year
from tests.conformance.draft import appendix
from tests.conformance.hive import trees
from tests.support.catalogs import Place

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("at", pa.time64("us")),
        ("deep", pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))])),
    ]
)


def some_rows(count: int = 60, first: int = -30) -> pa.Table:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return pa.Table.from_pylist(
        [
            {
                "id": number,
                "ts": start + timedelta(days=9 * number),
                "name": None if number % 7 == 0 else f"n{number % 3}",
                "at": time(number % 24, 5),
                "deep": {"a": number % 5, "b": [str(number)] * (number % 3)} if number % 4 else None,
            }
            for number in range(first, first + count)
        ],
        schema=SCHEMA,
    )


def hive_table(place: Place, partition_by: list[str]) -> lp.PartitionedTable:
    table = lp.create_table(place.root, SCHEMA, partition_by, layout="hive", storage_options=place.storage_options)
    table.append(some_rows())
    return table


def test_a_hive_tree_becomes_a_table_with_the_same_rows(place: Place) -> None:
    hive_table(place, ["year(ts)", "bucket(4, id)", "truncate(id, 20)", "hash(name)", "hour(at)"])

    table = lp.upgrade(place.root, storage_options=place.storage_options)

    assert table.metadata.layout == "manifest"
    assert table.scan().to_arrow().sort_by("id") == some_rows().sort_by("id")
    assert [field.transform for field in table.spec.fields][:3] == [Year(), Bucket(4), Truncate(20)]
    assert [field.expression for field in table.spec.fields][3:] == [
        "lpad(to_hex(murmur3(col0) & 4294967295), 8, '0')",
        "date_part('hour', col0)",
    ]
    assert table.scan("id = 5 AND name = 'n2'").count() == 1
    assert table.append(some_rows(3, first=100)) is not None
    again = lp.open_table(place.root, storage_options=place.storage_options)
    assert again.scan().count() == 63
    assert again.version == table.version


def test_identity_columns_are_in_the_leaves_afterwards(local: Place) -> None:
    trees.write_events(local.root)

    table = lp.upgrade(local.root)

    assert [field.transform for field in table.spec.fields] == [Identity(), Identity()]
    leaf = table.scan("country = 'FR'").plan().leaves[0]
    assert lance.dataset(f"{local.root}/{leaf.location}").schema.names == ["id", "event_date", "country"]
    assert len(table.scan("event_date = '2025-12-11' AND country != 'FR'").plan().leaves) == 1


def test_the_old_tree_stays_until_told_otherwise(local: Place) -> None:
    trees.write_events(local.root)
    lp.upgrade(local.root)
    old = f"{local.root}/event_date=2025-12-10/country=US.lance"

    assert lance.dataset(old).count_rows() == 2
    assert "event_date=2025-12-10" in local.catalog().list_namespaces(ListNamespacesRequest(id=[])).namespaces
    table = lp.upgrade(local.root, remove_old=True)

    assert not os.path.exists(f"{local.root}/event_date=2025-12-10")
    assert local.catalog().list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["v1"]
    assert trees.ids(table) == [1, 2, 3, 4, 5, 6]
    assert lp.upgrade(local.root, remove_old=True).version == table.version


def test_a_handle_of_the_old_tree_says_that_it_is_over(local: Place) -> None:
    trees.write_events(local.root)
    old = lp.open_table(local.root)
    lp.upgrade(local.root)

    with pytest.raises(TableNotFoundError, match="open it again"):
        old.append([{"id": 7}])
    with pytest.raises(TableNotFoundError, match="open it again"):
        old.scan()


def test_a_table_inside_a_larger_catalog_gets_a_root_of_its_own(local: Place) -> None:
    path = ("sales", "my_partitioned_table")
    trees.write_events(local.root, namespace=path)

    table = lp.upgrade(local.root, namespace=path)

    assert table.root == f"{local.root}/sales/my_partitioned_table"
    assert trees.ids(lp.open_table(local.root, namespace=path)) == [1, 2, 3, 4, 5, 6]
    assert trees.ids(lp.open_table(table.root)) == [1, 2, 3, 4, 5, 6]
    lp.upgrade(local.root, namespace=path, remove_old=True)
    assert not os.path.exists(f"{table.root}/event_date=2025-12-10")
    assert trees.ids(lp.open_table(local.root, namespace=path)) == [1, 2, 3, 4, 5, 6]


def test_an_upgrade_of_what_is_current_changes_nothing(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["name"])
    table.append(some_rows(5))

    assert lp.upgrade(local.root).version == table.version


def test_what_is_no_table_can_not_be_upgraded(local: Place) -> None:
    with pytest.raises(TableNotFoundError):
        lp.upgrade(local.root)


def test_what_stands_where_the_new_table_would_be_is_left_alone(local: Place) -> None:
    trees.write_events(local.root)
    local.catalog().create_namespace(CreateNamespaceRequest(id=["v1"]))
    local.catalog().create_namespace(CreateNamespaceRequest(id=["v1", "precious"]))

    with pytest.raises(TableAlreadyExistsError, match="'v1' of its own"):
        lp.upgrade(local.root)

    assert local.catalog().list_namespaces(ListNamespacesRequest(id=["v1"])).namespaces == ["precious"]
    assert trees.ids(lp.open_table(local.root)) == [1, 2, 3, 4, 5, 6]


def test_other_objects_of_the_catalog_stay(local: Place) -> None:
    trees.write_events(local.root)
    local.catalog().create_namespace(CreateNamespaceRequest(id=["other"]))
    lance.write_dataset(pa.table({"x": [1]}), f"{local.root}/users.lance")

    table = lp.upgrade(local.root, remove_old=True)

    assert local.catalog().list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["other", "v1"]
    assert lance.dataset(f"{local.root}/users.lance").count_rows() == 1
    assert trees.ids(table) == [1, 2, 3, 4, 5, 6]


def test_a_hash_of_nested_values_has_nothing_like_it(local: Place) -> None:
    hive_table(local, ["hash(deep)"])

    with pytest.raises(UnsupportedOperationError, match="deep_hash"):
        lp.upgrade(local.root)
    assert lp.open_table(local.root).scan().count() == 60


def test_a_copy_that_differs_is_not_swapped_in(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    trees.write_events(local.root)
    monkeypatch.setattr(upgrade_hive, "rows_of", lambda *_: Fingerprint(1, 1))

    with pytest.raises(InternalError, match="the old table stays"):
        lp.upgrade(local.root)
    assert lp.open_table(local.root).metadata.layout == "hive"
    monkeypatch.undo()
    assert trees.ids(lp.upgrade(local.root)) == [1, 2, 3, 4, 5, 6]


def test_a_leaf_that_changes_meanwhile_is_copied_again(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    trees.write_events(local.root)
    other = lp.open_table(local.root)
    real, calls = upgrade_hive._verify, []

    def verify(*arguments: Any) -> None:
        real(*arguments)
        if not calls:
            other.append([{"id": 7, "event_date": date(2025, 12, 10), "country": "US"}])
            other.append([{"id": 8, "event_date": date(2026, 1, 1), "country": "US"}])
            other.delete("id IN (5, 6)")
        calls.append(arguments)

    monkeypatch.setattr(upgrade_hive, "_verify", verify)

    table = lp.upgrade(local.root)

    assert len(calls) == 2
    assert trees.ids(table) == [1, 2, 3, 4, 7, 8]
    assert table.scan().count() == 6
    assert len(trees.paths(table)) == 4


@pytest.mark.parametrize("namespace", [(), ("sales", "events")])
def test_an_upgrade_that_another_one_overtakes_changes_nothing(
    local: Place, monkeypatch: pytest.MonkeyPatch, namespace: tuple[str, ...]
) -> None:
    trees.write_events(local.root, namespace=namespace)
    real = upgrade_hive._verify

    def verify(*arguments: Any) -> None:
        real(*arguments)
        monkeypatch.undo()
        winner = lp.upgrade(local.root, namespace=namespace)
        winner.append([{"id": 7, "event_date": date(2025, 12, 10), "country": "US"}])

    monkeypatch.setattr(upgrade_hive, "_verify", verify)

    with pytest.raises(ConcurrentModificationError, match="open it again"):
        lp.upgrade(local.root, namespace=namespace)
    assert trees.ids(lp.open_table(local.root, namespace=namespace)) == [1, 2, 3, 4, 5, 6, 7]


def test_an_upgrade_goes_on_where_the_last_one_failed(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    trees.write_events(local.root)
    real, copied = upgrade_copy._copy, []

    def copy(source: Any, old: Any, leaf: Any, *rest: Any) -> Any:
        if len(copied) == 2:
            raise KeyboardInterrupt
        copied.append(leaf.object_id)
        return real(source, old, leaf, *rest)

    monkeypatch.setattr(upgrade_copy, "_copy", copy)
    with pytest.raises(KeyboardInterrupt):
        lp.upgrade(local.root)
    monkeypatch.setattr(upgrade_copy, "_copy", lambda *args: (copied.append(args[2].object_id), real(*args))[1])

    table = lp.upgrade(local.root)

    assert len(copied) == len(set(copied)) == 4
    assert trees.ids(table) == [1, 2, 3, 4, 5, 6]
    assert not os.path.exists(f"{local.root}/__upgrade")


def draft_table(local: Place, **pointers: Any) -> None:
    appendix.write_leaves(local.root)
    appendix.write_manifest(local.root, appendix.appendix_c(**pointers))


def test_the_draft_becomes_a_table_in_place(local: Place) -> None:
    draft_table(local)
    before = lp.open_table(local.root).version

    table = lp.upgrade(local.root)

    assert table.metadata.layout == "manifest"
    assert appendix.ids(table) == [1, 2, 3, 4, 5, 11, 12, 13]
    assert [field.transform for spec in table.specs for field in spec.fields] == [Identity(), Year(), Identity()]
    assert table.scan().count() == 8
    assert sum(table.inspect.partitions()["rows"].to_pylist()) == 8
    assert appendix.ids(lp.open_table(local.root, version=before)) == [1, 2, 3, 4, 5, 11, 12, 13]
    table.append(appendix.events((20, appendix.DAY, "US")))
    table.maintenance.compact(progress=False)
    table.update_spec(["country"])
    table.append(appendix.events((21, appendix.DAY, "US")))
    assert appendix.ids(table) == [1, 2, 3, 4, 5, 11, 12, 13, 20, 21]


def test_md5_buckets_stay_expressions(local: Place) -> None:
    metadata = {
        "partition_spec_v1": [
            {
                "field_id": "p",
                "source_ids": [2],
                "expression": "abs(md5_int(col0)) % 16",
                "result_type": {"type": "int64"},
            }
        ],
        "schema": appendix.METADATA["schema"],
    }
    appendix.write_manifest(local.root, [], metadata, values=[pa.field("partition_field_p", pa.int64())])
    lp.open_table(local.root).append(appendix.events((1, appendix.DAY, "US"), (2, appendix.DAY, "FR")))

    table = lp.upgrade(local.root)
    table.append(appendix.events((3, appendix.DAY, "US")))

    assert table.spec.fields[0].expression == "abs(md5_int(col0)) % 16"
    assert appendix.ids(table, "country = 'US'") == [1, 3]
    assert len(table.scan("country = 'US'").plan().leaves) == 1


def test_branches_and_tags_of_the_draft_are_pinned(local: Place) -> None:
    appendix.write_leaves(local.root)
    leaf = lance.dataset(f"{local.root}/{appendix.LOCATIONS[appendix.V1_LEAF]}")
    branch = leaf.create_branch("dev", 2)
    branch = lance.write_dataset(appendix.events((77, appendix.DAY, "US")), branch, mode="append")
    lance.dataset(f"{local.root}/{appendix.LOCATIONS[appendix.V2_LEAF]}").tags.create("blessed", 2)
    pointers = {"v1": {"read_branch": "dev", "read_version": branch.version}, "v2": {"read_tag": "blessed"}}
    appendix.write_manifest(local.root, appendix.appendix_c(**pointers))

    table = lp.upgrade(local.root)
    table.delete("id = 1")
    table.append(appendix.events((20, appendix.DAY, "US")))

    assert appendix.ids(table) == [2, 11, 12, 20, 77]
    report = table.maintenance.remove_orphans(timedelta(0), dry_run=True, progress=False)
    assert report.changed == 0


def test_a_draft_without_read_columns_becomes_a_weak_table(local: Place) -> None:
    appendix.write_leaves(local.root)
    appendix.write_manifest(local.root, appendix.appendix_c(v1={}, v2={}), pointers=False)

    table = lp.upgrade(local.root)

    assert table.metadata.transactions == "weak"
    assert appendix.ids(table) == [1, 2, 3, 4, 5, 6, 11, 12, 13]


def test_a_commit_of_the_draft_beside_the_swap_is_kept(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    draft_table(local)
    other = lp.open_table(local.root)
    real = upgrade_draft._verify

    def verify(*arguments: Any) -> None:
        real(*arguments)
        other.append(appendix.events((20, appendix.DAY, "US")))

    monkeypatch.setattr(upgrade_draft, "_verify", verify)

    table = lp.upgrade(local.root)

    assert appendix.ids(table) == [1, 2, 3, 4, 5, 11, 12, 13, 20]
    assert table.scan().count() == 9
    other.append(appendix.events((21, appendix.DAY, "US")))
    assert other.metadata.layout == "manifest"
    assert table.scan().count() == 10


def test_a_fingerprint_tells_rows_apart_and_not_their_order() -> None:
    rows = some_rows(20)
    whole = fingerprint([rows])

    assert fingerprint([rows.slice(10), rows.slice(0, 10)]) == whole
    assert fingerprint([rows.slice(10)]) + fingerprint([rows.slice(0, 10)]) == whole
    assert fingerprint([rows.sort_by("name")]) == whole
    for column in range(rows.num_columns):
        changed = rows.set_column(column, rows.field(column), rows.column(column).take(pa.array([1, *range(1, 20)])))
        assert fingerprint([changed]) != whole


def test_a_fingerprint_tells_null_from_empty_and_columns_apart() -> None:
    def of(*columns: list[Any]) -> Fingerprint:
        return fingerprint([pa.table({str(at): pa.array(values, pa.string()) for at, values in enumerate(columns)})])

    assert of(["a"], ["bc"]) != of(["ab"], ["c"])
    assert of([None], [""]) != of([""], [None])
    assert of(["a"], ["b"]) != of(["b"], ["a"])
