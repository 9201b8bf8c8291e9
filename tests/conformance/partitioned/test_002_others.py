"""Document 002 with other clients at work: what they commit by its words alone is read, and our writes go on."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from tests.conformance.partitioned.handmade import Leaf, column, make, partition_field, publish

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
LEAF = "v1$a000000000000000$dataset"


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
