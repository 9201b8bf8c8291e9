"""Jobs that are run again under the same key commit once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import lancepart as lp
from lancepart.commit.actions import Append
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.perform import perform
from lancepart.errors import CommitConflictError, InvalidInputError, UnsupportedOperationError
from lancepart.maintain import collect
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change
from lancepart.storage.translate import ConflictError
from lancepart.table import PartitionedTable
from tests.support.catalogs import Place
from tests.transactions.tables import assert_whole, content, data, make, opened

ROW = (1, "A", 1)


def test_a_job_run_again_under_its_key_commits_once(place: Place) -> None:
    table = make(place)

    first = table.append(data([ROW]), idempotency_key="load 2026-01-01")
    again = opened(place).append(data([ROW]), idempotency_key="load 2026-01-01")

    assert content(table) == Counter([ROW])
    assert again == first == table.version


def test_other_keys_are_other_jobs(local: Place) -> None:
    table = make(local)
    for key in ("a", "b", "it's $ / 🎉"):
        table.append(data([ROW]), idempotency_key=key)

    assert content(table) == Counter({ROW: 3})


def test_every_verb_takes_a_key_and_one_key_is_one_job_whatever_it_does(local: Place) -> None:
    table = make(local, [ROW, (2, "B", 2)])
    for _ in range(2):
        table.update({"x": "x + 1"}, idempotency_key="update")
        table.upsert(data([(3, "C", 0)]), on=["id"], idempotency_key="upsert")
        table.overwrite(data([(4, "A", 4)]), idempotency_key="overwrite")
        table.delete("id = 2", idempotency_key="delete")
        table.append(data([ROW]), idempotency_key="delete")

    assert content(table) == Counter([(4, "A", 4), (3, "C", 0)])
    assert len(table.inspect.snapshots().filter(lp_is(table, "update"))) == 1


def lp_is(table: lp.PartitionedTable, operation: str) -> Any:
    import pyarrow.compute as pc

    return pc.equal(table.inspect.snapshots().column("operation"), operation)


def test_a_run_that_changes_nothing_is_recorded_too(local: Place) -> None:
    table = make(local, [ROW])
    before = table.version

    first = table.delete("id = 99", idempotency_key="clean")
    table.append(data([(99, "A", 0)]))
    table.delete("id = 99", idempotency_key="clean")

    assert first is not None
    assert first > before
    assert content(table) == Counter([ROW, (99, "A", 0)])
    assert table.inspect.snapshots().to_pylist()[-2]["partitions"] == 0


def test_a_transaction_takes_a_key(local: Place) -> None:
    table = make(local)
    for _ in range(2):
        with table.transaction(idempotency_key="both") as tx:
            tx.append(data([ROW]))
            tx.append(data([(2, "B", 2)]))

    assert content(table) == Counter([ROW, (2, "B", 2)])
    assert_whole(table)


def test_many_at_once_under_one_key_commit_once(local: Place) -> None:
    make(local, [ROW])
    with ThreadPoolExecutor(6) as pool:
        versions = list(
            pool.map(lambda n: opened(local).append(data([(2, "AB"[n % 2], 2)]), idempotency_key="race"), range(6))
        )

    assert sum(content(opened(local), "id = 2").values()) == 1
    assert all(version <= opened(local).version for version in versions)
    assert_whole(opened(local))


def test_a_key_outlives_the_snapshots(local: Place) -> None:
    table = make(local)
    table.append(data([ROW]), idempotency_key="old")
    table.update({"x": "2"})
    table.append(data([(2, "A", 2)]))
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)

    table.append(data([ROW]), idempotency_key="old")

    assert content(table) == Counter([(1, "A", 2), (2, "A", 2)])


def test_a_sequence_commits_each_number_once_in_one_row(local: Place) -> None:
    table = make(local)

    def batch(number: int, rows: list[Any]) -> None:
        idempotency = IdempotencyKey(key="query", sequence=number)
        perform(table._manifest, Append(data=data(rows)), idempotency=idempotency)

    for number in (0, 1, 1, 0, 2, 2, 3):
        batch(number, [] if number == 2 else [(number, "A", 0)])

    assert content(table) == Counter([(0, "A", 0), (1, "A", 0), (3, "A", 0)])
    assert len([item for item in table._manifest.snapshot().ids("", "table_version") if "once" in item]) == 1


def test_an_answer_lost_after_the_commit_is_found_out(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(local, [ROW])
    publish = Manifest.publish

    def lost(self: Manifest, *args: Any) -> int:
        publish(self, *args)
        monkeypatch.setattr(Manifest, "publish", publish)
        raise OSError("the answer was lost")

    monkeypatch.setattr(Manifest, "publish", lost)
    with pytest.raises(OSError, match="lost"):
        table.append(data([(2, "A", 2)]), idempotency_key="lost")
    table.append(data([(2, "A", 2)]), idempotency_key="lost")

    assert content(table) == Counter([ROW, (2, "A", 2)])


def test_a_key_that_is_no_text_is_refused(local: Place) -> None:
    table = make(local)
    with pytest.raises(InvalidInputError, match="idempotency key"):
        table.append(data([ROW]), idempotency_key="")
    assert content(table) == Counter()


def test_weak_tables_have_no_keys(local: Place) -> None:
    table = make(local, mode="weak")
    with pytest.raises(UnsupportedOperationError, match="strong"):
        table.append(data([ROW]), idempotency_key="k")
    assert content(table) == Counter()


def test_several_keys_of_one_commit_are_done_together(local: Place) -> None:
    table = make(local)
    idempotency = IdempotencyKey(key="file 1", additional_keys=("file 2", "file 3"))
    for _ in range(2):
        perform(table._manifest, Append(data=data([ROW])), idempotency=idempotency)
    assert content(table) == Counter([ROW])
    for key in ("file 1", "file 2", "file 3"):
        assert IdempotencyKey(key=key).is_done(table._manifest.snapshot())
    with pytest.raises(CommitConflictError, match="not all"):
        perform(
            table._manifest,
            Append(data=data([ROW])),
            idempotency=IdempotencyKey(key="x", additional_keys=("file 2",)),
        )
    assert content(table) == Counter([ROW])


def test_a_commit_whose_answer_is_lost_is_found_although_others_wrote_the_fence_since(local: Place) -> None:
    """The first commit inserts the fence's row, which the next one changes."""
    table = make(local)
    table._manifest.transact(lambda snapshot, retry: (Change(deletes=("v1",)), None))

    class Unheard(Manifest):
        lost = False

        def publish(self, snapshot: Any, change: Any) -> int:
            version = super().publish(snapshot, change)
            if not self.lost:
                self.lost = True
                opened(local).append(data([(2, "B", 2)]))
                raise ConflictError("the answer got lost")
            return version

    PartitionedTable(Unheard(table._manifest.root)).append(data([(1, "A", 1)]))

    assert content(table) == Counter([(1, "A", 1), (2, "B", 2)])
    assert_whole(table)
