"""When two commits conflict: one pure function per rule; ``docs/transactions.md`` has the table.

A rule returns the reason, or ``None`` if both commits can succeed. The caller decides what follows: an action that can
be repeated from the start is, anything else is a ``CommitConflictError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lancepart.errors import CommitConflictError
from lancepart.layout.leaves import Leaf
from lancepart.model.spec import PartitionSpec


class StaleReadError(CommitConflictError):
    """What the transaction read was changed before it could commit; doing it again may succeed."""


class RowDifference(Protocol):
    """What one version of a leaf has that another had not, by fragments and by rows in them."""

    @property
    def added(self) -> tuple[object, ...]:
        """The fragments that only the newer one has."""

    @property
    def removed(self) -> frozenset[int]:
        """The fragments that only the older one has."""

    @property
    def deleted(self) -> Mapping[int, npt.NDArray[np.int64]]:
        """The rows that were deleted from fragments that both have, at least one of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafEffect:
    """What a transaction does to one leaf, as far as conflicts depend on it.

    ``replaces`` all rows, those that others add too; ``empties`` a leaf that had rows by that; ``relocates`` it to
    another directory; ``can_recreate`` its partition, whose values it knows.
    """

    adds: bool = False
    deletes: bool = False
    replaces: bool = False
    empties: bool = False
    relocates: bool = False
    can_recreate: bool = True


def with_removal(ours: LeafEffect) -> str | None:
    """Another writer removed the leaf, which was empty: rows that were only added recreate the partition."""
    if ours.empties or ours.deletes or ours.relocates or not ours.adds or not ours.can_recreate:
        return "was dropped by another writer"
    return None


def with_creation(ours: LeafEffect) -> str | None:
    """Another writer created the partition first: its leaf takes our rows, unless they were to be all of it."""
    return "was made by another writer while its rows were being replaced" if ours.replaces else None


def with_new_version(ours: LeafEffect) -> str | None:
    """Another writer published a version of the leaf, whatever is in it."""
    if ours.relocates:
        return "was changed by another writer while it was being rewritten"
    if ours.replaces:
        return "was changed by another writer while its rows were being replaced"
    return None


def with_rows(ours: RowDifference, theirs: RowDifference) -> str | None:
    """Both deleted rows of a leaf: never the same ones, nor any of a fragment that the other rewrote.

    Both differences are from the same version. Fragments that one removed held every row that the other deleted there.
    """
    touched = set(ours.deleted) | ours.removed
    if touched & theirs.removed:
        return "had rows rewritten or deleted by another writer that this one deletes too"
    for number in touched & set(theirs.deleted):
        if number in ours.removed or len(np.intersect1d(ours.deleted[number], theirs.deleted[number])):
            return "had rows deleted by another writer that this one deletes too"
    return None


def with_keys(found: Iterable[npt.NDArray[np.bool_]]) -> str | None:
    """Another writer added rows to a leaf that an upsert wrote to; ``found`` are those with a key of the upsert."""
    if any(bool(each.any()) for each in found):
        return "got rows from another writer with keys that this one upserts too"
    return None


def with_own_rewrite(rewrites: int, before: RowDifference, after: RowDifference) -> str | None:
    """The transaction rewrote the leaf: only its changes before that, and rows added after it, can be rebased."""
    if rewrites > 1 or before.added or after.removed or after.deleted:
        return "was changed by another writer while its rows were being rewritten"
    return None


def with_columns(*, alike: bool, current: bool) -> str | None:
    """Staged rows must all have the same columns, and those that the leaf has now."""
    return None if alike and current else "has other columns now than when rows were written for it"


def with_upgrade(then: str, now: str) -> str | None:
    """Another writer upgraded the table's layout."""
    return None if then == now else "the table's layout was upgraded by another writer"


def with_fence(then: str | None, now: str | None) -> str | None:
    """Another writer made, or replaced, something that this one depends on not being there."""
    return None if then == now else "another writer changed what this one depends on"


def with_specs(then: tuple[PartitionSpec, ...], now: tuple[PartitionSpec, ...]) -> str | None:
    """Another writer changed the partitioning that a binding read was planned under."""
    return None if then == now else "the table's partitioning was changed by another writer"


def changed_leaves(then: Iterable[Leaf], now: Iterable[Leaf]) -> dict[str, Leaf]:
    """The leaves of a validated read that were changed, added or removed; a schema change alone does not count."""
    seen = {leaf.object_id: leaf for leaf in then}
    other = {leaf.object_id: leaf for leaf in now if not _is_same(seen.pop(leaf.object_id, None), leaf)}
    return other | seen


def _is_same(then: Leaf | None, now: Leaf) -> bool:
    return then is not None and (then.location, then.read_version) == (now.location, now.read_version)
