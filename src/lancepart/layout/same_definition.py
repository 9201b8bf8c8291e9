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
    refuse_other_columns(there, schema)
    if (there.layout == HIVE) != (layout == HIVE):
        _refuse("layout", layout, there.layout)
    if layout != HIVE and there.transactions != transactions:
        _refuse("transactions", transactions, there.transactions)
    refuse_other_partitioning(there, partition_by)


def refuse_other_columns(there: TableMetadata, schema: pa.Schema) -> None:
    """Refuse a table whose columns are not those that are wanted."""
    wanted = [as_stored(field) for field in schema]
    if [(field.name, field.type, field.nullable) for field in wanted] != [
        (field.name, field.type, field.nullable) for field in there.plain_schema
    ]:
        _refuse("columns", schema.remove_metadata().to_string(), there.plain_schema.remove_metadata().to_string())


def refuse_other_partitioning(there: TableMetadata, partition_by: Sequence[str | PartitionField]) -> None:
    """Refuse a table that is not partitioned as it is wanted."""
    if there.layout == HIVE:
        same = len(hive_levels(partition_by, there.schema)) == len(there.spec.fields)
    else:
        same = create.new_spec(there, partition_by).spec == there.spec
    if not same:
        advice = "" if there.layout == HIVE else "; update_spec changes that of new rows"
        _refuse("partitioning", str(list(partition_by)), str([field.field_id for field in there.spec.fields]), advice)


def _refuse(what: str, wanted: str, found: str, advice: str = "") -> None:
    raise TableAlreadyExistsError(
        f"there is a table already, with another {what}: it has {found}, not {wanted}{advice}"
    )
