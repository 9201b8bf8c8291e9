"""Writers in processes of their own that kill themselves at a chosen step of what they do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lancepart.commit import distributed_write
from lancepart.maintain import collect
from lancepart.storage import leaf_data
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from tests.support import dying
from tests.support.catalogs import Place
from tests.support.dying import Kill
from tests.transactions.tables import data, opened

STEPS: tuple[dying.Step, ...] = (
    (leaf_data, "stage"),
    (leaf_data, "create_with_rows"),
    (leaf_data, "create_leaf"),
    (leaf_data, "commit_version"),
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
    planned = distributed_write.plan(table._manifest, mode=mode, **options)
    reports = [distributed_write.write(planned, data(rows)) for rows in ([(7, "A", 1), (1, "B", 2)], [(8, "Z", 2)])]
    distributed_write.commit(table._manifest, planned, reports)


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
    return dying.run(_act, (action, place), _steps, kill)


def _act(action: Callable[[Any], None], place: Place) -> None:
    action(opened(place))


def _steps() -> tuple[dying.Step, ...]:
    return STEPS
