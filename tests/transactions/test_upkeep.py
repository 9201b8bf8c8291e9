"""Upkeep that keeps a table useful, and changes that touch no more than they must."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.maintain import collect, leaf_tasks
from lancepart.write import conform
from tests.support.catalogs import Place
from tests.transactions.tables import SCHEMA, assert_whole, content, data, make, opened


def partition(table: Any, bank: str) -> dict[str, Any]:
    """What inspect says of one bank's leaf."""
    found = [each for each in table.inspect.partitions().to_pylist() if each["partition"] == [("bank", bank)]]
    assert len(found) == 1
    return found[0]


def indexed_rows(table: Any, bank: str) -> dict[str, int]:
    leaf = partition(table, bank)
    handle = lance.dataset(f"{table.root}/{leaf['location']}", version=leaf["read_version"])
    return {index.name: index.num_rows_indexed for index in handle.describe_indices()}


def test_whole_leaves_are_dropped_without_being_read(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "A", 2), (3, "B", 3)])
    shutil.rmtree(Path(table.root) / partition(table, "A")["location"] / "data")

    table.delete("bank = 'A'")

    assert content(table) == Counter([(3, "B", 3)])
    assert partition(table, "A")["fragments"] == 0
    assert_whole(table)


def test_a_filter_that_says_more_than_the_partition_deletes_only_what_matches(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "A", 2), (3, "B", 3), (4, "B", 1)])
    table.delete("bank = 'A' OR x = 3")
    assert content(table) == Counter([(4, "B", 1)])
    assert_whole(table)


def test_rows_added_while_a_whole_leaf_is_deleted_stay(local: Place) -> None:
    table = make(local, [(1, "A", 1), (3, "B", 3)])
    with table.transaction() as tx:
        tx.delete("bank = 'A'")
        opened(local).append(data([(5, "A", 5)]))

    assert content(table) == Counter([(5, "A", 5), (3, "B", 3)])
    assert_whole(table)


def test_an_overwrite_takes_a_stream_piece_by_piece(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conform, "CHUNK_ROWS", 4)
    table = make(local, [(100, "A", 0), (101, "B", 0), (102, "C", 0)])
    held: list[int] = []

    def batches() -> Any:
        for number in range(5):
            held.append(len(list(Path(table.root).rglob("data/*"))))
            rows = [(number * 4 + offset, "AB"[offset % 2], number) for offset in range(4)]
            yield from data(rows).to_batches()

    table.overwrite(pa.RecordBatchReader.from_batches(SCHEMA, batches()))

    assert held[-1] > held[0], "nothing was written before the stream ended"
    expected = [(number * 4 + offset, "AB"[offset % 2], number) for number in range(5) for offset in range(4)]
    assert content(table) == Counter([*expected, (102, "C", 0)])
    assert_whole(table)


def test_an_overwrite_with_a_filter_refuses_a_late_row_and_changes_nothing(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conform, "CHUNK_ROWS", 1)
    table = make(local, [(1, "A", 1), (2, "B", 2)])
    stream = pa.RecordBatchReader.from_batches(
        SCHEMA, [batch for row in [(3, "A", 3), (4, "B", 4)] for batch in data([row]).to_batches()]
    )
    with pytest.raises(InvalidInputError, match="do not match"):
        table.overwrite(stream, where="bank = 'A'")
    assert content(table) == Counter([(1, "A", 1), (2, "B", 2)])


def test_rows_written_anew_for_a_wider_type_are_no_changes(local: Place) -> None:
    table = make_narrow(local)
    before = table.version
    table.widen_column("x", pa.int64())
    table.append(pa.table({"id": [3], "bank": ["A"], "x": [2**40]}))

    changes = table.changes(before).to_pylist()

    assert [(row["id"], row["x"], row["_change"]) for row in changes] == [(3, 2**40, "insert")]
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)
    assert sum(content(table).values()) == 3


def make_narrow(place: Place) -> Any:
    import lancepart as lp

    schema = pa.schema([("id", pa.int64()), ("bank", pa.string()), ("x", pa.int32())])
    table = lp.create_table(place.root, schema, ["bank"])
    table.append(pa.table({"id": [1, 2], "bank": ["A", "A"], "x": pa.array([1, 2], pa.int32())}))
    return table


@pytest.mark.parametrize("first", ["append", "delete"])
def test_an_append_that_writes_rows_anew_goes_with_a_delete(local: Place, first: str) -> None:
    """The one that comes second is put on top of the first, or is told of a conflict: no row is lost or comes back."""
    table = make_narrow(local)
    table.widen_column("x", pa.int64())
    wide = pa.table({"id": [3], "bank": ["A"], "x": [2**40]})
    if first == "delete":
        with table.transaction() as tx:
            tx.append(wide)
            opened(local).delete("id = 1")
        assert content(table) == Counter([(2, "A", 2), (3, "A", 2**40)])
    else:
        from lancepart.errors import CommitConflictError

        tx = table.transaction()
        tx.delete("id = 1")
        opened(local).append(wide)
        with pytest.raises(CommitConflictError):
            tx.commit()
        assert content(table) == Counter([(1, "A", 1), (2, "A", 2), (3, "A", 2**40)])
    assert_whole(table)


def test_what_someone_commits_to_a_leaf_by_hand_is_ignored_and_reported(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "B", 2)])
    table.update({"x": "5"}, "bank = 'A'")
    assert table.inspect.unpublished_commits().num_rows == 0
    leaf = partition(table, "A")
    by_hand = lance.write_dataset(data([(9, "A", 9)]), f"{table.root}/{leaf['location']}", mode="append")

    strays = table.inspect.unpublished_commits().to_pylist()

    assert [(each["object_id"], each["main_version"], each["main_rows"]) for each in strays] == [
        (leaf["object_id"], by_hand.version, by_hand.count_rows())
    ]
    assert strays[0]["read_version"] == leaf["read_version"]
    assert content(table) == Counter([(1, "A", 5), (2, "B", 2)])


def test_compaction_keeps_indices_useful(local: Place) -> None:
    table = make(local, [(n, "A", n) for n in range(100)])
    table.maintenance.create_index("x", "BTREE", progress=False)
    for n in range(100, 104):
        table.append(data([(n, "A", n)]))
    table.append(data([(500, "B", 500)]))
    table.append(data([(501, "B", 501)]))
    assert indexed_rows(table, "A") == {"x_idx": 100}

    report = table.maintenance.compact(progress=False)

    assert report.changed == 2
    assert partition(table, "A")["fragments"] == 1
    assert indexed_rows(table, "A") == {"x_idx": 104}
    assert indexed_rows(table, "B") == {"x_idx": 2}, "a leaf made after the index gets it when it is compacted"
    assert content(table, "x = 103") == Counter([(103, "A", 103)])
    assert_whole(table)


def test_small_leaves_are_compacted_together_and_those_of_one_file_not_at_all(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks = [f"bank {n:02}" for n in range(40)]
    table = make(local, [(n, bank, n) for n, bank in enumerate(banks)])
    table.append(data([(100 + n, bank, n) for n, bank in enumerate(banks[:35])]))
    table.delete("id = 39")
    looked_at: list[str] = []
    plain = leaf_tasks.leaf_compaction.compact

    def noted(root: Any, location: str, **options: Any) -> int | None:
        looked_at.append(location)
        return plain(root, location, **options)

    monkeypatch.setattr(leaf_tasks.leaf_compaction, "compact", noted)
    before, snapshots = content(table), len(table.inspect.snapshots())

    report = table.maintenance.compact(progress=False)

    assert (report.changed, report.skipped) == (35, ())
    assert len(set(looked_at)) == len(looked_at) in (35, 36)
    assert len(table.inspect.snapshots()) == snapshots + 1
    assert content(table) == before
    assert {partition(table, bank)["fragments"] for bank in banks[:35]} == {1}
    assert_whole(table)


def test_compaction_skips_what_others_change_meanwhile(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(local, [(n, bank, n) for n, bank in enumerate("ABC")])
    table.append(data([(10 + n, bank, n) for n, bank in enumerate("ABC")]))
    plain = leaf_tasks.leaf_compaction.compact
    others = [lambda: table.delete("id = 11")]

    def disturbed(*given: Any, **options: Any) -> int | None:
        if others:
            others.pop()()
        return plain(*given, **options)

    monkeypatch.setattr(leaf_tasks.leaf_compaction, "compact", disturbed)

    report = opened(local).maintenance.compact(progress=False)

    assert (report.changed, len(report.skipped)) == (2, 1)
    assert content(table) == Counter([(0, "A", 0), (10, "A", 0), (1, "B", 1), (2, "C", 2), (12, "C", 2)])
    assert_whole(table)


def test_an_index_with_parameters_that_cant_be_kept_is_refused(local: Place) -> None:
    table = make(local, [(1, "A", 1)])
    before = table.version
    with pytest.raises(InvalidInputError, match="parameters"):
        table.maintenance.create_index("x", "BTREE", strange=object())
    assert table.version == before


def test_a_leaf_that_stays_empty_leaves_the_manifest_and_its_numbers_go_on(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "B", 2)])
    table.append(data([(3, "A", 3)]))
    table.delete("bank = 'A'")
    empty = partition(table, "A")
    table.append(data([(4, "B", 4)]))

    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)

    assert [each["partition"] for each in table.inspect.partitions().to_pylist()] == [[("bank", "B")]]
    numbers = [
        int(item.rsplit("$", 1)[1]) for item in table._manifest.snapshot().ids(empty["object_id"], "table_version")
    ]
    assert numbers == [3]
    table.append(data([(5, "A", 5)]))
    again = partition(table, "A")
    assert again["object_id"] == empty["object_id"]
    assert again["location"] != empty["location"]
    numbers = table._manifest.snapshot().ids(empty["object_id"], "table_version")
    assert sorted(int(item.rsplit("$", 1)[1]) for item in numbers) == [3, 4]
    assert content(table) == Counter([(2, "B", 2), (4, "B", 4), (5, "A", 5)])
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)
    report = collect.remove_orphans(table._manifest, timedelta(0), progress=False)
    assert report.changed == 1, "the directory of the leaf that went"
    assert not (Path(table.root) / empty["location"]).exists()
    assert_whole(table)


def test_a_scan_reads_an_older_snapshot(local: Place) -> None:
    table = make(local, [(1, "A", 1)])
    first = table.version
    table.append(data([(2, "B", 2)]))
    table.tags.create("start", first)

    for version in (first, "start"):
        assert table.scan(version=version).to_arrow().num_rows == 1
    assert table.scan("bank = 'B'", version=first).plan().leaves == ()
    assert table.scan().to_arrow().num_rows == 2
