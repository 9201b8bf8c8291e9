"""The leaves of a partitioned table at one snapshot, as recorded in the manifest."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError
from lancepart.format.names import (
    DATASET,
    LOCATION,
    METADATA,
    OBJECT_ID,
    OBJECT_TYPE,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    TABLE,
    of_type,
    partition_column,
    spec_namespace,
)
from lancepart.format.numbers import END, FIRST, Blocks
from lancepart.format.records import NUMBERS, Stats, leaf_facts, recorded_rows
from lancepart.format.records import recorded_sizes as sizes_in_metadata
from lancepart.format.rows import parse_metadata
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.layout.versions import Facts, are_newest, newer_versions, read_versions
from lancepart.model.aliases import JsonMapping
from lancepart.model.partition_keys import value_keys, value_texts
from lancepart.model.quoting import quote_identifier
from lancepart.model.spec import PartitionSpec
from lancepart.storage.snapshot import Snapshot

PLAIN_ID = "plain:"
"""How the id of the leaf begins that a plain Lance table is."""
_FILTERED_OFTEN = 2
"""How many filters are sent to the manifest before all of its leaves are kept instead."""
_MOST_KEPT = 10_000
_MOST_PARSED = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One leaf table: where it is, which version to read, and its partition values, one a field of its spec.

    ``key`` identifies its values exactly, ``values`` shows them; ``constants`` are columns that its path holds instead
    of its files, by field id, and ``branch`` is the one that the version is of, if not main. ``numbering`` is what its
    row says of its fragments' numbers in the table.
    """

    object_id: str
    spec_id: int
    location: str
    key: tuple[str, ...]
    values: tuple[str | None, ...]
    read_version: int | None = None
    number: int = 0
    stats: Stats | None = None
    constants: tuple[tuple[int, pa.Scalar], ...] = ()
    branch: str | None = None
    numbering: tuple[int, ...] = ()

    @property
    def numbers(self) -> Blocks | None:
        """The numbers of its fragments in the table, if it has any at this version."""
        found = Blocks.from_json(list(self.numbering), self.read_version) if self.numbering else None
        return found if found is not None and found.starts else None

    @property
    def first_fragment(self) -> int:
        """A number that none of its fragments is below: 0, unless they have their numbers in the table."""
        first = self.numbering[1] if len(self.numbering) > 1 else 0
        return first if type(first) is int and FIRST <= first < END else 0

    def at(self, version: int) -> Leaf:
        """The leaf at a version that was made of this one, whose fragments go on with its numbers."""
        numbering = self.numbering[:2] if self.numbers is None else (version, *self.numbering[1:])
        return replace(self, read_version=version, numbering=numbering)

    @property
    def identity(self) -> int:
        """The leaf at its version in 64 bits: a digest of its id, location, branch and version, and of nothing else.

        With a row address it identifies a row in rows that leave the process, whatever other leaves there are.
        """
        named = json.dumps([self.object_id, self.location, self.branch, self.read_version])
        return int.from_bytes(hashlib.blake2b(named.encode(), digest_size=8).digest(), "big", signed=True)


def by_identity(leaves: Iterable[Leaf]) -> dict[int, Leaf]:
    """Leaves by their identity; two that have the same one are refused, so that none is taken for the other."""
    found: dict[int, Leaf] = {}
    for leaf in leaves:
        other = found.setdefault(leaf.identity, leaf)
        if other is not leaf:
            raise InvalidTableStateError(
                f"leaves {other.object_id!r} and {leaf.object_id!r} can't be distinguished by the digests that Spark's "
                "rows carry: change rows with table.update, table.upsert or table.delete in Python"
            )
    return found


def candidates(snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False) -> pa.Table:
    """The rows of one spec version's leaves that a filter over partition columns leaves in.

    The version's prefix is kept out of the filter, so that an index on a partition column can answer it. ``whole``
    rows are what a commit needs: the snapshot remembers them until then.
    """
    if not whole and _is_filtered_often(snapshot, spec):
        return snapshot.derived(
            ("leaves", spec.id),
            lambda: _queried(snapshot, spec, None, whole=False),
            follow=partial(_after_commit, spec),
        )
    return _queried(snapshot, spec, where, whole=whole)


def _queried(snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool) -> pa.Table:
    columns = [OBJECT_ID, LOCATION, METADATA, *map(partition_column, (f.field_id for f in spec.fields))]
    known = snapshot.schema.names if snapshot.schema is not None else ()
    columns += [field.name for field in (READ_VERSION, READ_BRANCH, READ_TAG) if field.name in known]
    test = of_type(TABLE) if where is None else f"({where}) AND {of_type(TABLE)}"
    found = snapshot.scan(test, columns=None if whole else columns)
    assert found is not None
    leaves = _of_spec(found, spec)
    _refuse_doubled_leaves(leaves)
    return leaves


def _after_commit(spec: PartitionSpec, leaves: pa.Table, changed: pa.Array, written: pa.Table) -> pa.Table:
    """The rows of one spec version's leaves after a commit, made of those before it."""
    kept = leaves.filter(pc.invert(pc.is_in(leaves.column(OBJECT_ID), value_set=changed)))
    tables = written.filter(pc.equal(written.column(OBJECT_TYPE), TABLE))
    fresh = _of_spec(tables, spec).select(leaves.column_names).cast(leaves.schema)
    found = pa.concat_tables([kept, fresh]).combine_chunks()
    _refuse_doubled_leaves(found)
    return found


def _of_spec(found: pa.Table, spec: PartitionSpec) -> pa.Table:
    """The rows of tables that are leaves of a spec version."""
    ids = found.column(OBJECT_ID)
    mine = pc.and_(pc.starts_with(ids, f"{spec_namespace(spec.id)}$"), pc.ends_with(ids, f"${DATASET}"))
    depth = pc.equal(pc.count_substring(ids, "$"), len(spec.fields) + 1)
    return found.filter(pc.and_(mine, depth))


def _refuse_doubled_leaves(leaves: pa.Table) -> None:
    _refuse_doubled(leaves, OBJECT_ID)
    if READ_BRANCH.name not in leaves.schema.names:
        _refuse_doubled(leaves, LOCATION)


def _refuse_doubled(rows: pa.Table, column: str) -> None:
    """Refuse a manifest with two rows for one leaf, whose rows would be read twice."""
    values = rows.column(column)
    if len(pc.unique(values)) < rows.num_rows - max(0, values.null_count - 1):
        counted = pc.value_counts(values.combine_chunks())
        doubled = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
        raise InvalidTableStateError(
            f"__manifest has more than one leaf with the {column} {doubled.drop_null()[0].as_py()!r}: delete all but "
            "one of their rows by hand"
        )


def _is_filtered_often(snapshot: Snapshot, spec: PartitionSpec) -> bool:
    """Whether a snapshot was filtered so often that it pays to keep all of its leaves in memory, if they are few."""
    count = snapshot.derived(("filters", spec.id), lambda: [0], follow=lambda known, changed, written: known)
    count[0] += 1
    if count[0] <= _FILTERED_OFTEN or snapshot.handle is None:
        return False
    return snapshot.derived("rows", snapshot.handle.count_rows) <= _MOST_KEPT


def manifest_leaves(
    snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
) -> tuple[Leaf, ...]:
    """Rows of the current layout as leaves, each at the version that its ``table_version`` rows name."""
    recorded = _recorded(rows)
    facts = [each.facts for each in recorded]
    versions = read_versions(snapshot, rows, facts) if metadata.transactions == STRONG else {}
    columns = [rows.column(name) for name in names_of(spec)]
    keys = list(zip(*map(value_keys, columns), strict=True)) if columns else [()] * rows.num_rows
    texts = list(zip(*map(value_texts, columns), strict=True)) if columns else [()] * rows.num_rows
    leaves = []
    for object_id, location, (_, _, stats), key, own, said in zip(
        rows.column(OBJECT_ID).to_pylist(),
        rows.column(LOCATION).to_pylist(),
        facts,
        keys,
        texts,
        recorded,
        strict=True,
    ):
        if location is None:
            raise InvalidTableStateError(f"leaf {object_id!r} has no location in __manifest")
        number, version, trusted = versions.get(object_id, (0, None, False))
        leaves.append(
            Leaf(
                object_id=object_id,
                spec_id=spec.id,
                location=location,
                key=key,
                values=own,
                read_version=version,
                number=number,
                stats=stats if trusted else None,
                numbering=said.numbering,
            )
        )
    return tuple(leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What the row of a leaf says in its metadata: its facts, and the numbers of its fragments in the table."""

    facts: Facts
    numbering: tuple[int, ...]

    @classmethod
    def of(cls, entry: JsonMapping) -> _Recorded:
        numbers = entry.get(NUMBERS)
        return cls(facts=leaf_facts(entry), numbering=tuple(numbers) if isinstance(numbers, list) else ())


def _recorded(rows: pa.Table) -> list[_Recorded]:
    """What the rows of leaves say; that of rows which a commit left as they were is remembered if they are not many."""
    texts = rows.column(METADATA).to_pylist()
    if len(texts) <= _MOST_PARSED:
        with contextlib.suppress(ValueError, RecursionError):
            return [_parsed(text or "{}") for text in texts]
    return [_Recorded.of(entry) for entry in _details(rows)]


@lru_cache(maxsize=_MOST_PARSED)
def _parsed(text: str) -> _Recorded:
    entry = json.loads(text)
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    return _Recorded.of(entry)


def _details(rows: pa.Table) -> list[JsonMapping]:
    """What the rows of leaves say in their metadata, read in one go: there may be a million of them."""
    texts = rows.column(METADATA).to_pylist()
    try:
        found: list[JsonMapping] = json.loads(f"[{','.join(text or '{}' for text in texts)}]")
    except (ValueError, RecursionError):
        found = []
    if len(found) == len(texts) and all(isinstance(entry, dict) for entry in found):
        return found
    ids = rows.column(OBJECT_ID).to_pylist()
    return [parse_metadata(key, text) or {} for key, text in zip(ids, texts, strict=True)]


def is_current(snapshot: Snapshot, rows: pa.Table) -> bool:
    """Whether the rows of leaves speak of the newest version of each: no ``table_version`` row is ahead of them."""
    numbers = [each.facts[0] for each in _recorded(rows)]
    return not newer_versions(snapshot, dict(zip(rows.column(OBJECT_ID).to_pylist(), numbers, strict=True)))


def total_rows(rows: pa.Table) -> int | None:
    """The total row count recorded in the manifest; ``None`` if it is missing for a leaf."""
    if READ_VERSION.name not in rows.schema.names:
        return None
    found = recorded_rows(rows.column(METADATA).combine_chunks(), rows.column(READ_VERSION.name).combine_chunks())
    return None if found is None else int(pc.sum(found).as_py() or 0)


def recorded_sizes(snapshot: Snapshot, rows: pa.Table, metadata: TableMetadata) -> pa.Table | None:
    """The version, rows, bytes and fragments of leaves without a look into them; ``None`` if one must be opened."""
    if metadata.transactions != STRONG or READ_VERSION.name not in rows.schema.names:
        return None
    versions = rows.column(READ_VERSION.name).combine_chunks()
    found = sizes_in_metadata(rows.column(METADATA).combine_chunks(), versions)
    ids = rows.column(OBJECT_ID).combine_chunks()
    if found is None or not are_newest(snapshot, ids, found.column("n").combine_chunks()):
        return None
    return found.append_column(READ_VERSION.name, versions)


def quoted(field_id: str) -> str:
    """A partition column, quoted for a filter."""
    return quote_identifier(partition_column(field_id))


def names_of(spec: PartitionSpec) -> Sequence[str]:
    """The partition columns of a spec."""
    return [partition_column(field.field_id) for field in spec.fields]
