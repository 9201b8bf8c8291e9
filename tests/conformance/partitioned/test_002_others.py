"""Document 002 with other clients at work: what they commit by its words alone is read, and our writes go on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidTableStateError
from lancepart.storage.root import Root
from tests.conformance.partitioned.handmade import Leaf, column, make, partition_field, publish
from tests.support.interleave import DONE, PLANNED, Stepper

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
LEAF = "v1$ax00000000000000$dataset"


def rows(*ids: int, k: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "k": [k] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def theirs(tmp_path: Path) -> lp.PartitionedTable:
    """A table by hand, partitioned by k, with rows 1 and 2 in one leaf."""
    columns = [column("id", pa.int64(), 0), column("k", pa.string(), 1)]
    fields = [partition_field("k", [1], {"type": "identity"}, pa.string())]
    make(str(tmp_path), columns, fields, [Leaf(values={"k": "a"}, rows=rows(1, 2), name="a")], results=[pa.string()])
    return lp.open_table(tmp_path)


def ids(table: lp.PartitionedTable) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("number", [2, 5, 10, 1_700_000_000_000])
def test_a_version_of_any_higher_number_is_the_newest(theirs: lp.PartitionedTable, number: int) -> None:
    publish(theirs.root, LEAF, number, rows(3))

    assert ids(theirs) == [1, 2, 3]
    theirs.append(rows(4))
    assert ids(lp.open_table(theirs.root)) == [1, 2, 3, 4]


@pytest.mark.parametrize("skipped", [1, 3, 9, 10**9])
def test_a_number_left_out_after_our_own_commit_hides_nothing(theirs: lp.PartitionedTable, skipped: int) -> None:
    since = theirs.version
    theirs.append(rows(3))
    publish(theirs.root, LEAF, 2 + skipped, rows(4))

    for table in (theirs, lp.open_table(theirs.root)):
        assert ids(table) == [1, 2, 3, 4]
        assert table.scan().count() == 4
    theirs.append(rows(5))
    assert ids(theirs) == ids(lp.open_table(theirs.root)) == [1, 2, 3, 4, 5]
    assert sorted(theirs.changes(since).column("id").to_pylist()) == [3, 4, 5]


@pytest.mark.parametrize("number", [3, 4, 9])
def test_what_another_client_publishes_while_we_commit_stays_and_so_does_ours(
    theirs: lp.PartitionedTable, number: int
) -> None:
    """With the next number it meets our commit; with any later one it does not, and would hide ours."""
    theirs.append(rows(0))
    ours = Stepper(
        Root.parse(theirs.root),
        lambda manifest: lp.PartitionedTable(manifest).append(pa.concat_tables([rows(3), rows(4, k="b")])),
    )
    ours.until(PLANNED)
    publish(theirs.root, LEAF, number, rows(5), keyed=True)
    ours.until(DONE)

    assert ours.error is None
    assert ids(lp.open_table(theirs.root)) == [0, 1, 2, 3, 4, 5]
    theirs.append(rows(6))
    assert ids(lp.open_table(theirs.root)) == [0, 1, 2, 3, 4, 5, 6]
    assert theirs.scan().count() == 7


def test_a_commit_that_another_clients_hides_and_that_conflicts_with_it_is_named(theirs: lp.PartitionedTable) -> None:
    theirs.append(rows(0))
    ours = Stepper(Root.parse(theirs.root), lambda manifest: lp.PartitionedTable(manifest).overwrite(rows(7)))
    ours.until(PLANNED)
    publish(theirs.root, LEAF, 9, rows(5), keyed=True)
    ours.until(DONE)

    assert isinstance(ours.error, InvalidTableStateError)
    assert LEAF in str(ours.error)


def test_many_leaves_are_looked_at_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lancepart.layout import versions

    table = lp.create_table(tmp_path, SCHEMA, ["k"])
    table.append(pa.concat_tables([rows(n, k=f"k{n}") for n in range(5)]))
    leaf = table.scan("k = 'k3'").plan().leaves[0]
    publish(table.root, leaf.object_id, 7, rows(30, k="k3"))

    for at_once, looked_up in [(2, 2_000), (64, 2)]:
        monkeypatch.setattr(versions, "_AT_ONCE", at_once)
        monkeypatch.setattr(versions, "_LOOKED_UP", looked_up)
        fresh = lp.open_table(tmp_path)
        assert ids(fresh) == [0, 1, 2, 3, 4, 30]
        assert fresh.scan().count() == 6


def test_a_read_version_that_moved_alone_is_read(theirs: lp.PartitionedTable) -> None:
    theirs.append(rows(3))
    since = theirs.version
    publish(theirs.root, LEAF, 0, rows(4), pointer=True)

    table = lp.open_table(theirs.root)
    assert ids(table) == [1, 2, 3, 4]
    assert table.scan().count() == 4
    assert table.inspect.partitions().column("rows").to_pylist() == [4]
    assert table.changes(since).column("id").to_pylist() == [4]
    table.append(rows(5))
    assert ids(table) == [1, 2, 3, 4, 5]
    assert table.inspect.partitions().column("rows").to_pylist() == [5]


def test_deletions_that_another_client_published_are_changes(theirs: lp.PartitionedTable) -> None:
    theirs.append(rows(3))
    since = theirs.version
    leaf = theirs.scan().plan().leaves[0]
    place = f"{theirs.root}/{leaf.location}"
    handle = lance.dataset(place, version=leaf.read_version)
    left = handle.get_fragments()[0].delete("id = 1")
    operation = lance.LanceOperation.Delete([left], [], "id = 1")
    newer = lance.LanceDataset.commit(place, operation, read_version=leaf.read_version, detached=True).version
    manifest = lance.dataset(f"{theirs.root}/__manifest")
    record = {"object_id": f"{LEAF}$3", "object_type": "table_version", "metadata": "{}", "read_version": newer}
    given = pa.Table.from_pylist([record], schema=manifest.schema)
    manifest.merge_insert("object_id").when_not_matched_insert_all().execute(given)

    assert ids(lp.open_table(theirs.root)) == [2, 3]
    found = theirs.changes(since).to_pylist()
    assert found == [{"id": 1, "k": "a", "_change": "delete"}]


def manifest_rows(root: str, where: str) -> list[dict[str, Any]]:
    found = lance.dataset(f"{root}/__manifest").to_table(filter=where).to_pylist()
    return sorted(found, key=lambda row: row["object_id"])


def test_namespaces_that_another_client_made_are_used_again(tmp_path: Path) -> None:
    columns = [column("id", pa.int64(), 0), column("k", pa.string(), 1)]
    fields = [
        partition_field("k", [1], {"type": "identity"}, pa.string()),
        partition_field("b", [0], {"type": "truncate", "width": 10}, pa.int64()),
    ]
    leaf = Leaf(values={"k": "a", "b": 0}, rows=rows(1, 2), name="a")
    make(str(tmp_path), columns, fields, [leaf], results=[pa.string(), pa.int64()])

    for _ in range(2):
        table = lp.open_table(tmp_path)
        table.append(pa.concat_tables([rows(3, 13, 23), rows(14, k="z")]))

    found = manifest_rows(str(tmp_path), "object_type = 'namespace' AND partition_field_k = 'a'")
    assert len({row["object_id"].split("$")[1] for row in found}) == 1
    values = [(row["partition_field_k"], row["partition_field_b"]) for row in found]
    assert sorted(values, key=str) == [("a", 0), ("a", 10), ("a", 20), ("a", None)]
    tables = manifest_rows(str(tmp_path), "object_type = 'table'")
    assert len(tables) == 4
    assert sum(row["object_id"].startswith("v1$ax00000000000000$") for row in tables) == 3
    assert ids(table) == [1, 2, 3, 3, 13, 13, 14, 14, 23, 23]


def test_a_namespace_without_a_leaf_takes_the_new_one(theirs: lp.PartitionedTable) -> None:
    handle = lance.dataset(f"{theirs.root}/__manifest")
    handle.delete("object_type IN ('table', 'table_version')")

    theirs.append(rows(7))

    assert [row["object_id"] for row in manifest_rows(theirs.root, "object_type = 'table'")] == [LEAF]
    assert ids(theirs) == [7]


def test_names_in_a_table_without_a_salt_are_no_other_tables(tmp_path: Path) -> None:
    names = set()
    for number in range(2):
        root = tmp_path / str(number)
        columns = [column("id", pa.int64(), 0), column("k", pa.string(), 1)]
        fields = [partition_field("k", [1], {"type": "identity"}, pa.string())]
        make(str(root), columns, fields, [], results=[pa.string()])
        lp.open_table(root).append(rows(1))
        lp.open_table(root).append(rows(2, k="b"))
        names |= {row["object_id"] for row in manifest_rows(str(root), "object_type = 'table'")}
    assert len(names) == 4


def test_a_table_stays_known_as_another_clients(theirs: lp.PartitionedTable) -> None:
    theirs.append(rows(3, k="b"))
    theirs.add_column(pa.field("x", pa.string()))
    theirs.maintenance.remove_orphans(timedelta(0))

    properties = lance.dataset(f"{theirs.root}/__manifest").metadata
    assert properties["lancepart.origin"] == "foreign"
    assert "lancepart.format" in properties
    assert lp.create_table(f"{theirs.root}/own", SCHEMA, ["k"])
    assert "lancepart.origin" not in lance.dataset(f"{theirs.root}/own/__manifest").metadata


def test_a_spec_without_fields_has_one_leaf(tmp_path: Path) -> None:
    columns = [column("id", pa.int64(), 0), column("k", pa.string(), 1)]
    make(str(tmp_path), columns, [], [Leaf(values={}, rows=rows(1, 2), name="a")], results=[])

    table = lp.open_table(tmp_path)

    assert ids(table) == [1, 2]
    assert table.scan("id = 2").count() == 1
    table.append(rows(3, k="z"))
    assert ids(table) == [1, 2, 3]
