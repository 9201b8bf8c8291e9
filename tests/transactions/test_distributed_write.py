"""Writes whose rows are written by several tasks and published by one commit."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from lancepart.commit import distributed_write
from lancepart.commit.conflicts import StaleReadError
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from tests.support.catalogs import Place
from tests.support.tiers import one_in
from tests.transactions.tables import Row, assert_whole, content, data, make, manifest, opened

OLD = [(1, "A", 1), (2, "A", 2), (3, "B", 3), (4, "C", 4)]
NEW = [(2, "A", 20), (3, "A", 30), (5, "D", 50), (6, "D", 60)]


def run(place: Place, tasks: Sequence[Sequence[Row]], *, before_commit: Any = None, **options: Any) -> Any:
    """Plan, let each task write in a world of its own, and commit; everything travels as bytes."""
    job = distributed_write.plan(manifest(place), **options)
    sent = pickle.dumps(job)
    answers = [pickle.dumps(distributed_write.write(pickle.loads(sent), data(rows))) for rows in tasks]
    if before_commit is not None:
        before_commit()
    return distributed_write.commit(manifest(place), pickle.loads(sent), map(pickle.loads, answers))


EXPECTED: dict[str, list[Row]] = {
    "append": [*OLD, *NEW],
    "overwrite": [*NEW, (3, "B", 3), (4, "C", 4)],
    "replace": NEW,
    "upsert": [(1, "A", 1), (4, "C", 4), *NEW],
}


@pytest.mark.quick
@pytest.mark.parametrize("mode", one_in(2, EXPECTED))
def test_tasks_write_and_one_commit_publishes(place: Place, mode: str) -> None:
    table = make(place, OLD)
    options = {"on": ["id"]} if mode == "upsert" else {}

    version = run(place, [NEW[:1], NEW[1:3], NEW[3:], []], mode=mode, **options)

    assert content(table) == Counter(EXPECTED[mode])
    assert version == table.version
    assert_whole(table)


def test_rows_that_match_a_filter_are_replaced(local: Place) -> None:
    table = make(local, OLD)
    run(local, [[(9, "A", 2)], [(8, "B", 1)]], mode="where", where="x <= 2")
    assert content(table) == Counter([(3, "B", 3), (4, "C", 4), (9, "A", 2), (8, "B", 1)])
    with pytest.raises(InvalidInputError, match="do not match"):
        run(local, [[(9, "A", 3)]], mode="where", where="x <= 2")
    assert_whole(table)


@pytest.mark.parametrize("mode", one_in(2, EXPECTED))
def test_nothing_is_seen_before_the_commit_nor_of_a_task_that_is_not_reported(local: Place, mode: str) -> None:
    table = make(local, OLD)
    options = {"on": ["id"]} if mode == "upsert" else {}
    job = distributed_write.plan(manifest(local), mode=mode, **options)
    distributed_write.write(job, data(NEW))
    assert content(table) == Counter(OLD)

    distributed_write.commit(manifest(local), job, [distributed_write.write(job, data(NEW))])

    assert content(table) == Counter(EXPECTED[mode])
    assert_whole(table)


@pytest.mark.parametrize(
    ("mode", "expected"),
    {
        "append": [*OLD, *NEW, (7, "A", 7), (8, "D", 8)],
        "replace": NEW,
        "upsert": [(1, "A", 1), (4, "C", 4), *NEW, (7, "A", 7), (8, "D", 8)],
    }.items(),
)
def test_others_commit_while_the_tasks_run(local: Place, mode: str, expected: list[Row]) -> None:
    table = make(local, OLD)
    options = {"on": ["id"]} if mode == "upsert" else {}

    def meanwhile() -> None:
        opened(local).append(data([(7, "A", 7), (8, "D", 8)]))

    run(local, [NEW[:2], NEW[2:]], mode=mode, before_commit=meanwhile, **options)

    assert content(table) == Counter(expected)
    assert_whole(table)


def test_a_key_that_another_writer_adds_meanwhile_is_replaced_too(local: Place) -> None:
    table = make(local, OLD)
    run(
        local,
        [NEW],
        mode="upsert",
        on=["id"],
        before_commit=lambda: opened(local).append(data([(5, "B", 0)])),
    )
    assert content(table, "id = 5") == Counter([(5, "D", 50)])


def test_tasks_complete_rows_that_name_some_columns(local: Place) -> None:
    table = make(local, OLD)
    job = distributed_write.plan(manifest(local), mode="upsert", on=["id"], columns=["id", "x"])
    tasks = [pa.table({"x": pa.array([10, 90], pa.int64()), "id": pa.array([1, 9], pa.int64())})]
    reports = [distributed_write.write(job, rows) for rows in tasks]

    distributed_write.commit(manifest(local), job, reports)

    assert content(table) == Counter([(1, "A", 10), *OLD[1:], (9, None, 90)])
    assert_whole(table)


@pytest.mark.parametrize("change", ["update", "insert"])
def test_rows_completed_by_what_another_writer_changed_are_not_committed(local: Place, change: str) -> None:
    table = make(local, OLD)
    job = distributed_write.plan(manifest(local), mode="upsert", on=["id"], columns=["id", "x"])
    report = distributed_write.write(job, pa.table({"x": pa.array([10], pa.int64()), "id": pa.array([1], pa.int64())}))
    if change == "update":
        opened(local).update({"bank": "'moved'"}, "id = 1")
    else:
        opened(local).append(data([(1, "Z", 7)]))
    before = content(table)

    with pytest.raises(StaleReadError):
        distributed_write.commit(manifest(local), job, [report])

    assert content(table) == before


def test_tasks_follow_columns_that_changed(local: Place) -> None:
    table = make(local, OLD)
    table.add_column(pa.field("note", pa.string()))
    table.drop_column("x")
    job = distributed_write.plan(manifest(local))
    rows = pa.table({"id": [10, 11], "bank": ["A", "E"], "note": ["a", "b"]})
    distributed_write.commit(
        manifest(local), job, [distributed_write.write(job, rows), distributed_write.write(job, rows)]
    )

    found = table.scan("id >= 10").to_arrow().sort_by("id").to_pylist()
    assert found == [
        {"id": 10, "bank": "A", "note": "a"},
        {"id": 10, "bank": "A", "note": "a"},
        {"id": 11, "bank": "E", "note": "b"},
        {"id": 11, "bank": "E", "note": "b"},
    ]
    assert table.scan("note IS NULL").count() == len(OLD)


def test_a_job_with_a_key_commits_once(local: Place) -> None:
    table = make(local, OLD)
    for _ in range(2):
        run(local, [NEW], idempotency=IdempotencyKey(key="job"))
    assert content(table) == Counter([*OLD, *NEW])
    assert distributed_write.plan(manifest(local), idempotency=IdempotencyKey(key="job")).done


def test_weak_tables_take_jobs_too(local: Place) -> None:
    table = make(local, OLD, mode="weak")
    assert run(local, [NEW[:2], NEW[2:]]) is None
    assert content(table) == Counter([*OLD, *NEW])
    run(local, [NEW[:2], NEW[2:]], mode="overwrite")
    assert content(table) == Counter(EXPECTED["overwrite"])


def test_what_cant_be_done_is_refused_before_any_task(local: Place) -> None:
    make(local, OLD)
    with pytest.raises(InvalidInputError, match="mode"):
        distributed_write.plan(manifest(local), mode="sideways")
    with pytest.raises(TableColumnNotFoundError, match="nope"):
        distributed_write.plan(manifest(local), mode="upsert", on=["nope"])
    with pytest.raises(InvalidInputError):
        distributed_write.plan(manifest(local), mode="where", where="bank = ")
