"""The description of a table: its columns, partitioning, size and snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancepart.layout import create
from lancepart.layout.declared_indices import declared
from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.table_manifest import TableManifest
from lancepart.model.html_text import html_record, html_table
from lancepart.model.schema import field_id
from lancepart.model.spec import PartitionField
from lancepart.model.sql_text import as_identifier, over_columns
from lancepart.plan import planner

_MOST_COLUMNS = 30
_ABOUT = ("version", "partition_by", "partitions", "rows", "bytes", "indices", "layout", "transactions")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """A table at one snapshot; ``rows`` and ``bytes`` are None where only the partitions themselves know."""

    root: str
    """Where the table is."""
    layout: str
    """``"manifest"``, or the name of an older layout."""
    transactions: str
    """``"strong"`` if a commit is atomic over all partitions, ``"weak"`` if it is so leaf by leaf."""
    version: int
    """The snapshot that is described."""
    schema: pa.Schema
    """The columns and their types."""
    partition_by: tuple[str, ...]
    """How new rows are partitioned, as ``create_table`` takes it."""
    spec_versions: int
    """How many versions of the partitioning there are."""
    partitions: int
    """How many leaves there are."""
    rows: int | None
    """How many rows there are; None if leaves would have to be opened for it."""
    bytes: int | None
    """How many bytes the files of the leaves have; None if leaves would have to be opened for it."""
    indices: tuple[str, ...]
    """The names of the indices."""

    def _repr_html_(self) -> str:
        about = {name.replace("_", " "): getattr(self, name) for name in _ABOUT}
        columns = html_table(["column", "type"], [[field.name, field.type] for field in self.schema])
        return html_record(self.root, about) + columns

    def __str__(self) -> str:
        shown = [f"  {field.name}: {field.type}" for field in self.schema][:_MOST_COLUMNS]
        more = len(self.schema) - len(shown)
        rows = "an unknown number of" if self.rows is None else f"{self.rows:,}"
        size = "" if self.bytes is None else f", {self.bytes:,} bytes"
        return "\n".join(
            [
                f"{self.root} at snapshot {self.version}",
                f"partitioned by {', '.join(self.partition_by) or 'nothing'}",
                f"{rows} rows in {self.partitions:,} partitions{size}",
                *shown,
                *([f"  … and {more} more columns"] if more else []),
            ]
        )


def describe(manifest: TableManifest, version: int | None) -> TableDescription:
    """Describe a table by its manifest alone."""
    snapshot = manifest.snapshot(version)
    metadata = create.load(snapshot)
    leaves = planner.plan(snapshot, metadata, None).leaves
    stats = [leaf.stats for leaf in leaves]
    known = [each for each in stats if each is not None]
    whole = len(known) == len(stats)
    return TableDescription(
        root=manifest.root.uri,
        layout=metadata.layout,
        transactions=metadata.transactions,
        version=snapshot.version,
        schema=metadata.plain_schema,
        partition_by=partition_by(metadata),
        spec_versions=len(metadata.specs),
        partitions=len(leaves),
        rows=sum(each.rows for each in known) if whole else None,
        bytes=sum(each.bytes for each in known) if whole else None,
        indices=_indices(metadata, manifest, version) if capabilities(metadata).declared_indices else (),
    )


def partition_by(metadata: TableMetadata) -> tuple[str, ...]:
    """The newest spec as ``create_table`` takes it."""
    return tuple(_written(field, metadata) for field in metadata.spec.fields)


def _written(field: PartitionField, metadata: TableMetadata) -> str:
    if any(number not in metadata.owners for number in field.source_ids):
        return f"{field.field_id} (of a column that was dropped)"
    names = [metadata.owners[number].name for number in field.source_ids]
    if field.transform is None:
        return f"expr({over_columns(str(field.expression), names)}) AS {as_identifier(field.field_id)}"
    return field.transform.call(names)


def _indices(metadata: TableMetadata, manifest: TableManifest, version: int | None) -> tuple[str, ...]:
    names = {field_id(field): field.name for field in metadata.schema}
    return tuple(f"{index.kind} on {names.get(index.column)}" for index in declared(manifest.snapshot(version)))
