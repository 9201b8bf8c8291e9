"""Creating a partitioned table, and changing its definition."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVarTuple

import pyarrow as pa

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableAlreadyExistsError,
)
from lancepart.format.names import FORMAT, LAST_FIELD, OBJECT_ID, OWN, READ_VERSION, partition_column, spec_namespace
from lancepart.format.rows import namespace_row
from lancepart.layout.field_ids import highest_field_id
from lancepart.layout.hive import is_hive
from lancepart.layout.layouts import layout_of
from lancepart.layout.metadata import (
    HIVE,
    STRONG,
    WEAK,
    TableMetadata,
    as_stored,
    is_partitioned,
)
from lancepart.model.partition_by import parse_partition_by
from lancepart.model.schema import (
    assign_field_ids,
    check_column_names,
    max_field_id,
    refuse_empty_names,
    schema_to_json,
)
from lancepart.model.spec import PartitionField, PartitionSpec, evolve
from lancepart.storage import occupied
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change
from lancepart.storage.root_contents import refuse_file, refuse_plain
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError

Given = TypeVarTuple("Given")

_TRIES = 50


def create(
    manifest: Manifest, schema: pa.Schema, partition_by: Sequence[str | PartitionField], *, transactions: str
) -> TableMetadata:
    """Make an empty partitioned table; it exists from the one commit on that writes its definition."""
    if transactions not in (STRONG, WEAK):
        raise InvalidInputError(f"transactions is {transactions!r}: use {STRONG!r} or {WEAK!r}")
    metadata = define(schema, partition_by, transactions=transactions)
    refuse_taken(manifest)
    extra = [READ_VERSION] if transactions == STRONG else []
    manifest.add_columns([*extra, *partition_fields(metadata.spec)])
    if not manifest.claim_properties(metadata.to_properties()):
        raise TableAlreadyExistsError(f"a partitioned table was made at {manifest.root.uri!r} by another writer")
    ensure_namespace(manifest, metadata.spec)
    return metadata


def define(schema: pa.Schema, partition_by: Sequence[str | PartitionField], *, transactions: str) -> TableMetadata:
    """Check a schema and a partitioning, and put a definition together; touches no storage."""
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError(f"schema is a {type(schema).__name__}, not a pyarrow.Schema")
    if not len(schema):
        raise InvalidInputError("the schema has no columns")
    check_column_names(schema)
    refuse_empty_names(schema)
    stored = pa.schema([as_stored(field) for field in schema], metadata=schema.metadata)
    schema_to_json(stored)
    check_partition_by(partition_by)
    numbered = assign_field_ids(stored)
    spec = PartitionSpec(id=1, fields=parse_partition_by(list(partition_by), numbered))
    _check_new(spec, numbered)
    return TableMetadata(
        schema=numbered,
        specs=(spec,),
        transactions=transactions,
        salt=new_salt(),
        last_field_id=max_field_id(numbered),
    )


def check_partition_by(partition_by: Sequence[str | PartitionField]) -> None:
    """Refuse anything but a list of fields: a string has letters, a dict loses its values, a set has no order.

    A list without fields is a table without partitions: one leaf.
    """
    if not isinstance(partition_by, Sequence) or isinstance(partition_by, str | bytes):
        raise InvalidInputError(
            f'partition_by is a list of fields, for example ["year(ts)", "country"], and not {partition_by!r}'
        )


def refuse_taken(manifest: Manifest) -> None:
    """Refuse a root that has a table, other objects or foreign files already.

    The files are listed before the manifest is read: the files of a table that is created meanwhile then belong to it.
    """
    refuse_file(manifest.root)
    stranger = occupied.stranger(manifest.root)
    manifest.refuse_remains()
    if manifest.snapshot().handle is None:
        refuse_plain(manifest.root)
    snapshot = manifest.snapshot()
    if is_partitioned(snapshot.properties) or is_hive(snapshot.properties):
        raise TableAlreadyExistsError(f"there is a partitioned table at {manifest.root.uri!r} already: open it")
    found = snapshot.scan(None, columns=[OBJECT_ID], limit=1)
    if found is not None and found.num_rows:
        raise TableAlreadyExistsError(
            f"{manifest.root.uri!r} is a catalog with other objects in it: a partitioned table needs a root of its own"
        )
    if stranger is not None:
        raise InvalidInputError(
            f"{manifest.root.uri!r} can't hold a table: there is {stranger!r}, which belongs to no table of "
            "lancepart's; give a directory of its own, empty or not there yet"
        )


def partition_fields(spec: PartitionSpec) -> list[pa.Field]:
    """The manifest's columns for a spec's partition values."""
    return [pa.field(partition_column(field.field_id), field.result_type) for field in spec.fields]


def ensure_namespace(manifest: Manifest, spec: PartitionSpec) -> None:
    """Give a spec version its namespace."""
    row = namespace_row(spec_namespace(spec.id), metadata={})

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        return (Change() if snapshot.row(row.object_id) is not None else Change(inserts=(row,))), None

    manifest.transact(plan)


def load(snapshot: Snapshot) -> TableMetadata:
    """The definition of the table at a snapshot."""
    return snapshot.derived("definition", lambda: layout_of(snapshot).load(snapshot))


def change(manifest: Manifest, step: Callable[[TableMetadata, *Given], TableMetadata], *given: *Given) -> TableMetadata:
    """Change a table's definition: planned on the latest snapshot, committed only if no other change was.

    All changes write the same counter, so two of them conflict there. A commit that is reported as failed but is
    present was made: a retried request can find its own success.
    """
    for _ in range(_TRIES):
        snapshot = manifest.snapshot()
        before = adopted(manifest, snapshot)
        after = step(before, *given)
        if after is before:
            return before
        _prepare_columns(manifest, before, after)
        wanted = _difference(snapshot.properties, before, after)
        try:
            manifest.swap_properties(snapshot, wanted)
        except ConflictError:
            there = manifest.snapshot().properties
            if any(there.get(key) != value for key, value in wanted.items()):
                continue
        for spec in after.specs:
            if before.spec_of(spec.id) is None:
                ensure_namespace(manifest, spec)
        return after
    raise ConcurrentModificationError("other writers kept changing the table's definition; try again")


def adopted(manifest: Manifest, snapshot: Snapshot) -> TableMetadata:
    """The definition with what a change of it relies on, and what a table of another client may not record."""
    metadata = load(snapshot)
    if metadata.layout != HIVE and LAST_FIELD not in snapshot.properties:
        highest = highest_field_id(manifest, snapshot, metadata)
        metadata = replace(metadata, last_field_id=max(metadata.last_field_id, highest))
    return metadata if metadata.salt else replace(metadata, salt=new_salt())


def new_salt() -> str:
    """What the names of a table's partitions are derived from, so that no two tables share them."""
    return secrets.token_hex(8)


def _difference(present: Mapping[str, str], before: TableMetadata, after: TableMetadata) -> Mapping[str, str]:
    """The properties to write: what changes, and of our own also what the table lacks; its format stays what it is."""
    old = before.to_properties()
    known = {**present, FORMAT: old[FORMAT]} if FORMAT in present else present
    return {
        key: value
        for key, value in after.to_properties().items()
        if old.get(key) != value or (key.startswith(OWN) and known.get(key) != value)
    }


def _prepare_columns(manifest: Manifest, before: TableMetadata, after: TableMetadata) -> None:
    known = before.partition_fields
    fields = after.partition_fields
    manifest.add_columns(
        [pa.field(partition_column(key), field.result_type) for key, field in fields.items() if key not in known]
    )
    widened = {
        partition_column(key): field.result_type
        for key, field in fields.items()
        if key in known and known[key].result_type != field.result_type
    }
    if widened:
        manifest.widen_columns(widened)


def new_spec(metadata: TableMetadata, partition_by: Sequence[str | PartitionField]) -> TableMetadata:
    """The definition with one more spec version; the same as the newest one changes nothing."""
    check_partition_by(partition_by)
    fields = parse_partition_by(list(partition_by), metadata.schema)
    spec = evolve(metadata.specs, fields)
    if spec.fields == metadata.spec.fields:
        return metadata
    _check_new(spec, metadata.schema)
    return metadata.changed(specs=(*metadata.specs, spec))


def _check_new(spec: PartitionSpec, schema: pa.Schema) -> None:
    """Check a spec that is being defined; its sources all exist."""
    spec.check(schema)
    for field in spec.fields:
        if pa.types.is_decimal(field.result_type) and field.result_type.scale < 0:
            raise InvalidInputError(
                f"partition field {field.field_id!r}: {field.result_type} has a negative scale: Lance can't filter it"
            )
        sources = field.sources(schema)
        if all(source is not None for source in sources):
            field.check_new([source.type for source in sources if source is not None])
