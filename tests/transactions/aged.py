"""A table that has seen much, all of it long ago."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.support.catalogs import Place
from tests.transactions.tables import data, make

DAY = 86_400


def make_aged(place: Place) -> Any:
    """A table with a history, an older spec, a tag, fragments to compact, and garbage, all of it a day old."""
    table = make(place, [(1, "A", 10), (2, "A", 20), (3, "B", 30)])
    table.tags.create("start", table.version)
    table.update_spec(["truncate(bank, 4)"])
    table.append(data([(4, "A", 40), (5, "C", 50)]))
    table.append(data([(6, "A", 60)]))
    table.delete("id IN (2, 5)")
    for _ in range(2):
        table.update({"x": "x + 1"}, "id IN (3, 4)")
    leave_garbage(table)
    grow_old(Path(place.root))
    return table


def leave_garbage(table: Any) -> None:
    """Private versions of old leaves and a whole new leaf, which are never published."""
    tx = table.transaction()
    tx.update({"x": "0", "bank": "'garbage'"}, "id = 1")


def grow_old(root: Path, seconds: float = DAY) -> None:
    """Let every file and directory look a day older."""
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder) / name
            then = path.stat().st_mtime - seconds
            os.utime(path, (then, then))
