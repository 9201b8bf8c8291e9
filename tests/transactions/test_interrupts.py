"""Ctrl-C is a ``KeyboardInterrupt``, leaves nothing half done, and tells what became of a commit that was under way."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import typer

from lancepart.commit.leaf_changes import LeafChanges
from lancepart.spark import jobs
from lancepart.storage import leaf_data
from lancepart.storage import manifest as manifests
from lancepart.storage.translate import ConflictError
from tests.support.catalogs import Place
from tests.transactions.tables import Row, assert_whole, content, data, make

ROWS: list[Row] = [(1, "A", 1), (2, "B", 2)]


def press() -> None:
    """Press Ctrl-C, as a terminal sends it."""
    os.kill(os.getpid(), signal.SIGINT)


def pressed(effect: Callable[..., Any]) -> Callable[..., Any]:
    """An effect before which Ctrl-C is pressed."""

    def act(*given: Any, **options: Any) -> Any:
        press()
        return effect(*given, **options)

    return act


@pytest.fixture(autouse=True)
def python_takes_signals() -> Iterator[None]:
    """Whatever runs the tests has no handler of its own, and the tests are in the thread that gets signals."""
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_during_the_publish_tells_that_the_commit_was_done(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, ROWS)
    monkeypatch.setattr(manifests, "merge", pressed(manifests.merge))

    with pytest.raises(KeyboardInterrupt, match="it is snapshot") as caught:
        table.append(data([(3, "A", 3), (4, "C", 4)]))

    assert str(table.version) in str(caught.value)
    assert content(table) == Counter([*ROWS, (3, "A", 3), (4, "C", 4)])
    assert_whole(table)


def test_an_interrupt_during_a_publish_that_fails_tells_that_nothing_was_done(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, ROWS)

    def lost(*given: Any) -> Any:
        raise ConflictError("another writer came first")

    monkeypatch.setattr(manifests, "merge", pressed(lost))
    with pytest.raises(KeyboardInterrupt, match="could not commit"):
        table.append(data([(3, "A", 3)]))
    monkeypatch.undo()

    assert content(table) == Counter(ROWS)
    table.append(data([(3, "A", 3)]))
    assert_whole(table)


def test_who_does_not_want_to_wait_for_a_publish_is_told_that_its_outcome_is_unknown(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, ROWS)
    monkeypatch.setattr(manifests, "merge", pressed(pressed(pressed(manifests.merge))))
    with pytest.raises(KeyboardInterrupt, match="not known"):
        table.append(data([(3, "A", 3)]))
    monkeypatch.undo()

    assert content(table) == Counter(ROWS)
    assert_whole(table)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_who_takes_signals_another_way_is_asked(local: Place, monkeypatch: pytest.MonkeyPatch, handler: Any) -> None:
    table = make(local, ROWS)
    monkeypatch.setattr(manifests, "merge", pressed(manifests.merge))
    signal.signal(signal.SIGINT, handler)

    table.append(data([(3, "A", 3)]))

    assert signal.getsignal(signal.SIGINT) is handler
    assert content(table) == Counter([*ROWS, (3, "A", 3)])


@pytest.mark.parametrize("wrapped", [KeyboardInterrupt(), pa.ArrowInvalid("External error: KeyboardInterrupt: ")])
@pytest.mark.parametrize("step", ["stage", "append"])
def test_an_interrupt_before_the_publish_leaves_nothing(
    local: Place, monkeypatch: pytest.MonkeyPatch, step: str, wrapped: BaseException
) -> None:
    table = make(local, ROWS)
    before = table.version

    def interrupted(*given: Any, **options: Any) -> Any:
        with leaf_data.storage_errors("write", table._manifest.root):
            raise wrapped

    monkeypatch.setattr(leaf_data, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.append(data([(3, "A", 3), (4, "B", 4)]))
    monkeypatch.undo()

    assert table.version == before
    assert content(table) == Counter(ROWS)
    table.append(data([(3, "A", 3)]))
    assert_whole(table)


def test_a_transaction_goes_on_without_the_change_that_was_interrupted(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, ROWS)

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    with table.transaction() as tx:
        tx.append(data([(3, "A", 3)]))
        monkeypatch.setattr(LeafChanges, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tx.append(data([(4, "A", 4), (5, "Z", 5)]))
        monkeypatch.undo()

    assert content(table) == Counter([*ROWS, (3, "A", 3)])


def test_in_weak_mode_an_interrupt_tells_what_was_written(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(local, ROWS, mode="weak")
    append = LeafChanges.append

    def halfway(work: LeafChanges, rows: list[Any]) -> None:
        if work.key == ("sB",):
            raise KeyboardInterrupt
        append(work, rows)

    monkeypatch.setattr(LeafChanges, "append", halfway)
    with pytest.raises(KeyboardInterrupt, match="partitions written so far: v1"):
        table.append(data([(3, "A", 3), (4, "B", 4)]))


def test_a_job_that_is_interrupted_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Command:
        def main(self, *given: Any, **options: Any) -> None:
            raise typer.Abort from KeyboardInterrupt()

    monkeypatch.setattr(jobs.typer.main, "get_command", lambda app: Command())
    with pytest.raises(SystemExit) as ended:
        jobs.main(["compact"])
    assert ended.value.code == 130
    assert json.loads(capsys.readouterr().out) == {"job": "compact", "ok": False, "error": "interrupted"}
