"""Comparing an existing table with the definition of a table to be created."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancepart.errors import TableAlreadyExistsError
from lancepart.layout import create
from lancepart.layout.metadata import HIVE, TableMetadata, as_stored
from lancepart.layout.opening import hive_levels
from lancepart.model.spec import PartitionField


def refuse_other(
    there: TableMetadata,
    schema: pa.Schema,
    partition_by: Sequence[str | PartitionField],
    *,
    layout: str,
    transactions: str,
) -> None:
    """Refuse a table whose columns, partitioning, layout or transactions are not those that are wanted."""
    wanted = [as_stored(field) for field in schema]
    has = list(there.plain_schema)
    if [(field.name, field.type, field.nullable) for field in wanted] != [
        (field.name, field.type, field.nullable) for field in has
    ]:
        _refuse("columns", schema.remove_metadata().to_string(), there.plain_schema.remove_metadata().to_string())
    if (there.layout == HIVE) != (layout == HIVE):
        _refuse("layout", layout, there.layout)
    if layout == HIVE:
        fields = len(hive_levels(partition_by, there.schema))
        same = fields == len(there.spec.fields)
    else:
        if there.transactions != transactions:
            _refuse("transactions", transactions, there.transactions)
        same = create.new_spec(there, partition_by).spec == there.spec
    if not same:
        _refuse("partitioning", str(list(partition_by)), str([field.field_id for field in there.spec.fields]))


def _refuse(what: str, wanted: str, found: str) -> None:
    raise TableAlreadyExistsError(f"there is a table already, with another {what}: it has {found}, not {wanted}")
