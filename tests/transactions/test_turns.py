"""Large commits get through beside small ones that never stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from lancepart.format.names import WAITING
from lancepart.storage import manifest_maintenance, turns
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable
from tests.support.catalogs import Place
from tests.support.processes import TORTURE
from tests.transactions.tables import assert_whole, content, data, make, opened

PARTITIONS = 2_000 if TORTURE else 12
PATIENCE = 60.0


class Overtaken(Manifest):
    """A manifest before each of whose commits another writer tries to; it goes on when that one did so, or waits."""

    def __init__(self, root: Root, other: Callable[[int], Any], waits: threading.Event) -> None:
        super().__init__(root)
        self.tries = 0
        self._other, self._waits = other, waits
        self.threads: list[threading.Thread] = []

    def publish(self, snapshot: Any, change: Any) -> int:
        self.tries += 1
        thread = threading.Thread(target=self._other, args=(self.tries,), daemon=True)
        self.threads.append(thread)
        thread.start()
        deadline = time.monotonic() + PATIENCE
        while thread.is_alive() and not self._waits.is_set():
            assert time.monotonic() < deadline
            thread.join(0.005)
        return super().publish(snapshot, change)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set while some writer waits for another one's turn."""
    found = threading.Event()
    sleep = time.sleep

    class Clock:
        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def sleep(seconds: float) -> None:
            found.set()
            sleep(seconds)

    monkeypatch.setattr(turns, "time", Clock)
    return found


def large(first: int) -> pa.Table:
    return data([(first + n, f"L{n}", n) for n in range(PARTITIONS)])


@pytest.mark.parametrize("kind", ["new partitions", "the same partitions", "one partition", "compaction"])
def test_a_commit_of_many_partitions_beside_small_ones_needs_few_tries(
    local: Place, waits: threading.Event, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make(local, [(1, "A", 1)])
    if kind == "compaction":
        monkeypatch.setattr(manifest_maintenance, "EVERY", 1)
        monkeypatch.setattr(manifest_maintenance, "FRAGMENTS", 2)
    written: list[Any] = []

    def small(number: int) -> None:
        bank = {"new partitions": f"S{number}", "the same partitions": f"L{number}"}.get(kind, "A")
        opened(local).append(data([(-number, bank, number)]))
        written.append((-number, bank, number))

    manifest = Overtaken(Root.parse(local.root, None), small, waits)
    PartitionedTable(manifest).append(large(100))
    for thread in manifest.threads:
        thread.join(PATIENCE)

    assert manifest.tries <= turns.LOST_TRIES + 1
    assert len(written) == manifest.tries
    table = opened(local)
    assert content(table) == dict.fromkeys(
        [(1, "A", 1), *((100 + n, f"L{n}", n) for n in range(PARTITIONS)), *written], 1
    )
    assert WAITING not in table._manifest.snapshot().properties
    assert_whole(table)


def test_an_upsert_that_is_done_again_and_again_gets_its_turn_too(local: Place, waits: threading.Event) -> None:
    """Its key does not decide the partition, so that every new partition makes it begin again."""
    make(local, [(1, "A", 1)])

    def small(number: int) -> None:
        opened(local).append(data([(-number, f"S{number}", number)]))

    manifest = Overtaken(Root.parse(local.root, None), small, waits)
    PartitionedTable(manifest).upsert(data([(1, "B", 2), (5, "C", 5)]), ["id"])
    for thread in manifest.threads:
        thread.join(PATIENCE)

    assert manifest.tries <= turns.LOST_TRIES + 1
    found = content(opened(local))
    assert {row for row in found if row[0] > 0} == {(1, "B", 2), (5, "C", 5)}
    assert sum(found.values()) == 2 + manifest.tries


@contextmanager
def left_behind(table: Any, seconds: float) -> Iterator[None]:
    """What a writer leaves that was killed after it had asked the others to wait."""
    table._manifest.set_properties({WAITING: json.dumps({"id": "dead", "seconds": seconds})})
    yield
    assert WAITING not in table._manifest.snapshot().properties


def test_a_writer_that_died_in_its_turn_is_waited_for_once(local: Place, waits: threading.Event) -> None:
    table = make(local, [(1, "A", 1)])
    with left_behind(table, 0.05):
        table.append(data([(2, "A", 2)]))
    assert waits.is_set()
    waits.clear()

    opened(local).append(data([(3, "A", 3)]))

    assert not waits.is_set()
    assert sum(content(table).values()) == 3


@pytest.mark.parametrize(
    "told", ["", "[]", '{"id": 1}', '{"id": "x", "seconds": "soon"}', '{"id": "x", "seconds": 1e9}']
)
def test_what_others_write_there_stops_nobody(
    local: Place, waits: threading.Event, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)
    table = make(local, [(1, "A", 1)])
    table._manifest.set_properties({WAITING: told})

    table.append(data([(2, "A", 2)]))

    assert sum(content(table).values()) == 2


def test_waiting_is_no_change_of_the_table(local: Place) -> None:
    table = make(local, [(1, "A", 1)])
    first, shown = table.version, table.inspect.snapshots().num_rows
    with turns.Turn(table._manifest) as turn:
        for _ in range(turns.LOST_TRIES):
            turn.lose(0.0)
        assert WAITING in table._manifest.snapshot().properties
        table.append(data([(2, "A", 2)]))

    assert table.inspect.snapshots().num_rows == shown + 1
    assert table.changes(first).num_rows == 1
    assert WAITING not in table._manifest.snapshot().properties
