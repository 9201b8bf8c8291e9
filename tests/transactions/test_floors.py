"""Collectors beside writers: a commit that succeeds is there, and one whose files may be gone is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

import lancepart as lp
from lancepart.commit import distributed_write, watch, writers
from lancepart.commit.floors import CollectedError, Floor
from lancepart.errors import CommitConflictError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.format.names import FEATURES, FLOORS, FORMAT
from lancepart.layout import metadata as definition
from lancepart.maintain import collect
from lancepart.storage import history, snapshot
from lancepart.storage.files import Files
from lancepart.storage.manifest import FRESH_SECONDS, Manifest
from lancepart.storage.root import Root
from tests.conformance.draft import appendix
from tests.support import s3
from tests.support.catalogs import Place
from tests.support.interleave import ACTED, DONE, PLANNED, Stepper
from tests.support.tiers import one_in
from tests.transactions.aged import DAY, grow_old
from tests.transactions.tables import assert_whole, content, data, make, opened

HOUR, NOW = timedelta(hours=1), timedelta(0)
ROWS = [(1, "A", 10), (2, "A", 20), (3, "B", 30)]

Act = Callable[[Any], Any]


def orphans(table: Any, older_than: Any = HOUR) -> Any:
    return table.maintenance.remove_orphans(older_than, progress=False)


def expire(table: Any, older_than: Any = HOUR) -> Any:
    return table.maintenance.expire(older_than, progress=False)


def append(tx: Any) -> None:
    tx.append(data([(7, "A", 1)]))


def create(tx: Any) -> None:
    tx.append(data([(7, "Z", 1)]))


def delete(tx: Any) -> None:
    tx.delete("id = 1")


def update(tx: Any) -> None:
    tx.update({"x": "x + 1", "bank": "'Z'"}, "id IN (1, 3)")


def upsert(tx: Any) -> None:
    tx.upsert(data([(1, "A", 5), (8, "Z", 6)]), ["id"])


def overwrite(tx: Any) -> None:
    tx.overwrite(data([(9, "A", 1)]))


def replace(tx: Any) -> None:
    tx.overwrite(data([(2, "A", 1)]), "id < 3")


@pytest.mark.parametrize("collector", [expire, orphans])
@pytest.mark.parametrize("write", one_in(3, [append, create, delete, update, upsert, overwrite, replace]))
def test_a_writer_whose_files_were_collected_is_refused_and_nothing_is_lost(
    local: Place, write: Act, collector: Act
) -> None:
    table = make(local, ROWS)
    slow = table.transaction()
    write(slow)
    grow_old(Path(local.root))

    collector(opened(local))

    if collector is expire and write is create:
        slow.commit()
        assert sum(content(table).values()) == 4
    else:
        with pytest.raises(CollectedError, match="nothing was changed: run it again"):
            slow.commit()
        assert content(table) == Counter(ROWS)
    assert_whole(table)
    with table.transaction() as again:
        write(again)
    assert_whole(table)
    assert orphans(table, NOW).kept == ()


@pytest.mark.parametrize("collector", [expire, orphans])
@pytest.mark.parametrize("mode", one_in(4, ["append", "overwrite", "upsert", "replace"]))
def test_a_job_whose_files_were_collected_is_refused(local: Place, mode: str, collector: Act) -> None:
    table = make(local, ROWS)
    job = distributed_write.plan(table._manifest, mode=mode, on=("id",) if mode == "upsert" else ())
    report = distributed_write.write(job, data([(1, "A", 5), (7, "Z", 6)]))
    table.append(data([(4, "A", 40)]))
    before = content(table)
    grow_old(Path(local.root))

    collector(opened(local))

    with pytest.raises(CommitConflictError, match=r"run it again|changed by another writer"):
        distributed_write.commit(opened(local)._manifest, job, [report])
    assert content(table) == before
    assert_whole(table)


def test_a_job_that_is_published_on_a_newer_snapshot_is_still_known_to_have_begun_before(local: Place) -> None:
    """An upsert whose reads went stale is done again on the latest snapshot, with the files of its first one."""
    table = make(local, ROWS)
    job = distributed_write.plan(table._manifest, mode="upsert", on=("id",))
    report = distributed_write.write(job, data([(1, "A", 5)]))
    grow_old(Path(local.root))
    orphans(opened(local))
    table.append(data([(1, "B", 40), (5, "C", 0)]))

    with pytest.raises(CommitConflictError, match="run it again"):
        distributed_write.commit(opened(local)._manifest, job, [report])
    assert_whole(table)


@pytest.mark.slow
def test_a_job_that_began_at_a_tagged_snapshot_meets_commits_that_were_cleaned_away(local: Place) -> None:
    """The tag keeps the job's snapshot, and not those after it, by which Lance would find the conflict."""
    table = make(local, ROWS)
    job = distributed_write.plan(table._manifest)
    table.tags.create("start", job.version)
    more = [(number, "A", number) for number in range(40, 49)]
    for row in more:
        table.append(data([row]))
    table.delete("id = 1")
    grow_old(Path(local.root))
    expire(table)
    assert job.version + 1 not in history.versions(table._manifest)
    report = distributed_write.write(job, data([(5, "A", 50), (6, "Z", 60)]))

    distributed_write.commit(opened(local)._manifest, job, [report])

    assert content(table) == Counter([*ROWS[1:], *more, (5, "A", 50), (6, "Z", 60)])
    assert_whole(table)


def hours_later(place: Place, job: Any, hours: float) -> Any:
    """A job as it is some hours after what it did so far."""
    grow_old(Path(place.root), hours * 3600)
    return dataclasses.replace(job, began=job.began - hours * 3600)


def test_collectors_wait_for_a_job_that_says_that_it_takes_long(local: Place) -> None:
    table = make(local, ROWS)
    job = distributed_write.plan(table._manifest)
    reports = [distributed_write.write(job, data([(5, "A", 50), (6, "Z", 60)]))]
    table.append(data([(4, "A", 40)]))
    job = hours_later(local, job, 2)
    reports += [distributed_write.write(job, data([(number, "A", 0)])) for number in (7, 8)]
    job = hours_later(local, job, 1)
    table.delete("id = 1")

    for collector in (expire, orphans, expire):
        assert collector(opened(local)).removed_files == 0

    assert len(writers.entered(table._manifest.snapshot())) == 1
    distributed_write.commit(opened(local)._manifest, job, reports)
    wanted = [*ROWS[1:], (4, "A", 40), (5, "A", 50), (6, "Z", 60), (7, "A", 0), (8, "A", 0)]
    assert content(table) == Counter(wanted)
    assert writers.entered(table._manifest.snapshot()) == []
    grow_old(Path(local.root))
    assert expire(table).removed_files > 0
    assert_whole(table)


def test_collectors_do_not_wait_for_a_job_for_ever(local: Place) -> None:
    table = make(local, ROWS)
    job = distributed_write.plan(table._manifest)
    report = distributed_write.write(dataclasses.replace(job, began=0.0), data([(5, "A", 50)]))
    assert len(writers.entered(table._manifest.snapshot())) == 1
    job = hours_later(local, job, 25)

    expire(table)

    assert writers.entered(table._manifest.snapshot()) == []
    with pytest.raises(CollectedError):
        distributed_write.commit(opened(local)._manifest, job, [report])
    assert_whole(table)


@pytest.mark.parametrize("write", one_in(2, [append, create, upsert, replace]))
def test_a_verb_whose_files_were_collected_does_itself_again(local: Place, write: Act) -> None:
    make(local, ROWS)
    expected = make(Place(f"{local.root}-other"), ROWS)
    write(expected)
    writer = Stepper(Root.parse(local.root, None), lambda manifest: write(lp.PartitionedTable(manifest)))
    writer.until(ACTED)
    grow_old(Path(local.root))
    orphans(opened(local))

    writer.until(DONE)

    assert writer.error is None
    assert content(opened(local)) == content(expected)
    assert_whole(opened(local))


@pytest.mark.parametrize("collector", [expire, orphans])
@pytest.mark.parametrize("write", one_in(3, [append, create, update]))
def test_whoever_comes_first_wins_and_both_know(local: Place, write: Act, collector: Act) -> None:
    """The collector has listed the files of a slow writer, which publishes before the floor, or after it."""
    for first in ("writer", "collector"):
        place = Place(f"{local.root}-{first}")
        table = make(place, ROWS)
        slow = table.transaction()
        write(slow)
        grow_old(Path(place.root))
        other = Stepper(Root.parse(place.root, None), lambda manifest: collector(lp.PartitionedTable(manifest)))
        other.until(PLANNED)
        if first == "collector":
            other.until(DONE)
        try:
            slow.commit()
            done = True
        except CollectedError:
            done = False
        other.until(DONE)

        assert other.error is None
        assert sum(content(opened(place)).values()) == (3 if not done or write is update else 4)
        assert done or first == "collector"
        assert_whole(opened(place))
        grow_old(Path(place.root))
        orphans(opened(place))
        assert_whole(opened(place))


def test_a_writer_whose_files_are_young_is_not_minded(local: Place) -> None:
    table = make(local, ROWS)
    append(table.transaction())
    create(table.transaction())
    grow_old(Path(local.root))
    young = table.transaction()
    append(young)
    create(young)

    assert orphans(opened(local)).removed_files > 0

    young.commit()
    assert content(table) == Counter([*ROWS, (7, "A", 1), (7, "Z", 1)])
    assert_whole(table)


def test_a_floor_stands_where_something_was_collected_stays_there_and_rises(local: Place) -> None:
    table = make(local, ROWS)
    append(table.transaction())
    grow_old(Path(local.root))
    assert floors(table) == {"A": None, "B": None, None: None}

    orphans(table)
    first = floors(table)
    table.append(data([(4, "A", 1), (5, "B", 1)]))
    table.delete("id = 4")
    table.maintenance.compact(progress=False)
    assert floors(table) == first
    assert (first["A"] is None, first["B"], first[None]) == (False, None, None)

    create(table.transaction())
    delete(table.transaction())
    grow_old(Path(local.root))
    orphans(table)
    table.append(data([(9, "N", 1)]))
    last = floors(table)
    assert last["A"].version > first["A"].version
    assert last["A"].time > first["A"].time
    assert last["N"] == last[None] == last["A"]


def floors(table: Any) -> dict[str | None, Floor | None]:
    """The floor of each leaf, by its bank, and that of the fence."""
    now = table._manifest.snapshot()
    leaves = {leaf.values[0]: leaf.object_id for leaf in table.scan().plan().leaves}
    return {name: Floor.of(now.row(key).metadata) for name, key in {**leaves, None: "v1"}.items()}


def test_a_floor_makes_a_table_require_clients_that_know_of_it(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(local, ROWS)
    older = sorted(FEATURES - {FLOORS})
    table._manifest.set_properties({FORMAT: json.dumps({"version": 1, "features": older})})
    assert content(opened(local)) == Counter(ROWS)
    orphans(opened(local))
    assert json.loads(table._manifest.snapshot().properties[FORMAT])["features"] == older

    append(table.transaction())
    grow_old(Path(local.root))
    orphans(opened(local))

    assert set(json.loads(table._manifest.snapshot().properties[FORMAT])["features"]) == FEATURES
    table.append(data([(4, "A", 1)]))
    definition._read.cache_clear()
    monkeypatch.setattr(definition, "FEATURES", frozenset(older))
    with pytest.raises(UnsupportedOperationError, match="floors"):
        opened(local)
    definition._read.cache_clear()


def test_the_collectors_own_clock_does_not_matter(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight days ahead it would take what was written a moment ago for old, and every snapshot but the latest."""
    table = make(local, ROWS)
    first = table.version
    table.append(data([(4, "B", 1)]))
    writer = table.transaction()
    append(writer)
    create(writer)

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=8)

    monkeypatch.setattr(collect, "datetime", Ahead)
    assert orphans(opened(local), timedelta(days=7)).removed_files == 0
    assert expire(opened(local), timedelta(days=7)).removed_files == 0

    writer.commit()
    assert content(opened(local, first)) == Counter(ROWS)
    assert_whole(table)


@pytest.mark.slow
def test_snapshots_are_as_old_as_the_store_says_and_never_older_than_those_before_them(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as old as a writer whose clock is hours behind says; a file that the store dates back does not count."""
    table = make(local, ROWS)
    versions = [table.append(data([(number, "A", 0)])) for number in range(10, 16)]
    past = {version: content(opened(local, version)) for version in versions}
    for _ in range(3):
        grow_old(Path(local.root))
    for back, version in ((30, versions[0]), (20, versions[1]), (40, versions[2]), (2, versions[3]), (1, versions[4])):
        name = f"{(1 << 64) - 1 - version}.manifest"
        then = datetime.now(UTC).timestamp() - back * 3600
        os.utime(Path(local.root) / "__manifest" / "_versions" / name, (then, then))
    monkeypatch.setattr(history, "timestamp", lambda *_: pytest.fail("a writer's clock was asked"))

    stored = history.stored(table._manifest)
    assert [version for version, _ in stored] == history.versions(table._manifest)
    assert [taken for _, taken in stored] == sorted(taken for _, taken in stored)
    expire(table, timedelta(hours=10))

    assert history.versions(table._manifest)[0] == versions[2]
    for version in versions[2:]:
        assert content(opened(local, version)) == past[version]


def make_manifest(place: Place) -> Manifest:
    return Manifest(Root.parse(place.root, None))


def test_a_snapshot_grows_old_while_the_machine_sleeps(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = make(local, ROWS)._manifest
    opened_before = manifest.snapshot()
    assert manifest._is_fresh(opened_before)
    slept = snapshot.awake() + FRESH_SECONDS + 1

    monkeypatch.setattr(snapshot, "awake", lambda: slept)

    assert not manifest._is_fresh(opened_before)


def test_a_dry_run_writes_nothing(local: Place) -> None:
    table = make(local, ROWS)
    append(table.transaction())
    create(table.transaction())
    grow_old(Path(local.root))

    def all_files() -> dict[str, int]:
        found = (os.path.join(folder, name) for folder, _, names in os.walk(local.root) for name in names)
        return {path: os.stat(path).st_mtime_ns for path in found}

    before = all_files()
    counted = table.maintenance.remove_orphans(HOUR, dry_run=True, progress=False)

    assert counted.removed_files > 0
    assert all_files() == before
    assert orphans(table) == counted


@pytest.mark.slow
def test_a_partition_that_went_and_came_back_is_collected_like_any_other(local: Place) -> None:
    table = make(local, ROWS)
    table.tags.create("start", table.version)
    table.delete("bank = 'A'")
    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    assert [leaf.values for leaf in table.scan().plan().leaves] == [("B",)]
    gone = table.version
    table.append(data([(5, "A", 50)]))
    table.append(data([(6, "A", 60)]))
    append(table.transaction())
    grow_old(Path(local.root))

    for report in (orphans(table), collect.expire(table._manifest, NOW, safe_age=NOW, progress=False), orphans(table)):
        assert report.kept == ()

    assert content(opened(local, "start")) == Counter(ROWS)
    assert content(table) == Counter([(3, "B", 30), (5, "A", 50), (6, "A", 60)])
    assert_whole(table)
    assert gone < table.version
    table.tags.delete("start")
    grow_old(Path(local.root))
    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    orphans(table)
    leaves = {leaf.location for leaf in table.scan().plan().leaves}
    assert set(os.listdir(local.root)) == {"__manifest", *leaves}


@pytest.mark.slow
def test_a_partition_whose_directory_is_gone_comes_back(local: Place) -> None:
    table = make(local, ROWS)
    table.delete("bank = 'A'")
    for _ in range(2):
        table.append(data([(9, "B", 0)]))
        collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    orphans(table, NOW)
    assert len(os.listdir(local.root)) == 2
    table.append(data([(5, "A", 50)]))
    grow_old(Path(local.root))

    assert orphans(table).kept == ()
    assert expire(table).kept == ()
    assert_whole(table)


def test_a_leaf_that_cannot_be_read_is_kept_whole_and_reported_and_the_others_are_collected(local: Place) -> None:
    table = make(local, ROWS)
    table.append(data([(4, "A", 1), (5, "B", 1)]))
    tx = table.transaction()
    tx.append(data([(6, "A", 1), (7, "B", 1)]))
    grow_old(Path(local.root))
    broken, other = sorted(table.scan().plan().leaves, key=lambda leaf: leaf.values)
    (Path(local.root) / broken.location / "_versions" / f"d{broken.read_version}.manifest").unlink()
    there = set(Files(table._manifest.root).walk(broken.location))

    report = orphans(table)

    assert len(report.kept) == 1
    assert report.kept[0].startswith(broken.location)
    assert set(Files(table._manifest.root).walk(broken.location)) == there
    assert report.removed_files > 0
    assert content(table, "bank = 'B'") == Counter([(3, "B", 30), (5, "B", 1)])
    assert orphans(table).removed_files == 0
    assert other.location not in report.kept[0]


def test_the_transactions_of_leaves_go_with_their_versions(local: Place) -> None:
    table = make(local, ROWS)
    for _ in range(5):
        table.update({"x": "x + 1"}, "bank = 'A'")
    grow_old(Path(local.root))

    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)

    leaf = next(leaf for leaf in table.scan().plan().leaves if leaf.values == ("A",))
    assert len(os.listdir(Path(local.root) / leaf.location / "_transactions")) == 2
    assert_whole(table)


@pytest.mark.slow
def test_all_kept_snapshots_of_an_upgraded_draft_stay_readable(local: Place) -> None:
    appendix.write_leaves(local.root)
    first, second = (f"{local.root}/{appendix.LOCATIONS[leaf]}" for leaf in (appendix.V1_LEAF, appendix.V2_LEAF))
    branch = lance.dataset(first).create_branch("dev", 2)
    branch = lance.write_dataset(appendix.events((77, appendix.DAY, "US")), branch, mode="append")
    pointers = {"v1": {"read_branch": "dev", "read_version": branch.version}, "v2": {"read_version": 1}}
    appendix.write_manifest(local.root, appendix.appendix_c(**pointers))
    manifest = make_manifest(local)
    draft = lp.open_table(local.root)
    for number in (30, 31, 32):
        draft.append(appendix.events((number, appendix.DAY, "US"), (number + 100, appendix.DAY, "FR")))
        draft.delete(f"id = {number - 1}")
    lance.write_dataset(lance.dataset(first).to_table(), first, mode="overwrite")
    lance.write_dataset(lance.dataset(second).to_table(), second, mode="overwrite")
    table = lp.upgrade(local.root)
    table.delete("id = 2")
    past = {version: shown(local, version) for version in history.versions(manifest) if readable(local, version)}
    assert len(past) > 6
    grow_old(Path(local.root))

    report = orphans(table, HOUR)

    assert report.kept == ()
    assert {version: shown(local, version) for version in past} == past
    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    assert shown(local, None) == past[max(past)]
    table.append(appendix.events((40, appendix.DAY, "US")))
    assert sorted([*past[max(past)], 40]) == shown(local, None)


def shown(place: Place, version: int | None) -> list[int]:
    return appendix.ids(opened(place, version))


def readable(place: Place, version: int) -> bool:
    return definition.is_partitioned(make_manifest(place).snapshot(version).properties)


def test_times_of_floors_are_the_stores(local: Place) -> None:
    """Half a day after everything was written, a floor of an hour is half a day less an hour after it."""
    table = make(local, ROWS)
    append(table.transaction())
    newest = max(info.modified for info in Files(table._manifest.root).walk(""))
    grow_old(Path(local.root))
    orphans(table)
    floor = floors(table)["A"]
    assert floor is not None
    assert abs(floor.time + HOUR - newest) < timedelta(seconds=DAY / 24)
    assert floor.time < datetime.now(UTC)


@pytest.mark.slow
def test_collectors_and_writers_meet_on_an_object_store_too(s3_server: s3.Server) -> None:
    place = s3_server.place()
    table = make(place, ROWS)
    old, young = table.transaction(), table.transaction()
    for tx in (old, young):
        append(tx)
        create(tx)

    assert orphans(opened(place)).removed_files == 0
    young.commit()
    assert orphans(opened(place), NOW).removed_files > 0

    with pytest.raises(CollectedError):
        old.commit()
    assert content(table) == Counter([*ROWS, (7, "A", 1), (7, "Z", 1)])
    assert_whole(table)
    collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    assert len(history.versions(table._manifest)) <= 3
    assert_whole(table)


@pytest.mark.slow
def test_snapshots_before_an_earlier_mark_are_kept_for_their_tags_only(local: Place) -> None:
    """A partition that went since the tag, and whose directory is gone, is no partition that can't be read."""
    table = make(local, ROWS)
    table.tags.create("start", table.version)
    table.update({"x": "0"}, "bank = 'A'")
    table.delete("bank = 'A'")
    for _ in range(2):
        table.append(data([(9, "B", 0)]))
        collect.expire(table._manifest, NOW, safe_age=NOW, progress=False)
    grow_old(Path(local.root))
    orphans(table)
    table.append(data([(5, "A", 50)]))

    assert expire(table, timedelta(days=300)).kept == ()
    assert content(opened(local, "start")) == Counter(ROWS)
    assert_whole(table)


def hours_pass(place: Place, tx: Any, hours: float) -> None:
    """Let a transaction and all files look as they do some hours later."""
    grow_old(Path(place.root), hours * 3600)
    tx.began -= hours * 3600
    tx.entry._began -= hours * 3600
    tx.entry._renewed = None if tx.entry._renewed is None else tx.entry._renewed - hours * 3600


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_transaction_that_waits_is_entered_by_a_thread_and_collectors_wait_for_it(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(watch, "_WATCH", watch._Watch())
    table = make(local, ROWS)
    tx = table.transaction()
    append(tx)
    create(tx)
    assert writers.entered(table._manifest.snapshot()) == []

    hours_pass(local, tx, 3)
    eventually(lambda: bool(writers.entered(table._manifest.snapshot())))
    for collector in (expire, orphans):
        assert collector(opened(local)).removed_files == 0

    tx.commit()
    assert content(table) == Counter([*ROWS, (7, "A", 1), (7, "Z", 1)])
    assert writers.entered(table._manifest.snapshot()) == []
    assert_whole(table)


def test_an_entry_is_renewed_for_as_long_as_the_transaction_is_open(local: Place) -> None:
    table = make(local, ROWS)
    tx = table.transaction()
    append(tx)
    for _ in range(6):
        hours_pass(local, tx, 7)
        tx.entry.keep()
        (entered,) = writers.entered(table._manifest.snapshot())
        tx.entry.keep()
        assert writers.entered(table._manifest.snapshot()) == [entered]

    assert orphans(opened(local)).removed_files == 0
    tx.commit()
    assert content(table) == Counter([*ROWS, (7, "A", 1)])


def fail(tx: Any) -> None:
    tx.__exit__(ZeroDivisionError, None, None)


def commit_nothing(tx: Any) -> None:
    tx.works.clear()
    tx.commit()


def conflict(tx: Any) -> None:
    opened(Place(tx.manifest.root.uri)).delete("id = 1")
    with pytest.raises(CommitConflictError):
        tx.commit()


@pytest.mark.parametrize("end", [fail, commit_nothing, conflict])
def test_the_entry_of_a_transaction_that_does_not_commit_goes(local: Place, end: Act) -> None:
    table = make(local, ROWS)
    tx = table.transaction()
    tx.overwrite(data([(7, "A", 1)]))
    hours_pass(local, tx, 1)
    tx.entry.keep()
    assert len(writers.entered(table._manifest.snapshot())) == 1

    end(tx)

    assert writers.entered(table._manifest.snapshot()) == []


def test_a_commit_that_was_frozen_for_hours_meets_what_came_meanwhile(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots that expired are forgotten at once, but the versions by which conflicts are found stay for a day."""
    table = make(local, ROWS)
    merged = Manifest._merged

    def frozen(self: Manifest, *given: Any) -> Any:
        monkeypatch.setattr(Manifest, "_merged", merged)
        other = opened(local)
        past = [other.append(data([(number, "A", 0)])) for number in range(10, 14)]
        grow_old(Path(local.root), 2 * 3600)
        other.append(data([(14, "A", 0)]))
        assert expire(other).changed >= 3
        with pytest.raises(TableVersionNotFoundError, match="has expired"):
            opened(local, past[0])
        assert past[0] not in other.inspect.snapshots()["version"].to_pylist()
        given[-1].opened -= 2 * 3600
        return merged(self, *given)

    monkeypatch.setattr(Manifest, "_merged", frozen)
    table.append(data([(7, "A", 1)]))

    assert content(table) == Counter([*ROWS, *((number, "A", 0) for number in range(10, 15)), (7, "A", 1)])
    assert_whole(table)
    grow_old(Path(local.root), 2 * DAY)
    expire(table)
    assert len(history.stored(table._manifest)) <= 3


@pytest.mark.slow
def test_a_transaction_whose_snapshot_has_expired_is_refused_as_one(local: Place) -> None:
    table = make(local, ROWS)
    tx = opened(local).transaction()
    tx.upsert(data([(1, "B", 5)]), ["id"])
    for number in range(10, 30):
        table.append(data([(number, "C", 0)]))
    grow_old(Path(local.root), 3 * DAY)
    table.append(data([(30, "C", 0)]))
    expire(table)
    tx.snapshot._seen.clear()

    with pytest.raises(CollectedError, match="begin it again"):
        tx.commit()
    assert_whole(table)
