"""One version of ``__manifest``, for reading."""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import lance
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError
from lancepart.format.names import (
    LOCATION,
    METADATA,
    NAMESPACE,
    OBJECT_ID,
    OBJECT_TYPE,
    REQUIRED_COLUMNS,
    TABLE,
    TABLE_VERSION,
    of_ids,
    of_type,
    split_version_id,
    version_id,
)
from lancepart.format.rows import Row, read_rows
from lancepart.model.aliases import Value
from lancepart.storage.leaf_handle import data_path
from lancepart.storage.manifest_rows import Change
from lancepart.storage.root import Root
from lancepart.storage.translate import SealedError, storage_errors

_REMEMBERED, _MOST_SETTLED = 4_096, 1 << 15
_SCANS = 4
_DERIVED = 256
_NAMES = 1_000
_LOOKED_UP = 1_000
_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))

SEALED = pa.schema([pa.field("sealed", pa.null())])
"""The columns of a manifest that was made unusable before it is removed."""

Derived = TypeVar("Derived")
Follow = Callable[[Any, pa.Array, pa.Table], Any]
"""How a value that was computed from one snapshot becomes that of the next.

It is given the ids of the objects that changed, and the rows that were written, those of versions aside.
"""


def awake() -> float:
    """Seconds by a clock that is never set, and that does not stop while the machine sleeps."""
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


class Snapshot:
    """What the manifest held at one version; version 0, without a handle, is a manifest not yet written."""

    def __init__(self, handle: lance.LanceDataset | None, root: Root) -> None:
        self.handle = handle
        self.version = 0 if handle is None else int(handle.version)
        self.root = root
        self.opened = awake()
        self.opened_on = time.time()
        self._seen: list[pa.Table] = []
        self._absent: set[str] = set()
        self._settled: dict[str, int] = {}
        self._derived: OrderedDict[Hashable, Any] = OrderedDict()
        self._follow: dict[Hashable, Follow] = {}
        self._inherited: dict[Hashable, Callable[[], Any]] = {}
        if handle is not None:
            _refuse_sealed(handle, root)
            _check_columns(handle)

    @property
    def age(self) -> float:
        """The seconds since it was opened, those that the machine slept included.

        A paused virtual machine does not notice the pause, but its wall clock is corrected when it resumes.
        """
        return max(awake() - self.opened, time.time() - self.opened_on)

    @cached_property
    def file_names(self) -> frozenset[str]:
        """The names of its data and deletion files; they are random, so that no other snapshot has the same."""
        fragments = [] if self.handle is None else [item.metadata for item in self.handle.get_fragments()]
        names = {data_path(file) for item in fragments for file in item.files}
        return frozenset(names | {str(item.deletion_file) for item in fragments if item.deletion_file is not None})

    def is_of(self, handle: lance.LanceDataset) -> bool:
        """Whether a handle is at this version of this table; the properties of one version never change."""
        return self.version == handle.version and self.properties == handle.metadata

    def own_handle(self) -> lance.LanceDataset | None:
        """A handle to write with: Lance moves one that commits to the new version, and a snapshot stays where it is."""
        return copy.copy(self.handle)

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The root namespace's properties: the manifest table's metadata map."""
        return {} if self.handle is None else dict(self.handle.metadata)

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The manifest's columns, unknown ones among them."""
        return None if self.handle is None else self.handle.schema

    def scan(
        self, where: str | None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> pa.Table | None:
        """The rows that a filter matches; ``None`` if nothing was ever written."""
        if self.handle is None:
            return None
        with storage_errors("read __manifest", self.root):
            found = self.handle.to_table(filter=where, columns=None if columns is None else list(columns), limit=limit)
        if columns is None and 0 < found.num_rows <= _REMEMBERED:
            self._seen = [*self._seen[1 - _SCANS :], found]
        return found

    def derived(
        self,
        key: Hashable,
        make: Callable[[], Derived],
        keep: Callable[[Derived], bool] = lambda made: True,
        *,
        follow: Follow | None = None,
    ) -> Derived:
        """What was computed from this snapshot alone under a key, such as a plan; the least recently used go first.

        Two threads may compute the same value at once, which does no harm. ``keep`` says whether a value is kept. One
        that can ``follow`` a commit of this process is computed from that of the snapshot before, if that had it.
        """
        if key in self._derived:
            with contextlib.suppress(KeyError):
                self._derived.move_to_end(key)
                known: Derived = self._derived[key]
                return known
        made: Derived = self._inherited.pop(key, make)()
        if not keep(made):
            return made
        if follow is not None:
            self._follow[key] = follow
        self._derived[key] = made
        if len(self._derived) > _DERIVED:
            with contextlib.suppress(KeyError):
                self._derived.popitem(last=False)
        return made

    def table_of(self, ids: Sequence[str]) -> pa.Table:
        """The full rows with these ids, in this order; those that do not exist are left out.

        A snapshot never changes, so that rows seen once are not read again.
        """
        assert self.handle is not None
        seen = pa.concat_tables([self.handle.schema.empty_table(), *self._seen])
        known = set(seen.column(OBJECT_ID).to_pylist()) | self._absent
        missing = [item for item in ids if item not in known]
        if missing:
            found = self.scan(of_ids(literals(missing)))
            assert found is not None
            self._absent |= set(missing) - set(found.column(OBJECT_ID).to_pylist())
            seen = pa.concat_tables([seen, found])
        order = pc.index_in(pa.array(ids, pa.string()), seen.column(OBJECT_ID).combine_chunks())
        return seen.take(order.drop_null())

    def remembered(self, ids: Sequence[str]) -> pa.Table | None:
        """The full rows with these ids, if all of them were seen already."""
        seen = pa.concat_tables(self._seen) if self._seen else None
        if seen is None or not set(ids) <= set(seen.column(OBJECT_ID).to_pylist()):
            return None
        return self.table_of(ids)

    def followed(self, handle: lance.LanceDataset, change: Change, written: pa.Table) -> Snapshot:
        """The snapshot right after this one, with the cached values that one change does not affect."""
        later = Snapshot(handle, self.root)
        changed = pa.array([*written.column(OBJECT_ID).to_pylist(), *change.deletes], pa.string())
        seen = pa.concat_tables([handle.schema.empty_table(), *self._seen])
        kept = seen.filter(pc.invert(pc.is_in(seen.column(OBJECT_ID), value_set=changed)))
        lasting = written.filter(pc.not_equal(written.column(OBJECT_TYPE), TABLE_VERSION)).cast(kept.schema)
        if kept.num_rows + lasting.num_rows <= _REMEMBERED:
            later._seen = [pa.concat_tables([kept, lasting]).combine_chunks()]
            later._absent = self._absent_after(change)
        later._settled = self._settled_after(change)
        later._inherited = {
            key: partial(follow, self._derived[key], changed, lasting)
            for key, follow in list(self._follow.items())
            if key in self._derived
        }
        return later

    def rearranged(self, handle: lance.LanceDataset) -> Snapshot:
        """A later snapshot that has the same rows elsewhere."""
        later = Snapshot(handle, self.root)
        later._seen, later._absent, later._settled = self._seen, set(self._absent), dict(self._settled)
        known = {key: partial(_as_it_is, self._derived[key]) for key in list(self._follow) if key in self._derived}
        later._inherited = {**self._inherited, **known}
        return later

    def _absent_after(self, change: Change) -> set[str]:
        """The leaves that still have no newer version in the cache."""
        inserted = {row.object_id for row in change.inserts}
        versions = [row.object_id for row in change.inserts if row.object_type == TABLE_VERSION]
        return (self._absent - inserted) | set(change.deletes) | {_next(item) for item in versions} - inserted

    def unsettled(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """The leaves of which it is not known that none of their versions has a number above the one given."""
        return {key: number for key, number in numbers.items() if self._settled.get(key, number + 1) > number}

    def settle(self, numbers: Mapping[str, int]) -> None:
        """Remember the highest numbers of some leaves' versions."""
        if len(numbers) + len(self._settled) <= _MOST_SETTLED:
            self._settled |= numbers

    def _settled_after(self, change: Change) -> dict[str, int]:
        """The highest numbers after a change: a writer that adds a version to a leaf has read all that it had."""
        made = {row.object_id for row in change.inserts if row.object_type == TABLE}
        added = [split_version_id(row.object_id) for row in change.inserts if row.object_type == TABLE_VERSION]
        known = [named for named in added if named is not None and (named[0] in self._settled or named[0] in made)]
        return {**self._settled, **dict(known)}

    def rows(self, ids: Iterable[str]) -> dict[str, Row]:
        """The objects with these ids that exist."""
        wanted = tuple(dict.fromkeys(ids))
        if not wanted or self.handle is None:
            return {}
        return {row.object_id: row for row in read_rows(self.table_of(wanted))}

    def row(self, object_id: str) -> Row | None:
        """The object with this id."""
        return self.rows([object_id]).get(object_id)

    def below(self, object_id: str, object_type: str | None = None, limit: int | None = None) -> list[Row]:
        """The objects at any depth beneath one, itself not among them."""
        found = self.scan(_and(beneath(object_id), object_type), limit=limit)
        return read_rows(found)

    def names(self, parent: str, object_type: str, after: str | None = None) -> list[str]:
        """The last parts of the ids exactly one level beneath a parent (the root is ''), in order."""
        key = ("names", parent, object_type, after)
        return [*self.derived(key, lambda: self._names(parent, object_type, after), lambda found: len(found) <= _NAMES)]

    def _names(self, parent: str, object_type: str, after: str | None) -> list[str]:
        prefix = f"{parent}$" if parent else ""
        where = _and(beneath(parent) if parent else None, object_type)
        if after is not None:
            where += f" AND {OBJECT_ID} > {literal(prefix + after)}"
        found = self.scan(where, columns=[OBJECT_ID])
        if found is None:
            return []
        ids = found.column(OBJECT_ID)
        level = ids.filter(pc.equal(pc.count_substring(ids, "$"), prefix.count("$")))
        return sorted(pc.utf8_slice_codeunits(level, len(prefix)).to_pylist()) if prefix else sorted(level.to_pylist())

    def ids(self, parent: str, object_type: str) -> list[str]:
        """The full ids of the objects at any depth beneath a parent (the root is ''), in order."""
        found = self.scan(_and(beneath(parent) if parent else None, object_type), columns=[OBJECT_ID])
        return [] if found is None else sorted(found.column(OBJECT_ID).to_pylist())

    def versions_of(self, ids: Sequence[str], columns: Sequence[str]) -> pa.Table | None:
        """Columns of the ``table_version`` rows with these ids; of many only the ids of all others are read."""
        if self.handle is None or not ids:
            return None
        kind = of_type(TABLE_VERSION)
        if len(ids) <= _LOOKED_UP:
            return self.scan(f"{kind} AND {of_ids(literals(ids))}", columns=columns)
        with storage_errors("read __manifest", self.root):
            found = self.handle.to_table(filter=kind, columns=[OBJECT_ID], with_row_id=True)
            wanted = pc.is_in(found.column(OBJECT_ID), value_set=pa.array(ids, pa.string()))
            rows = found.column("_rowid").filter(wanted).to_pylist()
            return self.handle._take_rows(rows, columns=list(columns)) if rows else None

    def at_locations(self, locations: Sequence[str]) -> list[Row]:
        """The tables at these locations."""
        if not locations:
            return []
        found = self.scan(f"{of_type(TABLE)} AND {LOCATION} IN ({literals(locations)})")
        return read_rows(found)

    def mentioning(self, prefix: str) -> list[Row]:
        """The namespaces whose metadata has a key with a prefix, or seems to."""
        found = self.scan(f"{of_type(NAMESPACE)} AND {METADATA} LIKE {literal(f'%{prefix}%')}")
        return read_rows(found)

    def overlapping(self, location: str) -> list[Row]:
        """The tables inside a directory, or in one of its parents."""
        parts = location.split("/")
        above = literals("/".join(parts[:depth]) for depth in range(1, len(parts)))
        inside = f"{LOCATION} >= {literal(location + '/')} AND {LOCATION} < {literal(location + '0')}"
        where = f"({inside} OR {LOCATION} IN ({above}))" if above else inside
        found = self.scan(f"{of_type(TABLE)} AND {where}")
        return read_rows(found)


def _as_it_is(value: Derived) -> Derived:
    return value


def _next(version: str) -> str:
    """The id of the version after one.

    >>> _next("v1$leaf$7")
    'v1$leaf$8'
    """
    found = split_version_id(version)
    return version if found is None else version_id(found[0], found[1] + 1)


def literal(text: str) -> str:
    """A string as SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Strings as the inside of an SQL ``IN (…)``."""
    return ", ".join(map(literal, texts))


def beneath(object_id: str) -> str:
    """A filter for all ids that start with ``<object_id>$``; as a range, for which an index is used.

    >>> beneath("ns")
    "object_id >= 'ns$' AND object_id < 'ns%'"
    """
    return f"{OBJECT_ID} >= {literal(object_id + '$')} AND {OBJECT_ID} < {literal(object_id + '%')}"


def _and(where: str | None, object_type: str | None) -> str:
    parts = [of_type(object_type)] if object_type else []
    return " AND ".join([*parts, *([where] if where else [])])


def _refuse_sealed(handle: lance.LanceDataset, root: Root) -> None:
    """Refuse a manifest that stands for nothing any more but the removal of its table."""
    if handle.schema.names == SEALED.names:
        raise SealedError(
            f"the table at {root.uri!r} is being removed: try again; if that was interrupted, "
            f"lancepart.drop_table({root.uri!r}) removes what is left"
        )


def _check_columns(handle: lance.LanceDataset) -> None:
    """Refuse a manifest whose extension columns were dropped by a client that does not know them."""
    recorded = handle.metadata.get(REQUIRED_COLUMNS)
    if recorded is None:
        return
    lost = [name for name in _as_list(recorded) if name not in handle.schema.names]
    if lost:
        raise InvalidTableStateError(
            f"__manifest lost the column{'s' if len(lost) > 1 else ''} {', '.join(lost)}: another client rewrote it "
            "without them; restore the version before that write, and let only lancepart write to this catalog"
        )


def _as_list(recorded: str) -> list[Value]:
    try:
        value = json.loads(recorded)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise InvalidTableStateError(f"the property {REQUIRED_COLUMNS} of __manifest is not a JSON list: {recorded!r}")
    return value
