"""Writers that each own some rows of partitions which all share, and know what must have become of them."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lancepart.errors import CommitConflictError
from tests.support.catalogs import Place
from tests.transactions.tables import Row, data, opened

OWN = 1_000_000


@dataclass
class Owner:
    """The rows of one writer as they must be, and how often it committed or lost."""

    who: int
    rows: dict[int, Row] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def content(self) -> Counter[Row]:
        return Counter(self.rows.values())


def write(place: Place, who: int, seconds: float, least: int) -> Owner:
    """Append, update and delete rows of one's own; what meets a conflict must have left nothing."""
    owner, chance = Owner(who), random.Random(who)
    deadline = time.monotonic() + seconds
    actions: tuple[Callable[..., None], ...] = (append, append, update, delete, move)
    while time.monotonic() < deadline or owner.done.total() < least:
        action = chance.choice(actions)
        try:
            action(opened(place), owner, chance)
            owner.done[action.__name__] += 1
        except CommitConflictError:
            owner.done["lost"] += 1
    return owner


def append(table: Any, owner: Owner, chance: random.Random) -> None:
    first = OWN * (owner.who + 1) + 10 * owner.done.total()
    rows = [(first + number, chance.choice("ABC"), 0) for number in range(5)]
    table.append(data(rows))
    owner.rows |= {row[0]: row for row in rows}


def update(table: Any, owner: Owner, chance: random.Random) -> None:
    chosen = some(owner, chance)
    table.update({"x": "x + 1"}, among(chosen))
    owner.rows |= {number: (number, owner.rows[number][1], owner.rows[number][2] + 1) for number in chosen}


def move(table: Any, owner: Owner, chance: random.Random) -> None:
    """Give rows another partition."""
    chosen, bank = some(owner, chance), chance.choice("ABC")
    rows = [(number, bank, owner.rows[number][2]) for number in chosen]
    table.upsert(data(rows), ["id"])
    owner.rows |= {row[0]: row for row in rows}


def delete(table: Any, owner: Owner, chance: random.Random) -> None:
    chosen = some(owner, chance)
    table.delete(among(chosen))
    for number in chosen:
        del owner.rows[number]


def some(owner: Owner, chance: random.Random) -> list[int]:
    return chance.sample(sorted(owner.rows), min(3, len(owner.rows)))


def among(numbers: list[int]) -> str:
    return f"id IN ({', '.join(map(str, numbers))})" if numbers else "false"
