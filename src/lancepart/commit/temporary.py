"""Rows of others as a table in a temporary directory, so that joins read them as they read any table."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lancepart.commit.actions import Append
from lancepart.commit.perform import perform
from lancepart.layout import create
from lancepart.layout.metadata import STRONG
from lancepart.model.aliases import RowSource
from lancepart.model.quoting import quote_identifier
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.write.casts import cast
from lancepart.write.conform import reader
from lancepart.write.dicts import are_dicts, table_of


@dataclass(frozen=True, slots=True)
class TemporaryTable:
    """A table of one leaf, which exists as long as the object given to ``belongs_to``."""

    manifest: Manifest

    @classmethod
    def of(cls, data: RowSource, types: Mapping[str, pa.DataType] | None = None) -> TemporaryTable:
        """Write rows to a new temporary table, little by little.

        Floats of columns that ``types`` has whole numbers for are written as such: pandas has no others with NULLs.
        """
        rows = table_of(data) if are_dicts(data) and data else data
        stream = _whole(reader(rows, None), types or {})
        table = cls(Manifest(Root.parse(tempfile.mkdtemp(prefix="lancepart-join-"))))
        try:
            first = quote_identifier(stream.schema.names[0])
            single = f"expr({first} IS NULL OR {first} IS NOT NULL) AS part"
            create.create(table.manifest, stream.schema.remove_metadata(), [single], transactions=STRONG)
            perform(table.manifest, Append(data=stream))
        except BaseException:
            table.remove()
            raise
        return table

    def belongs_to(self, owner: object) -> None:
        """Remove the table when its owner is gone."""
        weakref.finalize(owner, shutil.rmtree, self.manifest.root.uri, ignore_errors=True)

    def remove(self) -> None:
        """Remove the table now."""
        shutil.rmtree(self.manifest.root.uri, ignore_errors=True)


def _whole(stream: pa.RecordBatchReader, types: Mapping[str, pa.DataType]) -> pa.RecordBatchReader:
    """Rows with whole numbers in place of floats, or refused where one is not whole."""
    known = {name: kind for name, kind in types.items() if pa.types.is_integer(kind)}
    fields = [
        field.with_type(known[field.name]) if field.name in known and pa.types.is_floating(field.type) else field
        for field in stream.schema
    ]
    schema = pa.schema(fields, stream.schema.metadata)
    if schema == stream.schema:
        return stream

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            arrays = [
                column if column.type == field.type else cast(pa.chunked_array([column]), field.type, field.name)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield from pa.table(arrays, schema=schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
