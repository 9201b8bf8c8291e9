"""The version of each leaf that a reader must read, from the rows of leaves and of their versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.format.names import OBJECT_ID, READ_VERSION, TABLE_VERSION, of_ids, of_type, split_version_id, version_id
from lancepart.format.records import Stats
from lancepart.storage.snapshot import Snapshot, beneath, literals

Facts = tuple[int, int | None, Stats | None]

_LOOKED_UP = 2_000
_AT_ONCE = 64
_VERSION_ID = r"^(?P<leaf>.*)\$(?P<n>\d{1,18})$"


def read_versions(
    snapshot: Snapshot, rows: pa.Table, facts: Sequence[Facts]
) -> dict[str, tuple[int, int | None, bool]]:
    """For each leaf its newest number, the version that it refers to, and whether the row's statistics are of that one.

    The highest ``table_version`` row is the truth; the table's own row says the same faster, unless another writer
    moved only the former.
    """
    ids = rows.column(OBJECT_ID).to_pylist()
    pointers = (
        rows.column(READ_VERSION.name).to_pylist() if READ_VERSION.name in rows.schema.names else [None] * len(ids)
    )
    numbers = [number for number, _, _ in facts]
    unmeasured = [number and measured is None for number, measured, _ in facts]
    recorded = _recorded(snapshot, dict(compress(zip(ids, numbers, strict=True), unmeasured)))
    known = {
        key: (number, version, version == (recorded.get(key) if measured is None else measured))
        for key, (number, measured, _), version in zip(ids, facts, pointers, strict=True)
    }
    newer = newer_versions(snapshot, dict(zip(ids, numbers, strict=True)))
    return known | {key: (n, version, False) for key, (n, version) in newer.items()}


def newer_versions(snapshot: Snapshot, numbers: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The leaves that have a ``table_version`` row newer than a number in the manifest, with the newest.

    Other writers may leave numbers out, so that all rows of a leaf's versions are looked at; that there is none is
    remembered.
    """
    unsettled = snapshot.unsettled(numbers)
    highest: dict[str, tuple[int, int]] = {}
    for item, version in _rows_of(snapshot, unsettled):
        named = split_version_id(item)
        if named is not None and named[0] in unsettled and version is not None:
            key, number = named
            if number > max(unsettled[key], highest.get(key, (0, 0))[0]):
                highest[key] = (number, version)
    snapshot.settle({key: number for key, number in unsettled.items() if key not in highest})
    return highest


def are_newest(snapshot: Snapshot, leaves: pa.Array, numbers: pa.Array) -> bool:
    """Whether no leaf has a ``table_version`` row with a higher number; for a million leaves at once."""
    found = snapshot.scan(of_type(TABLE_VERSION), columns=[OBJECT_ID])
    assert found is not None
    parts = pc.extract_regex(found.column(OBJECT_ID).combine_chunks(), pattern=_VERSION_ID)
    at = pc.index_in(pc.struct_field(parts, "leaf"), value_set=leaves)
    newest = pc.take(numbers, at)
    return not pc.any(pc.greater(pc.cast(pc.struct_field(parts, "n"), pa.int64()), newest)).as_py()


def existing_numbers(snapshot: Snapshot, leaves: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the versions of some leaves that the manifest has rows of, in rising order."""
    found: dict[str, list[int]] = {leaf: [] for leaf in leaves}
    for item, _ in _rows_of(snapshot, dict.fromkeys(leaves, -1)):
        named = split_version_id(item)
        if named is not None and named[0] in found:
            found[named[0]].append(named[1])
    return {leaf: sorted(numbers) for leaf, numbers in found.items()}


def _rows_of(snapshot: Snapshot, numbers: Mapping[str, int]) -> Iterator[tuple[str, int | None]]:
    """The ids and versions of the ``table_version`` rows of some leaves, at least of those with a higher number."""
    if not numbers:
        return
    kind, columns = of_type(TABLE_VERSION), [OBJECT_ID, READ_VERSION.name]
    if len(numbers) <= _LOOKED_UP:
        leaves = list(numbers)
        for start in range(0, len(leaves), _AT_ONCE):
            spans = " OR ".join(f"({beneath(leaf)})" for leaf in leaves[start : start + _AT_ONCE])
            yield from _pairs(snapshot.scan(f"{kind} AND ({spans})", columns=columns))
        return
    found = snapshot.scan(kind, columns=columns)
    assert found is not None
    known = pa.array([version_id(key, number) for key, number in numbers.items()], pa.string())
    yield from _pairs(found.filter(pc.invert(pc.is_in(found.column(OBJECT_ID), value_set=known))))


def _pairs(found: pa.Table) -> Iterator[tuple[str, int | None]]:
    assert found is not None
    return zip(found.column(OBJECT_ID).to_pylist(), found.column(READ_VERSION.name).to_pylist(), strict=True)


def _recorded(snapshot: Snapshot, numbers: Mapping[str, int]) -> dict[str, int | None]:
    """The version that a leaf's number refers to by its ``table_version`` row.

    By it the statistics of rows from before they said which version they are of are known to be of theirs.
    """
    if not numbers:
        return {}
    wanted = {version_id(key, number): key for key, number in numbers.items()}
    few = f" AND {of_ids(literals(wanted))}" if len(wanted) <= _LOOKED_UP else ""
    found = snapshot.scan(f"{of_type(TABLE_VERSION)}{few}", columns=[OBJECT_ID, READ_VERSION.name])
    return {wanted[item]: version for item, version in _pairs(found) if item in wanted}
