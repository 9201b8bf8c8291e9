"""Writers in processes of their own that kill themselves at a chosen step of what they do."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

from lancepart.commit import staged
from lancepart.maintain import collect
from lancepart.storage import leafdata
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from tests.support.catalogs import Place
from tests.support.processes import PATIENCE, Kill
from tests.transactions.tables import data, opened

STEPS: tuple[tuple[Any, str], ...] = (
    (leafdata, "stage"),
    (leafdata, "create_leaf"),
    (leafdata, "_commit"),
    (Manifest, "publish"),
    (Files, "delete"),
    (Files, "delete_directory"),
)


def append(table: Any) -> None:
    table.append(data([(7, "A", 1), (8, "Z", 2)]))


def overwrite(table: Any) -> None:
    table.overwrite(data([(7, "A", 1), (8, "Z", 2)]))


def replace(table: Any) -> None:
    table.overwrite(data([(1, "B", 1)]), "id < 3")


def delete(table: Any) -> None:
    table.delete("id IN (1, 3)")


def update(table: Any) -> None:
    table.update({"x": "x + 1", "bank": "'Z'"}, "id IN (1, 3)")


def upsert(table: Any) -> None:
    table.upsert(data([(1, "B", 1), (9, "Z", 2)]), ["id"])


def transaction(table: Any) -> None:
    with table.transaction("serializable") as tx:
        tx.append(data([(7, "A", 1)]))
        tx.delete("id = 3")
        tx.update({"bank": "'Z'"}, "id = 7")


def job(table: Any, mode: str = "append", **options: Any) -> None:
    """What a distributed write does: two tasks, and the commit of what they report."""
    planned = staged.plan(table._manifest, mode=mode, **options)
    reports = [staged.write(planned, data(rows)) for rows in ([(7, "A", 1), (1, "B", 2)], [(8, "Z", 2)])]
    staged.commit(table._manifest, planned, reports)


def replacing_job(table: Any) -> None:
    job(table, "replace")


def upserting_job(table: Any) -> None:
    job(table, "upsert", on=["id"])


def compact(table: Any) -> None:
    table.maintenance.compact(progress=False)


def rewrite(table: Any) -> None:
    table.maintenance.rewrite(progress=False)


def rollback(table: Any) -> None:
    table.maintenance.rollback("start")


def expire(table: Any) -> None:
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)


def remove_orphans(table: Any) -> None:
    table.maintenance.remove_orphans(timedelta(hours=1), progress=False)


ACTIONS = (
    append,
    overwrite,
    replace,
    delete,
    update,
    upsert,
    transaction,
    job,
    replacing_job,
    upserting_job,
    compact,
    rewrite,
    rollback,
    expire,
    remove_orphans,
)


def run(action: Callable[[Any], None], place: Place, kill: Kill | None = None) -> int:
    """Do something in a child, to its end or to where it kills itself; how many steps it took."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lancepart", "tests.transactions.doomed"])
    ours, theirs = context.Pipe()
    child = context.Process(target=_act, args=(action, place, kill, theirs), daemon=True)
    child.start()
    theirs.close()
    child.join(PATIENCE)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise TimeoutError("the child neither died nor came to its end")
    assert child.exitcode == (0 if kill is None else -signal.SIGKILL), f"the child ended with {child.exitcode}"
    return ours.recv() if kill is None else 0


def _act(action: Callable[[Any], None], place: Place, kill: Kill | None, line: Connection) -> None:
    table = opened(place)
    done = arm(kill)
    action(table)
    line.send(done[0])


def arm(kill: Kill | None) -> list[int]:
    """Count each step of the real functions, and die at the chosen one."""
    done = [0]

    def wrapped(effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            due = kill is not None and kill.step == done[0]
            done[0] += 1
            if due and not kill.after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = effect(*arguments, **options)
            if due:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for owner, name in STEPS:
        setattr(owner, name, wrapped(getattr(owner, name)))
    return done
