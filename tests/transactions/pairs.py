"""The kinds of commits that meet each other in pairs: what each does to a table, and to a list of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lancepart.errors import CommitConflictError
from lancepart.maintain import collect, leaf_maintenance
from lancepart.storage.manifest import Manifest
from lancepart.table import PartitionedTable
from tests.support.interleave import ACTED, BEGUN, ORDERS, PLANNED, Stepper
from tests.transactions.tables import Row, data

SAME_ROWS, OTHER_ROWS, OTHER_LEAF, NEW_PARTITION = "same rows", "other rows", "other leaf", "new partition"
RELATIONS = (SAME_ROWS, OTHER_ROWS, OTHER_LEAF, NEW_PARTITION)
BOTH, CONFLICT, YIELDS = "both", "conflict", "yields"

ROWS: tuple[Row, ...] = ((1, "A", 10), (2, "A", 20), (5, "A", 50), (3, "B", 30))


@dataclass(frozen=True)
class Target:
    """What one of the two acts on; ``mark`` tells what it writes from what the other does."""

    id: int
    bank: str
    mark: int

    @property
    def row(self) -> Row:
        return (self.id, self.bank, self.mark)


def targets(relation: str) -> tuple[Target, Target]:
    """What the first and the second act on."""
    if relation == NEW_PARTITION:
        return Target(1, "Z", 71), Target(2, "Z", 72)
    second = {SAME_ROWS: (1, "A"), OTHER_ROWS: (2, "A"), OTHER_LEAF: (3, "B")}[relation]
    return Target(1, "A", 71), Target(*second, 72)


@dataclass(frozen=True)
class Kind:
    """One kind of commit: done to a table, and to rows in memory."""

    name: str
    act: Callable[[Manifest, Target], Any]
    model: Callable[[Sequence[Row], Target], list[Row]]
    of_rows: bool = True


def _overwritten(rows: Sequence[Row], target: Target) -> list[Row]:
    return [row for row in rows if row[1] != target.bank] + [target.row]


def _deleted(rows: Sequence[Row], target: Target) -> list[Row]:
    return [row for row in rows if row[:2] != (target.id, target.bank)]


def _updated(rows: Sequence[Row], target: Target) -> list[Row]:
    return [(row[0], target.bank, 3 * row[2] + target.mark) if row[0] == target.id else row for row in rows]


def _upserted(rows: Sequence[Row], target: Target) -> list[Row]:
    return [row for row in rows if row[0] != target.id] + [target.row]


def _upserted_in_place(rows: Sequence[Row], target: Target) -> list[Row]:
    return [*_deleted(rows, target), target.row]


def _replaced(rows: Sequence[Row], target: Target) -> list[Row]:
    return [*_deleted(rows, target), target.row]


def _same(rows: Sequence[Row], target: Target) -> list[Row]:
    return list(rows)


def _update(table: PartitionedTable, target: Target) -> Any:
    return table.update({"x": f"3 * x + {target.mark}", "bank": f"'{target.bank}'"}, f"id = {target.id}")


def _where(target: Target) -> str:
    return f"id = {target.id} AND bank = '{target.bank}'"


def _on_table(act: Callable[[PartitionedTable, Target], Any]) -> Callable[[Manifest, Target], Any]:
    return lambda manifest, target: act(PartitionedTable(manifest), target)


def _add_column(table: PartitionedTable, target: Target) -> Any:
    return table.add_column(pa.field(f"more{target.mark}", pa.int64()))


def _rename_column(table: PartitionedTable, target: Target) -> Any:
    return table.rename_column("x" if target.mark == 71 else "id", f"y{target.mark}")


def _update_spec(table: PartitionedTable, target: Target) -> Any:
    return table.update_spec([f"truncate(bank, {target.mark})"])


DATA = (
    Kind("append", _on_table(lambda t, at: t.append(data([at.row]))), lambda rows, at: [*rows, at.row]),
    Kind("overwrite", _on_table(lambda t, at: t.overwrite(data([at.row]))), _overwritten),
    Kind("overwrite where", _on_table(lambda t, at: t.overwrite(data([at.row]), _where(at))), _replaced),
    Kind("delete", _on_table(lambda t, at: t.delete(_where(at))), _deleted),
    Kind("update", _on_table(_update), _updated),
    Kind("upsert", _on_table(lambda t, at: t.upsert(data([at.row]), ["id"])), _upserted),
    Kind("upsert in place", _on_table(lambda t, at: t.upsert(data([at.row]), ["id", "bank"])), _upserted_in_place),
)


def others(cutoff: datetime) -> tuple[Kind, ...]:
    """The kinds that change no row; ``cutoff`` is what expires."""
    return (
        Kind("compact", lambda m, at: leaf_maintenance.compact(m, progress=False), _same, of_rows=False),
        Kind("rewrite", lambda m, at: leaf_maintenance.rewrite(m, "bank = 'A'", progress=False), _same, of_rows=False),
        Kind(
            "expire",
            lambda m, at: collect.expire(m, cutoff, safe_age=timedelta(0), progress=False),
            _same,
            of_rows=False,
        ),
        Kind("add_column", _on_table(_add_column), _same, of_rows=False),
        Kind("rename_column", _on_table(_rename_column), _same, of_rows=False),
        Kind("update_spec", _on_table(_update_spec), _same, of_rows=False),
    )


NAMES = (*(kind.name for kind in DATA), "compact", "rewrite", "expire", "add_column", "rename_column", "update_spec")
_OF_ROWS = frozenset(kind.name for kind in DATA)


def waits(second: Kind) -> tuple[str, ...]:
    """The gates at which the second commit can be overtaken: upkeep reads each leaf anew, and a change of the table's
    definition has no private versions."""
    if second.name in ("add_column", "rename_column", "update_spec"):
        return BEGUN, PLANNED
    return ORDERS if second.of_rows else (ACTED, PLANNED)


def expected(second: str, first: str, relation: str) -> str:
    """How the second of two commits ends."""
    on_one_leaf = relation in (SAME_ROWS, OTHER_ROWS)
    if second == "overwrite":
        made = relation == NEW_PARTITION and first in _OF_ROWS - {"delete"}
        return CONFLICT if made or (on_one_leaf and first in _OF_ROWS | {"compact"}) else BOTH
    if second in ("delete", "update"):
        rewritten = first == "overwrite" or first in ("compact", "rewrite")
        same = relation == SAME_ROWS and first in _OF_ROWS - {"append"}
        return CONFLICT if on_one_leaf and (rewritten or same) else BOTH
    if second == "compact":
        return YIELDS if on_one_leaf and first in _OF_ROWS | {"compact", "rewrite"} else BOTH
    if second == "rewrite":
        return YIELDS if on_one_leaf and first in (_OF_ROWS - {"append"}) | {"compact", "rewrite"} else BOTH
    return BOTH


def as_markdown(relation: str) -> str:
    """The table for the docs: how the second commit (a row) ends after the first (a column)."""
    names = NAMES if relation == SAME_ROWS else tuple(kind.name for kind in DATA)
    lines = ["| second \\ first | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for second in names:
        cells = (expected(second, first, relation) for first in names)
        lines.append(f"| {second} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def outcome(second: Stepper) -> str:
    """How the commit that came second ended."""
    if isinstance(second.error, CommitConflictError):
        return CONFLICT
    if second.error is not None:
        raise second.error
    return YIELDS if getattr(second.result, "skipped", ()) else BOTH
