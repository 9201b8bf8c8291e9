"""A catalog whose root is a partitioned table: leaves are tables to it, read as published and kept whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from tests.conformance.catalog.client import Client, refused
from tests.conformance.partitioned import handmade
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


def made(place: Place, transactions: str = "strong") -> tuple[Client, tuple[str, ...]]:
    """A catalog on the root of a partitioned table with one leaf of three versions, and the leaf's path."""
    options = place.storage_options
    table = lp.create_table(place.root, SCHEMA, ["k"], transactions=transactions, storage_options=options)
    for number in (1, 2, 3):
        table.append([{"id": number, "k": "a"}])
    (leaf,) = table.scan().plan().leaves
    return Client(place), tuple(leaf.object_id.split("$"))


def opened(client: Client) -> lp.PartitionedTable:
    return lp.open_table(client.place.root, storage_options=client.place.storage_options)


def ids(client: Client) -> list[int]:
    return sorted(opened(client).scan().to_arrow().column("id").to_pylist())


@pytest.fixture
def by_hand(local: Place) -> tuple[Client, tuple[str, ...]]:
    """A leaf that another client wrote: nothing but its ``table_version`` rows says what is to be read."""
    rows = pa.table({"id": [1], "k": ["a"]}, schema=SCHEMA)
    columns = [handmade.column("id", pa.int64(), 0), handmade.column("k", pa.string(), 1)]
    fields = [handmade.partition_field("k", [1], {"type": "identity"}, pa.string())]
    leaves = [handmade.Leaf(values={"k": "a"}, rows=rows, name="part")]
    handmade.make(local.root, columns, fields, leaves, results=[pa.string()])
    (leaf,) = lp.open_table(local.root).scan().plan().leaves
    handmade.publish(local.root, leaf.object_id, 2, pa.table({"id": [2], "k": ["a"]}, schema=SCHEMA))
    return Client(local), tuple(leaf.object_id.split("$"))


def test_a_leaf_is_read_as_published(place: Place) -> None:
    client, leaf = made(place)

    assert client.count_table_rows(*leaf).count == 3
    described = client.describe_table(*leaf, load_detailed_metadata=True)
    assert (described.version, described.managed_versioning) == (3, True)
    assert client.dataset(*leaf).count_rows() == 1
    options = place.storage_options
    through = lance.dataset(namespace_client=client.namespace, table_id=list(leaf), storage_options=options)
    assert through.count_rows() == 3


def test_a_leaf_whose_version_rows_alone_moved_is_read_as_published(by_hand: tuple[Client, tuple[str, ...]]) -> None:
    client, leaf = by_hand
    assert ids(client) == [1, 2]

    assert client.count_table_rows(*leaf).count == 2
    assert client.describe_table(*leaf, load_detailed_metadata=True).version == 2


def test_older_versions_of_a_leaf_are_read_by_their_numbers(local: Place) -> None:
    client, leaf = made(local)

    numbers = [version.version for version in client.list_table_versions(*leaf).versions]
    assert numbers == [1, 2, 3]
    assert [client.count_table_rows(*leaf, version=number).count for number in numbers] == [1, 2, 3]
    with refused(TableVersionNotFoundError, 11):
        client.count_table_rows(*leaf, version=4)


def changes(client: Client, leaf: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """Every operation that would change a leaf behind its table's back, by what is to be called instead."""
    rows = pa.table({"id": [9], "k": ["a"]}, schema=SCHEMA)
    ranges = [{"start_version": 0, "end_version": -1}]
    return {
        "delete": lambda: client.drop_table(*leaf),
        r"\.delete": lambda: client.deregister_table(*leaf),
        "append": lambda: client.insert_into_table(*leaf, data=rows),
        "upsert": lambda: client.merge_insert_into_table(*leaf, data=rows, on=["id"], when_not_matched_insert_all=True),
        "update": lambda: client.update_table(*leaf, updates=[["id", "7"]]),
        r"…\).delete": lambda: client.delete_from_table(*leaf, predicate="true"),
        "rollback": lambda: client.restore_table(*leaf, version=1),
        "create_index": lambda: client.create_table_scalar_index(*leaf, column="id", index_type="BTREE"),
        "add_column": lambda: client.alter_table_add_columns(*leaf, new_columns=[{"name": "x", "expression": "1"}]),
        "widen_column": lambda: client.alter_table_alter_columns(*leaf, alterations=[{"path": "k", "rename": "j"}]),
        "drop_column": lambda: client.alter_table_drop_columns(*leaf, columns=["id"]),
        "maintenance": lambda: client.update_table_schema_metadata(*leaf, metadata={"a": "b"}),
        "tags.create": lambda: client.create_table_tag(*leaf, tag="t", version=1),
        "rewrite": lambda: client.rename_table(*leaf, new_table_name="other"),
        "expire": lambda: client.batch_delete_table_versions(*leaf, ranges=ranges),
        "append or overwrite": lambda: client.create_table(*leaf, data=rows, mode="overwrite"),
    }


def test_what_would_break_the_table_is_refused_and_says_what_to_call(local: Place) -> None:
    client, leaf = made(local)
    before, files = opened(client).version, client.storage.files()

    for call, change in changes(client, leaf).items():
        with pytest.raises(UnsupportedOperationError, match=call):
            change()

    assert (opened(client).version, ids(client)) == (before, [1, 2, 3])
    assert client.storage.files() == files


def test_a_leaf_that_another_client_wrote_is_kept_too(by_hand: tuple[Client, tuple[str, ...]]) -> None:
    client, leaf = by_hand

    for change in changes(client, leaf).values():
        with pytest.raises(UnsupportedOperationError):
            change()

    assert ids(client) == [1, 2]


def test_pylance_does_not_write_to_a_leaf_through_the_catalog(local: Place) -> None:
    client, leaf = made(local)
    rows = pa.table({"id": [9], "k": ["a"]}, schema=SCHEMA)

    with pytest.raises(Exception, match=r"detached|leaf of a partitioned table"):
        lance.write_dataset(rows, namespace_client=client.namespace, table_id=list(leaf), mode="append")

    assert ids(client) == [1, 2, 3]


@pytest.mark.parametrize("transactions", ["strong", "weak"])
def test_no_table_or_namespace_is_made_or_dropped_among_the_partitions(local: Place, transactions: str) -> None:
    client, leaf = made(local, transactions)
    client.create("plain")
    before = opened(client).version
    other = pa.table({"x": [1]})

    for change in (
        lambda: client.create_table(*leaf[:-1], "other", data=other),
        lambda: client.create_table("v1", "dataset", data=other),
        lambda: client.declare_table(*leaf[:-1], "other"),
        lambda: client.register_table(*leaf[:-1], "other", location="plain.lance"),
        lambda: client.rename_table("plain", new_namespace_id=list(leaf[:-1]), new_table_name="other"),
        lambda: client.rename_table(*leaf, new_namespace_id=[], new_table_name="other"),
        lambda: client.create_namespace("v2"),
        lambda: client.create_namespace("v1", "k7m2n9p4q8r5s3t6"),
        lambda: client.create_namespace("v1", mode="overwrite"),
        lambda: client.drop_namespace("v1", behavior="Cascade"),
        lambda: client.drop_namespace(*leaf[:-1], behavior="Cascade"),
    ):
        with refused(UnsupportedOperationError, 0):
            change()

    assert (opened(client).version, ids(client)) == (before, [1, 2, 3])
    assert client.tables() == ["plain"]


def test_the_definition_is_not_changed_by_root_properties(local: Place) -> None:
    client, _ = made(local)

    for values in ({"partition_spec_v1": "{}"}, {"partition_spec_v2": "{}"}, {"schema": None}):
        with refused(UnsupportedOperationError, 0):
            client.namespace.set_root_properties(values)
    with refused(UnsupportedOperationError, 0):
        client.namespace.set_root_properties({"table_version_management": "true"})
    with refused(InvalidInputError, 13):
        client.namespace.set_root_properties({"lancepart.transactions": "weak"})

    client.namespace.set_root_properties({"owner": "data"})
    assert ids(client) == [1, 2, 3]


def test_rows_of_a_weak_table_are_written_through_the_catalog_too(local: Place) -> None:
    client, leaf = made(local, "weak")

    client.insert_into_table(*leaf, data=pa.table({"id": [4], "k": ["a"]}, schema=SCHEMA))
    client.delete_from_table(*leaf, predicate="id = 1")
    with refused(UnsupportedOperationError, 0):
        client.alter_table_drop_columns(*leaf, columns=["id"])

    assert ids(client) == [2, 3, 4]
