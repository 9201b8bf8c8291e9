"""Planning joins: which leaves of two tables can hold equal keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.layouts import as_leaves
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.partition_keys import value_keys, value_texts
from lancepart.model.predicate import Predicate
from lancepart.model.schema import field_id
from lancepart.model.spec import PartitionSpec
from lancepart.plan import planner
from lancepart.plan.join_compatibility import JoinKey, KeyFunction, key_function_values, meet, offer, offers
from lancepart.storage.snapshot import Snapshot

INNER, LEFT, RIGHT, FULL, SEMI, ANTI = "inner", "left", "right", "full", "semi", "anti"
_MOST_SHOWN = 20

SpecLeaves: TypeAlias = tuple[PartitionSpec, pa.Table]
"""A spec version, and the manifest's rows of its leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Leaves that are joined with one another and with no others; ``values`` are what they have in common."""

    values: tuple[str | None, ...]
    left: tuple[Leaf, ...]
    right: tuple[Leaf, ...]

    @property
    def bytes(self) -> int:
        """How large its leaves are, as far as the manifest knows."""
        return sum(leaf.stats.bytes for leaf in (*self.left, *self.right) if leaf.stats is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """One table of a join at one snapshot, with the part of the join's filter that is pushed down to it."""

    name: str
    snapshot: Snapshot
    metadata: TableMetadata
    columns: tuple[str, ...]
    predicate: Predicate | None = None

    @property
    def positions(self) -> dict[int, int]:
        """Which join key each key column is, by field id."""
        schema = self.metadata.schema
        numbers = [field_id(schema.field(schema.get_field_index(name))) for name in self.columns]
        return {number: place for place, number in enumerate(numbers) if number is not None}

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the key columns."""
        return [self.metadata.schema.field(self.metadata.schema.get_field_index(name)).type for name in self.columns]

    def found(self) -> list[SpecLeaves]:
        """The specs of which leaves are read, each with the manifest's rows of those."""
        pairs = []
        for spec in self.metadata.specs:
            rows, _, _ = planner.kept(self.snapshot, self.metadata, spec, self.predicate)
            if rows is not None and rows.num_rows:
                pairs.append((spec, rows))
        return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan:
    """The groups of leaves that a join reads, and what they are grouped by."""

    keys: tuple[JoinKey, ...]
    how: str
    versions: tuple[int, int]
    key_functions: tuple[KeyFunction, ...]
    groups: tuple[Group, ...]
    skipped: int = 0
    totals: tuple[int, int] = field(default=(0, 0))
    disagreement: str | None = None
    """Why the partitions of the two sides do not go together, so that all leaves are one group."""

    def explain(self) -> str:
        """The plan for a person."""
        pairs = " AND ".join(f"left.{key.left} = right.{key.right}" for key in self.keys)
        read = [sum(len(getattr(group, side)) for group in self.groups) for side in ("left", "right")]
        left, right = ([getattr(key, side) for key in self.keys] for side in ("left", "right"))
        lines = [
            f"{self.how} join on {pairs}",
            f"left: snapshot {self.versions[0]}, {read[0]} of {self.totals[0]} leaves",
            f"right: snapshot {self.versions[1]}, {read[1]} of {self.totals[1]} leaves",
            "",
        ]
        if self.disagreement is not None:
            return "\n".join([*lines, self._way(), self.disagreement])
        lines += [
            f"{len(self.groups)} groups, joined one by one without a shuffle, {self.skipped} skipped; grouped by:",
            *(f"  {function.describe(left)} = {function.describe(right)}" for function in self.key_functions),
            "",
        ]
        for group in self.groups[:_MOST_SHOWN]:
            shown = ", ".join("NULL" if value is None else value for value in group.values)
            lines.append(f"  ({shown}): {_listed(group.left)} with {_listed(group.right)}")
        if len(self.groups) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.groups) - _MOST_SHOWN} more")
        return "\n".join(lines)

    def _way(self) -> str:
        """How sides whose partitions do not agree are joined."""
        sizes = {
            side: sum(leaf.stats.bytes for group in self.groups for leaf in getattr(group, side) if leaf.stats)
            for side in ("left", "right")
        }
        small = min(sizes, key=lambda side: sizes[side])
        return (
            f"the partitions do not agree: the {small} side ({sizes[small]:,} bytes) is broadcast to parts of the "
            f"other ({max(sizes.values()):,} bytes) if memory holds it, else both are split by a hash of the keys"
        )


def _listed(leaves: Sequence[Leaf]) -> str:
    shown = ["/".join("NULL" if value is None else value for value in leaf.values) for leaf in leaves[:8]]
    more = f" and {len(leaves) - 8} more" if len(leaves) > 8 else ""
    return f"[{', '.join(shown)}{more}]"


def plan(left: JoinSide, right: JoinSide, keys: Sequence[JoinKey], how: str) -> JoinPlan:
    """Group the leaves of both sides by the join key values that all of them determine."""
    found = left.found(), right.found()
    try:
        key_functions = _key_functions(left, right, found, keys)
    except UnsupportedOperationError as error:
        return _whole(left, right, found, keys, how, str(error))
    gathered: dict[tuple[str, ...], tuple[tuple[str | None, ...], tuple[list[Leaf], list[Leaf]]]] = {}
    for place, (side, pairs) in enumerate(zip((left, right), found, strict=True)):
        for key, texts, leaf in _keyed(side, pairs, key_functions):
            gathered.setdefault(key, (texts, ([], [])))[1][place].append(leaf)
    groups = [
        part
        for _, (texts, (mine, theirs)) in sorted(gathered.items())
        for part in _apart(Group(values=texts, left=tuple(mine), right=tuple(theirs)), key_functions)
    ]
    kept = tuple(group for group in groups if _is_read(group, how))
    return JoinPlan(
        keys=tuple(keys),
        how=how,
        versions=(left.snapshot.version, right.snapshot.version),
        key_functions=key_functions,
        groups=kept,
        skipped=len(groups) - len(kept),
        totals=(_total(left), _total(right)),
    )


def _whole(
    left: JoinSide, right: JoinSide, found: Iterable[list[SpecLeaves]], keys: Sequence[JoinKey], how: str, reason: str
) -> JoinPlan:
    """All leaves of both sides as one group, since any two of them may hold equal keys."""
    mine, theirs = (
        tuple(leaf for spec, rows in pairs for leaf in as_leaves(side.snapshot, spec, rows, side.metadata))
        for side, pairs in zip((left, right), found, strict=True)
    )
    group = Group(values=(), left=mine, right=theirs)
    return JoinPlan(
        keys=tuple(keys),
        how=how,
        versions=(left.snapshot.version, right.snapshot.version),
        key_functions=(),
        groups=(group,) if _is_read(group, how) else (),
        totals=(_total(left), _total(right)),
        disagreement=reason,
    )


def _total(side: JoinSide) -> int:
    return sum(planner.leaf_counts(side.snapshot, side.metadata).values())


def _keyed(
    side: JoinSide, pairs: Sequence[SpecLeaves], key_functions: Sequence[KeyFunction]
) -> Iterator[tuple[tuple[str, ...], tuple[str | None, ...], Leaf]]:
    """Each leaf of a side with the values by which it is grouped: exact ones, and as people read them."""
    for spec, rows in pairs:
        columns = [key_function_values(function, spec, side.positions, side.types, rows) for function in key_functions]
        yield from zip(
            zip(*map(value_keys, columns), strict=True),
            zip(*map(value_texts, columns), strict=True),
            as_leaves(side.snapshot, spec, rows, side.metadata),
            strict=True,
        )


def _apart(group: Group, key_functions: Sequence[KeyFunction]) -> list[Group]:
    """A group whose keys are NULL as two: NULLs match nothing, and are only kept for outer joins."""
    if all(function.can_match(value) for function, value in zip(key_functions, group.values, strict=True)):
        return [group]
    halves = [
        Group(values=group.values, left=group.left, right=()),
        Group(values=group.values, left=(), right=group.right),
    ]
    return [half for half in halves if half.left or half.right]


def _is_read(group: Group, how: str) -> bool:
    match how:
        case "full":
            return True
        case "left" | "anti":
            return bool(group.left)
        case "right":
            return bool(group.right)
        case _:
            return bool(group.left and group.right)


def _key_functions(
    left: JoinSide, right: JoinSide, found: Iterable[list[SpecLeaves]], keys: Sequence[JoinKey]
) -> tuple[KeyFunction, ...]:
    """The key values that all leaves determine; if there are none, an error that says what is needed."""
    specs = [
        [spec for spec, _ in pairs] or [side.metadata.spec] for side, pairs in zip((left, right), found, strict=True)
    ]
    offered = [
        offers(spec, side.positions, keys) for side, own in zip((left, right), specs, strict=True) for spec in own
    ]
    key_functions = meet(offered, keys)
    if not key_functions:
        pairs = " AND ".join(f"{key.left} = {key.right}" for key in keys)
        partitionings = "; ".join(_described(side, own) for side, own in zip((left, right), specs, strict=True))
        raise UnsupportedOperationError(
            f"the tables can't be joined partition by partition on {pairs}: {partitionings}. {_needed(keys, offered)}"
        )
    return key_functions


def _described(side: JoinSide, specs: Sequence[PartitionSpec]) -> str:
    """How a side is partitioned, field by field, and which of that concerns the keys."""
    texts = []
    for spec in specs:
        own = [offer(each, side.positions) for each in spec.fields]
        shown = [
            f"{each.field_id} (not over join keys alone)" if function is None else function.describe(side.columns)
            for each, function in zip(spec.fields, own, strict=True)
        ]
        texts.append(f"spec v{spec.id} by {', '.join(shown)}")
    return f"the {side.name} table is partitioned by {' and '.join(text for text in texts)}"


def _needed(keys: Sequence[JoinKey], offered: Sequence[frozenset[KeyFunction]]) -> str:
    if all(offered):
        return (
            "Needed is the same transform on both sides, bucket counts with a common divisor, "
            "time fields of which one side has those of the other too, or the key itself on one side"
        )
    differing = [key for key in keys if not key.is_uniform]
    if differing:
        key = differing[0]
        return (
            f"The keys {key.left!r} ({key.left_type}) and {key.right!r} ({key.right_type}) differ in type, "
            "and their partition values can't be compared: widen one of them"
        )
    return "Needed is that both tables, in every spec version that has leaves, are partitioned by a join key"
