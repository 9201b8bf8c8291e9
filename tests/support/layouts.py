"""Empty tables of every layout with the same columns and partitioning, on whichever store."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa

import lancepart as lp
from lancepart.model.draft import spec_to_array
from lancepart.model.schema import assign_field_ids, dumps, field_id, schema_to_json
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.values import logical_type
from lancepart.storage.manifest_rows import SCHEMA as MANIFEST
from tests.support.catalogs import Place

LAYOUTS = ("strong", "weak", "draft", "hive")
POINTERS = [pa.field("read_version", pa.uint64()), pa.field("read_branch", pa.string())]


def make(layout: str, place: Place, schema: pa.Schema, column: str) -> lp.PartitionedTable:
    """An empty table partitioned by the values of one column."""
    options = place.storage_options
    if layout == "draft":
        write_draft(place, schema, column)
        return lp.open_table(place.root, storage_options=options)
    if layout == "hive":
        return lp.create_table(place.root, schema, [column], layout="hive", storage_options=options)
    return lp.create_table(place.root, schema, [column], transactions=layout, storage_options=options)


def write_draft(place: Place, schema: pa.Schema, column: str) -> None:
    """An empty table of the expression draft, by hand."""
    numbered = assign_field_ids(schema)
    number = int(field_id(numbered.field(column)) or 0)
    kind = logical_type(schema.field(column).type)
    field = PartitionField(field_id=f"f{number}", source_ids=(number,), expression="col0", result_type=kind)
    columns = [*list(MANIFEST)[:5], *POINTERS, pa.field(f"partition_field_{field.field_id}", kind)]
    options: Any = place.storage_options
    handle = lance.write_dataset(pa.schema(columns).empty_table(), f"{place.root}/__manifest", storage_options=options)
    spec = spec_to_array(PartitionSpec(id=1, fields=(field,)))
    handle.update_metadata({"partition_spec_v1": spec, "schema": dumps(schema_to_json(numbered))})
