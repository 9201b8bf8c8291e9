"""Partitions that were emptied, removed by ``expire`` and made again, under the same name in another directory."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lancepart.errors import CommitConflictError
from lancepart.maintain import collect, leaf_maintenance
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable
from tests.support.catalogs import Place
from tests.support.interleave import ORDERS, Stepper, interleave
from tests.transactions.tables import Row, assert_whole, content, data, make, opened

NOW = timedelta(0)


def expire(table: Any) -> None:
    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)


def emptied(place: Place, rows: list[Row], *, tag: bool = True) -> tuple[Any, int]:
    """A table whose partition A was emptied and whose row was removed; and the snapshot that it was empty at."""
    table = make(place, rows)
    if tag:
        table.tags.create("kept", table.version)
    empty = table.delete("bank = 'A'")
    expire(table)
    assert [leaf.key for leaf in table.scan().plan().leaves] == [("sB",)]
    return table, empty


def changed(table: Any, since: Any, until: Any = None) -> Counter[Row]:
    return Counter(zip(*table.changes(since, until).to_pydict().values(), strict=True))


ROWS: list[Row] = [(1, "A", 1), (2, "A", 2), (3, "B", 3)]
GONE = Counter([(1, "A", 1, "delete"), (2, "A", 2, "delete")])


def test_a_rollback_brings_a_partition_back_that_was_removed(local: Place) -> None:
    table, _ = emptied(local, ROWS)
    version = table.version

    table.maintenance.rollback("kept")

    assert content(table) == Counter(ROWS)
    assert changed(table, version) == Counter([(1, "A", 1, "insert"), (2, "A", 2, "insert")])
    assert_whole(table)


def test_a_rollback_takes_away_what_a_partition_got_that_was_made_again(local: Place) -> None:
    table, _ = emptied(local, ROWS)
    table.append(data([(9, "A", 9), (4, "B", 4)]))
    version = table.version

    table.maintenance.rollback("kept")

    assert content(table) == Counter(ROWS)
    expected = [(1, "A", 1, "insert"), (2, "A", 2, "insert"), (9, "A", 9, "delete"), (4, "B", 4, "delete")]
    assert changed(table, version) == Counter(expected)
    assert_whole(table)
    table.maintenance.rollback(version)
    assert content(table) == Counter([(3, "B", 3), (9, "A", 9), (4, "B", 4)])


def test_a_rollback_brings_rows_back_under_the_partitioning_and_the_columns_of_now(local: Place) -> None:
    table, _ = emptied(local, ROWS)
    table.update_spec(["truncate(bank, 4)"])
    table.rename_column("x", "y")

    table.maintenance.rollback("kept")

    assert content(table) == Counter(ROWS)
    assert {leaf.spec_id for leaf in table.scan("bank = 'A'").plan().leaves if leaf.stats.rows} == {2}
    assert_whole(table)


def test_changes_are_told_across_a_partition_that_was_removed_and_made_again(local: Place) -> None:
    table, empty = emptied(local, ROWS)
    without = table.version
    assert changed(table, "kept") == GONE
    assert changed(table, empty) == Counter()

    table.append(data([(9, "A", 9)]))
    table.append(data([(10, "A", 10)]))
    table.delete("id = 9")
    came = [(9, "A", 9, "insert"), (10, "A", 10, "insert"), (9, "A", 9, "delete")]

    assert changed(table, "kept") == GONE + Counter(came)
    assert changed(table, empty) == Counter(came)
    assert changed(table, without) == Counter(came)
    assert changed(table, "kept", without) == GONE


def test_changes_are_told_when_more_of_the_history_between_has_expired(local: Place) -> None:
    table, _ = emptied(local, ROWS)
    table.append(data([(9, "A", 9)]))
    version = table.version
    expire(table)

    assert changed(table, "kept") == GONE + Counter([(9, "A", 9, "insert")])
    assert changed(table, version) == Counter()


def test_a_stream_goes_on_across_a_partition_that_was_removed_and_made_again(local: Place) -> None:
    from lancepart.maintain.changes import between

    table, empty = emptied(local, ROWS, tag=False)
    table.append(data([(9, "A", 9)]))
    manifest = table._manifest
    first, last = manifest.snapshot(empty), manifest.snapshot()

    leaves = pickle.loads(pickle.dumps(between(manifest, first, last, table.metadata)))

    batches = [batch for leaf in leaves for _, _, batch in leaf.read(table.metadata.schema, deletes=False)]
    assert [row["id"] for batch in batches for row in batch.to_pylist()] == [9]
    assert [(step.added, step.deleted) for leaf in leaves for step in leaf.steps] == [(1, 0)]


def test_who_read_a_partition_notices_that_it_was_made_again_at_the_same_version(local: Place) -> None:
    """The first version of both is number 1 of its directory."""
    table = make(local, [(1, "A", 1), (3, "B", 3)])
    table.append(data([(4, "C", 4)]))
    tx = table.transaction("serializable")
    assert tx.scan("bank = 'C'").count() == 1
    tx.append(data([(5, "B", 5)]))
    (leaf,) = table.scan("bank = 'C'").plan().leaves
    table.delete("bank = 'C'")
    expire(table)
    table.append(data([(9, "C", 9)]))
    (again,) = table.scan("bank = 'C'").plan().leaves
    assert (leaf.read_version, leaf.location != again.location) == (again.read_version, True)

    with pytest.raises(CommitConflictError):
        tx.commit()


def test_a_rollback_that_meets_others_keeps_what_they_wrote_or_changes_nothing(local: Place) -> None:
    table, _ = emptied(local, ROWS)
    begun = leaf_maintenance.strong
    late: list[Any] = []

    def overtaken(manifest: Any, operation: str) -> Any:
        late.append(begun(manifest, operation))
        opened(local).append(data([(9, "A", 9)]))
        return late[-1]

    leaf_maintenance.strong = overtaken
    try:
        table.maintenance.rollback("kept")
    finally:
        leaf_maintenance.strong = begun

    assert content(table) == Counter([*ROWS, (9, "A", 9)])
    assert_whole(table)


@pytest.mark.parametrize("gate", ORDERS)
@pytest.mark.parametrize("verb", ["append", "overwrite", "upsert"])
def test_rows_for_an_empty_partition_that_expires_meanwhile_make_it_anew(local: Place, gate: str, verb: str) -> None:
    table = make(local, ROWS)
    table.delete("bank = 'A'")
    table.append(data([(4, "B", 4)]))
    acts = {
        "append": lambda own: own.append(data([(9, "A", 9), (5, "B", 5)])),
        "overwrite": lambda own: own.overwrite(data([(9, "A", 9)])),
        "upsert": lambda own: own.upsert(data([(9, "A", 9)]), ["id", "bank"]),
    }
    root, before = Root.parse(local.root, None), datetime.now(UTC)
    writer = Stepper(root, lambda manifest: acts[verb](PartitionedTable(manifest)))
    expiring = Stepper(root, lambda manifest: collect.expire(manifest, before, safe_age=NOW, progress=False))

    interleave(expiring, writer, gate)

    assert (writer.error, expiring.error) == (None, None)
    more = [(5, "B", 5)] if verb == "append" else []
    assert content(table) == Counter([(3, "B", 3), (4, "B", 4), (9, "A", 9), *more])
    numbers = [row["object_id"] for row in versions(table, "A")]
    assert len(numbers) == len(set(numbers))
    assert_whole(table)
    assert changed(table, writer.result - 1)[9, "A", 9, "insert"] == 1


def versions(table: Any, bank: str) -> list[dict[str, Any]]:
    (leaf,) = table.scan(f"bank = '{bank}'").plan().leaves
    found = table._manifest.snapshot().scan("object_type = 'table_version'")
    return [row for row in found.to_pylist() if row["object_id"].startswith(leaf.object_id)]
