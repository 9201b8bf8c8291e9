"""What lancepart's own rows of ``__manifest`` say: of leaves, of their versions, and of jobs that ran.

All of it is in a row's metadata under keys with a prefix of their own; what is beside them belongs to others
and is kept. Earlier releases wrote the same keys without the prefix: such a group is understood where it is whole,
and gets the prefix when its row is next written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError
from lancepart.format.names import (
    CHANGE,
    OWN,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    split_version_id,
    version_id,
)
from lancepart.format.numbers import Blocks
from lancepart.format.rows import Row, dump_metadata
from lancepart.model.aliases import JsonMapping, JsonObject, Value

NUMBER, VERSION = f"{OWN}n", f"{OWN}version"
ROWS, BYTES, FRAGMENTS = f"{OWN}rows", f"{OWN}bytes", f"{OWN}fragments"
TRANSACTION, OPERATION, BY = f"{OWN}transaction", f"{OWN}operation", f"{OWN}by"
ADDED, DELETED, MOVED = f"{OWN}added", f"{OWN}deleted", f"{OWN}moved"
LOCATION, FILES = f"{OWN}location", f"{OWN}files"
NUMBERS = f"{OWN}numbers"
KEY, SEQUENCE = f"{OWN}key", f"{OWN}sequence"

_STATS = (ROWS, BYTES, FRAGMENTS)
_OF_LEAF = (NUMBER, *_STATS)
_OF_VERSION = (TRANSACTION, OPERATION, BY, ADDED, DELETED, CHANGE, *_STATS)
_OF_KEY = (KEY, SEQUENCE, TRANSACTION, OPERATION, BY)
_TEXTS = frozenset({TRANSACTION, OPERATION, BY, KEY})
_BARE = {key: key.removeprefix(OWN) for key in (*_OF_LEAF, *_OF_VERSION, *_OF_KEY, MOVED, LOCATION)}
_SPELLED = r"^\{" + "".join(rf'"{re.escape(key)}":(?P<{key.removeprefix(OWN)}>\d+),' for key in (NUMBER, VERSION, ROWS))
_SIZES = _SPELLED + ",".join(rf'"{re.escape(key)}":(?P<{key.removeprefix(OWN)}>\d+)' for key in (BYTES, FRAGMENTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How much a leaf holds."""

    rows: int
    bytes: int
    fragments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Which transaction wrote a row, what it did, and for whom: by this it is recognised."""

    transaction: str
    operation: str
    by: str

    def to_metadata(self) -> dict[str, str]:
        """Its entries of a row's metadata."""
        return {TRANSACTION: self.transaction, OPERATION: self.operation, BY: self.by}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRecord:
    """The ``table`` row of a leaf.

    ``number`` is that of the newest version that the row knows of, ``measured`` the version that ``stats`` are of.
    """

    object_id: str
    location: str | None
    read_version: int | None = None
    values: JsonMapping = field(default_factory=dict)
    number: int = 0
    measured: int | None = None
    stats: Stats | None = None
    numbers: Blocks | None = None
    others: JsonMapping = field(default_factory=dict)
    created_at: datetime | None = None

    @classmethod
    def from_row(cls, row: Row) -> LeafRecord:
        """What a row says."""
        metadata = row.metadata or {}
        number, measured, stats = leaf_facts(metadata)
        return cls(
            object_id=row.object_id,
            location=row.location,
            read_version=row.columns.get(READ_VERSION.name),
            values={name: value for name, value in row.columns.items() if name != READ_VERSION.name},
            number=number,
            measured=measured,
            stats=stats,
            numbers=Blocks.from_json(metadata.get(NUMBERS), row.columns.get(READ_VERSION.name)),
            others=_others(metadata, _OF_LEAF, NUMBERS),
            created_at=row.created_at,
        )

    def to_row(self) -> Row:
        """The row to insert."""
        pointer = {} if self.read_version is None else {READ_VERSION.name: self.read_version}
        return Row(
            object_id=self.object_id,
            object_type=TABLE,
            location=self.location,
            metadata=self.to_metadata(),
            created_at=self.created_at,
            columns={**self.values, **pointer},
        )

    def to_metadata(self) -> JsonObject:
        """The row's metadata: our own entries first and always in one order, so that ``recorded_rows`` finds them."""
        mine: JsonObject = {NUMBER: self.number} if self.number else {}
        if self.stats is not None and self.read_version is not None:
            mine |= {VERSION: self.read_version, **_stats_to_json(self.stats)}
        mine |= {} if self.numbers is None else {NUMBERS: self.numbers.to_json()}
        return {**mine, **self.others}

    def to_values(self) -> JsonObject:
        """New values of the row's columns, for one that exists already."""
        return {READ_VERSION.name: self.read_version, "metadata": dump_metadata(self.to_metadata())}


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord:
    """The ``table_version`` row of a leaf's version; of one that another client wrote, only the version is known.

    ``moved`` holds pairs of versions between which a commit rewrote all rows, ``location`` the leaf's directory, and
    ``files`` what ``format.fragments`` spells of the version's fragments.
    """

    leaf: str
    number: int
    read_version: int | None
    signature: Signature | None = None
    added: int | None = None
    deleted: int | None = None
    change: int | None = None
    moved: tuple[tuple[int, int], ...] = ()
    location: str | None = None
    stats: Stats | None = None
    files: JsonObject | None = None
    others: JsonMapping = field(default_factory=dict)
    created_at: datetime | None = None

    @property
    def object_id(self) -> str:
        """The row's id."""
        return version_id(self.leaf, self.number)

    @property
    def operation(self) -> str | None:
        """What the commit did, if that is recorded."""
        return None if self.signature is None else self.signature.operation

    @classmethod
    def from_row(cls, row: Row) -> VersionRecord | None:
        """What a row says; None if its id is not that of a version."""
        named = split_version_id(row.object_id)
        if named is None:
            return None
        metadata = row.metadata or {}
        mine = _own(metadata, _OF_VERSION)
        return cls(
            leaf=named[0],
            number=named[1],
            read_version=row.columns.get(READ_VERSION.name),
            signature=_signature(mine),
            added=mine.get(ADDED),
            deleted=mine.get(DELETED),
            change=mine.get(CHANGE),
            moved=_pairs(metadata.get(MOVED, metadata.get(_BARE[MOVED]) if mine else None)),
            location=_text(metadata.get(LOCATION, metadata.get(_BARE[LOCATION]) if mine else None)),
            stats=_stats(mine),
            files=files if isinstance(files := metadata.get(FILES), dict) else None,
            others=_others(metadata, _OF_VERSION, MOVED, LOCATION, FILES),
            created_at=row.created_at,
        )

    def to_row(self) -> Row:
        """The row to insert."""
        counts = {ADDED: self.added, DELETED: self.deleted, CHANGE: self.change}
        mine: JsonObject = {
            **({} if self.signature is None else self.signature.to_metadata()),
            **{key: value for key, value in counts.items() if value is not None},
            **({MOVED: [list(pair) for pair in self.moved]} if self.moved else {}),
            **({} if self.location is None else {LOCATION: self.location}),
            **({} if self.stats is None else _stats_to_json(self.stats)),
            **({} if self.files is None else {FILES: self.files}),
        }
        return Row(
            object_id=self.object_id,
            object_type=TABLE_VERSION,
            metadata={**mine, **self.others},
            created_at=self.created_at,
            columns={READ_VERSION.name: self.read_version},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The row of an idempotency key: a ``table_version`` of no table."""

    object_id: str
    key: str
    sequence: int
    signature: Signature | None
    others: JsonMapping = field(default_factory=dict)
    created_at: datetime | None = None

    @classmethod
    def from_row(cls, row: Row) -> KeyRecord:
        """What a row says."""
        metadata = row.metadata or {}
        mine = _own(metadata, _OF_KEY)
        return cls(
            object_id=row.object_id,
            key=mine.get(KEY, ""),
            sequence=mine.get(SEQUENCE, 0),
            signature=_signature(mine),
            others=_others(metadata, _OF_KEY),
            created_at=row.created_at,
        )

    def to_row(self) -> Row:
        """The row to insert, or whose metadata an existing one gets."""
        signed = {} if self.signature is None else self.signature.to_metadata()
        return Row(
            object_id=self.object_id,
            object_type=TABLE_VERSION,
            metadata={KEY: self.key, SEQUENCE: self.sequence, **signed, **self.others},
            created_at=self.created_at,
        )


def leaf_facts(metadata: JsonMapping) -> tuple[int, int | None, Stats | None]:
    """Of a leaf's row its number, the version that its statistics are of, and these; there may be a million rows.

    >>> leaf_facts({"n": "abc"}), leaf_facts({"lancepart.n": 2})
    ((0, None, None), (2, None, None))
    """
    mine = _own(metadata, _OF_LEAF)
    return mine.get(NUMBER, 0), mine.get(VERSION), _stats(mine)


def recorded_rows(texts: pa.Array, versions: pa.Array) -> pa.Array | None:
    """The row counts of many leaves, from their rows' metadata and ``read_version``.

    None unless all of them record it, in our own format, for exactly that version.
    """
    found = pc.extract_regex(texts, pattern=_SPELLED)
    counted = pc.cast(pc.struct_field(found, "rows"), pa.int64())
    return counted if not len(texts) or pc.all(_speaks_of(found, versions)).as_py() else None


def recorded_sizes(texts: pa.Array, versions: pa.Array) -> pa.Table | None:
    """The number, rows, bytes and fragments of each of many leaves; None unless all record them so."""
    found = pc.extract_regex(texts, pattern=_SIZES)
    if len(texts) and not pc.all(_speaks_of(found, versions)).as_py():
        return None
    names = ("n", "rows", "bytes", "fragments")
    return pa.table({name: pc.cast(pc.struct_field(found, name), pa.int64()) for name in names})


def _speaks_of(found: pa.Array, versions: pa.Array) -> pa.Array:
    """Which rows have statistics of the very version that they refer to."""
    measured = pc.cast(pc.struct_field(found, "version"), pa.uint64())
    return pc.fill_null(pc.equal(measured, pc.cast(versions, pa.uint64())), fill_value=False)


def number_of(row: Row, key: str) -> float:
    """A number of ours in the metadata of a row, 0 if it has none; any other value is an error."""
    value: Value = (row.metadata or {}).get(key, 0)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return value
    raise InvalidTableStateError(f"row {row.object_id!r} of __manifest: {key!r} is {value!r}, which is no number")


def _own(metadata: JsonMapping, group: tuple[str, ...]) -> JsonMapping:
    """Our own entries of a row's metadata, under their full names; those of a wrong type count as none."""
    if not metadata:
        return metadata
    if group[0] in metadata:
        return {key: metadata[key] for key in (*group, VERSION) if key in metadata and _is_valid(key, metadata[key])}
    if _is_bare(metadata, group):
        return {key: metadata[_BARE[key]] for key in group}
    return {}


def _is_bare(metadata: JsonMapping, group: tuple[str, ...]) -> bool:
    return all(_BARE[key] in metadata and _is_valid(key, metadata[_BARE[key]]) for key in group)


def _is_valid(key: str, value: Value) -> bool:
    return type(value) is str if key in _TEXTS else type(value) is int and value >= 0


def _others(metadata: JsonMapping, group: tuple[str, ...], *more: str) -> JsonObject:
    """What is not ours in a row's metadata, or not of this group."""
    mine = {*group, VERSION, *more}
    if group[0] not in metadata and _is_bare(metadata, group):
        mine |= {_BARE[key] for key in (*group, *more) if key in _BARE}
    return {key: value for key, value in metadata.items() if key not in mine}


def _stats(mine: JsonMapping) -> Stats | None:
    if ROWS in mine and BYTES in mine and FRAGMENTS in mine:
        return Stats(rows=mine[ROWS], bytes=mine[BYTES], fragments=mine[FRAGMENTS])
    return None


def _stats_to_json(stats: Stats) -> dict[str, int]:
    return {ROWS: stats.rows, BYTES: stats.bytes, FRAGMENTS: stats.fragments}


def signature_of(row: Row) -> Signature | None:
    """Which transaction wrote the row of a version or of a key."""
    metadata = row.metadata or {}
    return _signature(_own(metadata, _OF_VERSION) or _own(metadata, _OF_KEY))


def _signature(mine: JsonMapping) -> Signature | None:
    if TRANSACTION in mine and OPERATION in mine and BY in mine:
        return Signature(transaction=mine[TRANSACTION], operation=mine[OPERATION], by=mine[BY])
    return None


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _pairs(value: Value) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list):
        return ()
    pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2]
    return tuple((first, second) for first, second in pairs if type(first) is int and type(second) is int)
