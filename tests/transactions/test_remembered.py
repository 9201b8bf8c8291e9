"""What a writer still knows of the manifest after its own commits is what stands there."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from lancepart.layout import create
from lancepart.layout.leaves import candidates
from lancepart.layout.versions import newer_versions
from lancepart.storage import manifest_maintenance, snapshot
from lancepart.storage.snapshot import Snapshot
from tests.support.catalogs import Place
from tests.support.tiers import one_in
from tests.transactions.tables import assert_whole, data, make, manifest, opened


def assert_true(known: Snapshot, place: Place) -> int:
    """Compare what is remembered with what is read; how many rows that are."""
    fresh = manifest(place).snapshot(known.version)
    assert not fresh.rows(known._absent)
    assert not newer_versions(fresh, known._settled)
    for spec in create.load(known).specs:
        followed = candidates(known, spec, None).sort_by("object_id").to_pylist()
        assert followed == candidates(fresh, spec, None).sort_by("object_id").to_pylist()
    rows = {row["object_id"]: row for table in known._seen for row in table.to_pylist()}
    assert {row["object_id"]: row for row in fresh.table_of(sorted(rows)).to_pylist()} == rows
    return len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_what_is_remembered_is_so(local: Place, seed: int) -> None:
    dice = random.Random(seed)
    table = make(local, [(number, "ABCD"[number % 4], 0) for number in range(8)])
    remembered = 0
    for number in range(40):
        bank = dice.choice("ABCDEF")
        match dice.randrange(7):
            case 0:
                table.delete(f"bank = '{bank}'")
            case 1:
                table.upsert(data([(dice.randrange(8), bank, number)]), ["id"])
            case 2:
                with table.transaction() as tx:
                    tx.append(data([(100 + number, bank, 0)]))
                    tx.append(data([(100 + number, "A", 0)]))
            case 3 if number % 3 == 0:
                opened(local).append(data([(100 + number, bank, 1)]))
            case 4 if number % 5 == 0:
                table.maintenance.expire(timedelta(0), progress=False)
            case _:
                table.append(data([(100 + number, bank, 0)]))
        known = table._manifest._latest
        assert known is not None
        remembered += assert_true(known, local)
    assert remembered > 40
    assert_whole(table)


@pytest.mark.slow
def test_the_newest_numbers_of_leaves_are_remembered_without_their_rows(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, [(number, "ABCD"[number % 4], 0) for number in range(8)])
    monkeypatch.setattr(snapshot, "_REMEMBERED", 0)
    for number in range(6):
        table.upsert(data([(number, "ABCD"[number % 4], number)]), ["id"])
        opened(local).append(data([(100 + number, "A", 1)]))
        table.append(data([(200 + number, "AE"[number % 2], 1)]))
        known = table._manifest._latest
        assert known is not None
        assert_true(known, local)
        assert not known._seen
        assert known._settled
    assert_whole(table)


def test_a_listing_of_leaves_follows_commits_and_is_not_read_again(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, [(number, "ABCD"[number % 4], 0) for number in range(8)])
    table.append(data([(99, "C", 0)]))
    for bank in "ABCD":
        table.scan(f"bank = '{bank}'").count()
    read: list[str | None] = []
    plain = Snapshot.scan
    monkeypatch.setattr(
        Snapshot, "scan", lambda self, where, *rest, **more: read.append(where) or plain(self, where, *rest, **more)
    )
    for number in range(5):
        table.append(data([(100 + number, "AE"[number % 2], 0)]))
        read.clear()
        found = [table.scan(f"bank = '{bank}'").count() for bank in "ABE"]
        assert found == [3 + number // 2, 2, (number + 1) // 2]
        assert not [where for where in read if "= 'table' " in f"{where} "]
    table.delete("bank = 'B'")
    table.scan("bank = 'B'").count()
    opened(local).append(data([(300, "F", 0)]))
    assert table.scan("bank = 'F'").count() == 1
    assert_whole(table)


@pytest.fixture
def uncompacted(local: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table whose manifest has many fragments."""
    monkeypatch.setattr(manifest_maintenance, "EVERY", 10_000)
    table = make(local, [(1, "A", 0)])
    for number in range(manifest_maintenance.FRAGMENTS):
        table.append(data([(number, "A", 0)]))
    return table


def test_a_compaction_of_the_manifest_keeps_what_is_known(uncompacted: Any, local: Place) -> None:
    table = uncompacted
    before = table._manifest.snapshot()
    rows = sum(map(len, before._seen))

    assert manifest_maintenance.compact(table._manifest)

    after = table._manifest.snapshot()
    assert after is table._manifest._latest
    assert (after.version > before.version, sum(map(len, after._seen))) == (True, rows)
    assert assert_true(after, local) == rows


def test_a_compaction_beside_another_writer_forgets(
    uncompacted: Any, local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = uncompacted
    plan = manifest_maintenance.Compaction.plan

    def meanwhile(handle: object, options: object) -> object:
        found = plan(handle, options)
        opened(local).append(data([(50, "A", 0)]))
        return found

    monkeypatch.setattr(manifest_maintenance.Compaction, "plan", meanwhile)
    assert manifest_maintenance.compact(table._manifest)

    known = table._manifest.snapshot()
    assert_true(known, local)
    table.append(data([(51, "A", 0)]))
    assert opened(local).scan("id >= 50").count() == 2
    assert_whole(opened(local))
