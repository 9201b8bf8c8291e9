"""The leaves of a partitioned table at one snapshot, as recorded in the manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError
from lancepart.format.names import (
    DATASET,
    LOCATION,
    METADATA,
    OBJECT_ID,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    TABLE,
    of_type,
    partition_column,
    spec_namespace,
)
from lancepart.format.records import Stats, leaf_facts, told_rows
from lancepart.format.rows import parse_metadata
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.layout.versions import newer_versions, read_versions
from lancepart.model.aliases import JsonMapping
from lancepart.model.partition_keys import value_keys, value_texts
from lancepart.model.quoting import quote_identifier
from lancepart.model.spec import PartitionSpec
from lancepart.storage.snapshot import Snapshot

_ASKED = 2
"""How many filters are sent to the manifest before all of its leaves are kept instead."""
_MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One leaf table: where it is, which version to read, and its partition values, one a field of its spec.

    ``key`` tells its values from others' exactly, ``values`` shows them; ``constants`` are columns that its path
    holds instead of its files, by field id, and ``branch`` is the one that the version is of, if not main.
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


def candidates(snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False) -> pa.Table:
    """The rows of one spec version's leaves that a filter over partition columns leaves in.

    The version's prefix is kept out of the filter, so that an index on a partition column can answer it. ``whole``
    rows are what a commit needs: the snapshot remembers them until then.
    """
    if not whole and _is_asked_often(snapshot, spec):
        return snapshot.derived(("leaves", spec.id), lambda: _queried(snapshot, spec, None, whole=False))
    return _queried(snapshot, spec, where, whole=whole)


def _queried(snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool) -> pa.Table:
    columns = [OBJECT_ID, LOCATION, METADATA, *map(partition_column, (f.field_id for f in spec.fields))]
    known = snapshot.schema.names if snapshot.schema is not None else ()
    columns += [field.name for field in (READ_VERSION, READ_BRANCH, READ_TAG) if field.name in known]
    test = of_type(TABLE) if where is None else f"({where}) AND {of_type(TABLE)}"
    found = snapshot.scan(test, columns=None if whole else columns)
    assert found is not None
    ids = found.column(OBJECT_ID)
    mine = pc.and_(pc.starts_with(ids, f"{spec_namespace(spec.id)}$"), pc.ends_with(ids, f"${DATASET}"))
    depth = pc.equal(pc.count_substring(ids, "$"), len(spec.fields) + 1)
    leaves = found.filter(pc.and_(mine, depth))
    _refuse_doubled(leaves, "object_id")
    if READ_BRANCH.name not in known:
        _refuse_doubled(leaves, "location")
    return leaves


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


def _is_asked_often(snapshot: Snapshot, spec: PartitionSpec) -> bool:
    """Whether filters were asked of a snapshot so often that all of its leaves, if few, had better be kept."""
    asked = snapshot.derived(("filters", spec.id), lambda: [0])
    asked[0] += 1
    if asked[0] <= _ASKED or snapshot.handle is None:
        return False
    return snapshot.derived("rows", snapshot.handle.count_rows) <= _MOST_KEPT


def manifest_leaves(
    snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
) -> tuple[Leaf, ...]:
    """Rows of the current layout as leaves, each at the version that its ``table_version`` rows name."""
    facts = [leaf_facts(entry) for entry in _details(rows)]
    versions = read_versions(snapshot, rows, facts) if metadata.transactions == STRONG else {}
    columns = [rows.column(name) for name in names_of(spec)]
    keys = list(zip(*map(value_keys, columns), strict=True)) if columns else [()] * rows.num_rows
    texts = list(zip(*map(value_texts, columns), strict=True)) if columns else [()] * rows.num_rows
    leaves = []
    for object_id, location, (_, _, stats), key, own in zip(
        rows.column(OBJECT_ID).to_pylist(),
        rows.column(LOCATION).to_pylist(),
        facts,
        keys,
        texts,
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
            )
        )
    return tuple(leaves)


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
    numbers = [leaf_facts(entry)[0] for entry in _details(rows)]
    return not newer_versions(snapshot, dict(zip(rows.column(OBJECT_ID).to_pylist(), numbers, strict=True)))


def total_rows(rows: pa.Table) -> int | None:
    """The sum of the rows that leaves' rows in the manifest tell of; ``None`` if one tells nothing."""
    if READ_VERSION.name not in rows.schema.names:
        return None
    found = told_rows(rows.column(METADATA).combine_chunks(), rows.column(READ_VERSION.name).combine_chunks())
    return None if found is None else int(pc.sum(found).as_py() or 0)


def quoted(field_id: str) -> str:
    """A partition column, quoted for a filter."""
    return quote_identifier(partition_column(field_id))


def names_of(spec: PartitionSpec) -> Sequence[str]:
    """The partition columns of a spec."""
    return [partition_column(field.field_id) for field in spec.fields]
