"""Processes that change a table while it is followed, and tell what they changed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

import lancepart as lp
from lancepart.errors import CommitConflictError
from lancepart.maintain import collect

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("x", pa.int64())])
SPECS = (["k"], ["bucket(id, 2)"], ["k", "bucket(id, 2)"])

Row = tuple[int, int, int]
Told = tuple[Row, str, int]
"""A row, what became of it, and in which snapshot."""


@dataclass
class Model:
    """The rows that a table must have, and all changes that led there."""

    rows: dict[int, Row] = field(default_factory=dict)
    changes: Counter[Told] = field(default_factory=Counter)
    next: int = 0
    lost: int = 0

    def took(self, version: Any, gone: list[Row], came: list[Row]) -> None:
        """Note what one commit did."""
        for row in gone:
            del self.rows[row[0]]
            self.changes[row, "delete", version] += 1
        for row in came:
            self.rows[row[0]] = row
            self.changes[row, "insert", version] += 1


def change(root: str, seed: int, model: Model, steps: int, pause: float) -> Model:
    """Append, delete, update and upsert, sometimes under a new spec or with a new column."""
    chance = random.Random(seed)
    actions = (append, append, append, delete, update, upsert, evolve)
    for _ in range(steps):
        action: Callable[..., None] = chance.choice(actions)
        try:
            action(lp.open_table(root), model, chance)
        except CommitConflictError:
            model.lost += 1
        time.sleep(chance.uniform(0, pause))
    return model


def append(table: Any, model: Model, chance: random.Random) -> None:
    count = chance.randint(1, 30)
    rows = [(number, number % 3, chance.randint(0, 99)) for number in range(model.next, model.next + count)]
    model.next += count
    model.took(table.append(dicts(rows)), [], rows)


def delete(table: Any, model: Model, chance: random.Random) -> None:
    rest = chance.randint(0, 6)
    gone = [row for row in model.rows.values() if row[0] % 7 == rest]
    model.took(table.delete(f"id % 7 = {rest}"), gone, [])


def update(table: Any, model: Model, chance: random.Random) -> None:
    rest = chance.randint(0, 4)
    gone = [row for row in model.rows.values() if row[0] % 5 == rest]
    came = [(number, (number + 1) % 3, x + 1) for number, _, x in gone]
    model.took(table.update({"x": "x + 1", "k": "CAST((id + 1) % 3 AS INT)"}, f"id % 5 = {rest}"), gone, came)


def upsert(table: Any, model: Model, chance: random.Random) -> None:
    known = chance.sample(sorted(model.rows), min(3, len(model.rows)))
    came = [(number, 2, -1) for number in (*known, model.next)]
    model.next += 1
    model.took(table.upsert(dicts(came), ["id"]), [model.rows[number] for number in known], came)


def evolve(table: Any, model: Model, chance: random.Random) -> None:
    if chance.random() < 0.7:
        table.update_spec(chance.choice(SPECS))
    else:
        table.add_column(pa.field(f"more{len(table.schema)}", pa.int32()))


def dicts(rows: list[Row]) -> list[dict[str, int]]:
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]


def keep(root: str, seed: int, times: int, pause: float, done: datetime | None) -> None:
    """Compact, rewrite and index beside the changes, and expire what nobody who follows still needs."""
    chance = random.Random(seed)
    table = lp.open_table(root)
    actions: list[Callable[[], Any]] = [
        lambda: table.maintenance.compact(progress=False),
        lambda: table.maintenance.rewrite(progress=False),
        lambda: table.maintenance.create_index("x", "BTREE", progress=False),
    ]
    if done is not None:
        collect.expire(table._manifest, done, safe_age=timedelta(0), progress=False)
    for _ in range(times):
        chance.choice(actions)()
        time.sleep(chance.uniform(0, pause))
