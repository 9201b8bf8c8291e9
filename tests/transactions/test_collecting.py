"""Snapshots that are kept, named, gone back to and forgotten, and the files that go with them."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from lancepart.maintain import collect, leaf_maintenance
from lancepart.storage import history
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable
from tests.support.catalogs import Place
from tests.support.interleave import DONE, PLANNED, Stepper
from tests.transactions.aged import grow_old
from tests.transactions.tables import Row, assert_whole, content, data, make, opened

NOW = timedelta(0)


def expire(table: Any, older_than: Any = NOW) -> Any:
    """Expire without the hour that is always kept."""
    return collect.expire(table._manifest, older_than, safe_age=NOW, progress=False)


def size(root: str) -> int:
    """The bytes of all leaves."""
    folders = [entry.path for entry in os.scandir(root) if entry.name != "__manifest"]
    return sum(
        (Path(folder) / name).stat().st_size for top in folders for folder, _, names in os.walk(top) for name in names
    )


def grown(place: Place, commits: int) -> tuple[Any, dict[int, Counter[Row]]]:
    """A table with a history, and what it held at each snapshot."""
    table = make(place, [(n, bank, 0) for n in range(40) for bank in "AB"])
    past = {table.version: content(table)}
    for number in range(commits):
        if number % 3 == 0:
            version = table.append(data([(100 + number, "ABC"[number % 3], number)]))
        elif number % 3 == 1:
            version = table.update({"x": "x + 1"}, f"id < {number * 4}")
        else:
            version = table.delete(f"id = {number}")
        past[version] = content(table)
    return table, past


@pytest.mark.slow
def test_every_kept_snapshot_reads_in_full_after_expiring_and_the_bytes_come_down(local: Place) -> None:
    table, past = grown(local, 12)
    versions = list(past)
    table.tags.create("early", versions[2])
    middle = dict(history.stored(table._manifest))[versions[8]]

    report = expire(table, middle + timedelta(microseconds=1))

    kept = [versions[2], *versions[8:]]
    for version in kept:
        assert content(opened(local, version)) == past[version], version
    for version in set(versions) - set(kept):
        with pytest.raises(TableVersionNotFoundError):
            opened(local, version)
    assert report.removed_files > 0
    assert content(opened(local, "early")) == past[versions[2]]

    table.tags.delete("early")
    table.maintenance.compact(progress=False)
    last = content(table)
    freed = expire(table)
    assert content(table) == last
    assert_whole(table)
    fresh = make(Place(f"{local.root}-fresh"), sorted(last.elements()))
    assert freed.freed_bytes > 0
    assert size(local.root) < 4 * size(fresh.root)
    assert expire(table).removed_files == 0


def test_expiring_keeps_the_last_hour_and_what_was_latest_when_it_began(local: Place) -> None:
    table, past = grown(local, 3)
    assert table.maintenance.expire(NOW, progress=False).removed_files == 0
    for version, rows in past.items():
        assert content(opened(local, version)) == rows

    began = datetime.now(UTC)
    latest = table.version
    reader = table.scan()
    table.update({"x": "x + 1"})
    expire(table, began)

    assert Counter(map(tuple, zip(*reader.to_arrow().to_pydict().values(), strict=True))) == past[latest]
    assert content(opened(local, latest)) == past[latest]


def test_expiring_and_sweeping_beside_a_writer_breaks_nothing(local: Place) -> None:
    table, past = grown(local, 4)
    table.tags.create("kept", min(past))
    began = [datetime.now(UTC)]
    over = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        own = opened(local)
        try:
            for number in range(12):
                began[0] = datetime.now(UTC)
                with own.transaction() as tx:
                    tx.update({"x": "x + 1"}, f"id % 3 = {number % 3}")
                    tx.append(data([(1000 + number, "ABCD"[number % 4], 0)]))
        except BaseException as error:
            failures.append(error)
        finally:
            over.set()

    writer = threading.Thread(target=write)
    writer.start()
    rounds = 0
    while not over.is_set() or not rounds:
        safe = began[0] - timedelta(milliseconds=5)
        expire(table, safe)
        table.maintenance.remove_orphans(safe, progress=False)
        snapshot = opened(local, table.version)
        found = content(snapshot)
        assert sum(found.values()) == snapshot.scan().count()
        rounds += 1
    writer.join()

    assert failures == []
    assert content(opened(local, "kept")) == past[min(past)]
    assert len([number for number, _, _ in content(table) if number >= 1000]) == 12
    assert_whole(table)


@pytest.mark.parametrize("act", ["tag", "rollback"])
def test_who_holds_on_to_a_snapshot_that_expires_is_refused_or_keeps_its_files(local: Place, act: str) -> None:
    table, past = grown(local, 6)
    old = sorted(past)[1]

    def hold(manifest: Manifest) -> None:
        if act == "tag":
            PartitionedTable(manifest).tags.create("held", old)
        else:
            leaf_maintenance.rollback(manifest, old)

    holder = Stepper(Root.parse(local.root, None), hold)
    expiring = Stepper(Root.parse(local.root, None), lambda m: collect.expire(m, NOW, safe_age=NOW, progress=False))
    expiring.until(PLANNED)
    holder.until(PLANNED)
    expiring.until(DONE)
    holder.until(DONE)

    assert expiring.error is None
    if act == "tag":
        assert holder.error is None
        assert content(opened(local, "held")) == past[old]
    else:
        assert isinstance(holder.error, LanceNamespaceError)
        assert content(table) == past[max(past)]
    assert_whole(table)


def test_a_snapshot_is_found_by_its_number_its_tag_and_its_moment(local: Place) -> None:
    table = make(local, [(1, "A", 1)])
    first, moment = table.version, datetime.now(UTC)
    table.append(data([(2, "B", 2)]))
    table.tags.create("two", table.version)
    table.delete("true")

    assert content(opened(local, first)) == content(opened(local, moment)) == Counter([(1, "A", 1)])
    assert content(opened(local, "two")) == Counter([(1, "A", 1), (2, "B", 2)])
    assert content(opened(local, datetime.now(UTC))) == Counter()
    assert table.tags.list().keys() == {"two"}
    with pytest.raises(TableTagNotFoundError):
        opened(local, "three")
    with pytest.raises(TableVersionNotFoundError):
        opened(local, 10_000)
    with pytest.raises(TableVersionNotFoundError):
        opened(local, datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidInputError):
        opened(local, 1.5)
    with pytest.raises(UnsupportedOperationError):
        opened(local, first).append(data([(3, "C", 3)]))


def test_changes_tells_what_came_and_went_and_leaves_upkeep_out(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "A", 2), (3, "B", 3)])
    start = table.version
    table.update({"x": "20"}, "id = 2")
    table.append(data([(4, "C", 4)]))
    middle = table.version
    table.maintenance.compact(progress=False)
    table.delete("id = 3")
    table.update_spec(["truncate(bank, 4)"])
    table.maintenance.rewrite(progress=False)

    def changed(since: Any, until: Any = None) -> Counter[Row]:
        found = table.changes(since, until).to_pydict()
        return Counter(zip(*found.values(), strict=True))

    first = Counter([(2, "A", 2, "delete"), (2, "A", 20, "insert"), (4, "C", 4, "insert")])
    assert changed(start, middle) == first
    assert changed(middle) == Counter([(3, "B", 3, "delete")])
    assert changed(start) == first + changed(middle)
    assert changed(table.version) == Counter()
    with pytest.raises(InvalidInputError):
        table.changes(table.version, start)


def test_a_rollback_is_a_commit_like_any_other(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "A", 2), (3, "B", 3)])
    start = table.version
    table.delete("id = 1")
    table.append(data([(4, "B", 4), (5, "Z", 5)]))
    latest = table.version

    version = table.maintenance.rollback(start)

    assert content(table) == content(opened(local, start))
    assert content(opened(local, latest)) == Counter([(2, "A", 2), (3, "B", 3), (4, "B", 4), (5, "Z", 5)])
    back = Counter(zip(*table.changes(latest).to_pydict().values(), strict=True))
    assert back == Counter([(1, "A", 1, "insert"), (4, "B", 4, "delete"), (5, "Z", 5, "delete")])
    last = table.inspect.snapshots().to_pylist()[-1]
    assert (last["version"], last["operation"], last["rows_added"], last["rows_deleted"]) == (version, "rollback", 1, 2)
    assert_whole(table)
    table.update({"x": "x + 1"}, "id = 1")
    table.append(data([(6, "Z", 6)]))
    assert_whole(table)


def test_snapshots_tell_who_did_what_when(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "B", 2)])
    table.update({"x": "0"})
    table.add_column(pa.field("more", pa.string()))

    found = table.inspect.snapshots().to_pylist()[-3:]

    assert [each["operation"] for each in found] == ["append", "update", "define"]
    assert [(each["partitions"], each["rows_added"], each["rows_deleted"]) for each in found] == [
        (2, 2, 0),
        (2, 2, 2),
        (0, 0, 0),
    ]
    assert found[0]["by"]
    assert found[0]["transaction"] != found[1]["transaction"]
    assert found[0]["timestamp"] < found[1]["timestamp"] < datetime.now(UTC)


def test_what_someone_commits_to_a_leafs_main_by_hand_is_ignored(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "B", 2)])
    table.append(data([(3, "A", 3)]))
    leaf = table.scan("bank = 'A'").plan().leaves[0]
    by_hand = lance.dataset(f"{local.root}/{leaf.location}")
    lance.write_dataset(by_hand.to_table(), by_hand.uri, mode="append")
    lance.dataset(by_hand.uri).delete("id = 1")

    assert content(table) == Counter([(1, "A", 1), (2, "B", 2), (3, "A", 3)])
    table.update({"x": "x + 1"}, "bank = 'A'")
    table.maintenance.compact(progress=False)
    expire(table)
    assert content(table) == Counter([(1, "A", 2), (2, "B", 2), (3, "A", 4)])
    assert_whole(table)
    assert lance.dataset(by_hand.uri).count_rows() == 0


def test_orphans_are_counted_before_they_go_and_young_ones_stay(local: Place) -> None:
    table = make(local, [(1, "A", 1)])
    given_up = table.transaction()
    given_up.append(data([(2, "A", 2), (3, "Z", 3)]))
    before = size(local.root)

    assert table.maintenance.remove_orphans(timedelta(hours=1), progress=False).removed_files == 0
    for folder, _, names in os.walk(local.root):
        for name in names:
            os.utime(Path(folder) / name, (0, time.time() - 7200))
    counted = table.maintenance.remove_orphans(timedelta(hours=1), dry_run=True, progress=False)
    assert size(local.root) == before
    removed = table.maintenance.remove_orphans(timedelta(hours=1), progress=False)

    assert counted == removed
    assert (removed.changed, before - size(local.root)) == (1, removed.freed_bytes)
    assert content(table) == Counter([(1, "A", 1)])
    assert given_up.closed is False
    shutil.rmtree(local.root)


def test_files_that_a_killed_writer_did_not_finish_are_orphans_too(local: Place) -> None:
    """A local disk takes a file in under another name; who is killed then leaves that."""
    table = make(local, [(1, "A", 0)])
    leaf = Path(local.root) / table.inspect.partitions().to_pylist()[0]["location"]
    lost = Path(local.root) / "00000000_v1$abcdefghijklmnop$dataset"
    left = [leaf / "data" / "x.lance#1", leaf / "_versions" / "7.manifest#2", lost / "data" / "y.lance#1"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")

    assert table.maintenance.remove_orphans(timedelta(hours=1), progress=False).removed_files == 0
    for path in left:
        os.utime(path, (0, 0))
    report = table.maintenance.remove_orphans(timedelta(hours=1), progress=False)

    assert (report.removed_files, report.freed_bytes, report.locations) == (3, 12, (lost.name,))
    assert not any(path.exists() for path in (*left, lost))
    assert content(table) == {(1, "A", 0): 1}


def test_the_empty_directory_of_a_killed_writer_goes_once_it_is_old(local: Place) -> None:
    table = make(local, [(1, "A", 0)])
    lost = Path(local.root) / "00000000_v1$abcdefghijklmnop$dataset"
    (lost / "data").mkdir(parents=True)
    orphans = timedelta(hours=1)

    table.maintenance.remove_orphans(orphans, progress=False)
    assert lost.exists(), "a writer may be about to fill it"
    grow_old(Path(local.root))
    table.maintenance.remove_orphans(orphans, dry_run=True, progress=False)
    assert lost.exists()
    table.maintenance.remove_orphans(orphans, progress=False)

    assert not lost.exists()
    assert content(table) == {(1, "A", 0): 1}
