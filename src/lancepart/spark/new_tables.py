"""What ``CREATE TABLE`` says of a table that is to be made: its columns, where it is, and its properties."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.model.aliases import JsonMapping
from lancepart.queries.warehouse import Warehouse
from lancepart.spark.new_columns import new_columns
from lancepart.spark.options import check_properties
from lancepart.spark.types import VECTOR, read_schema
from lancepart.storage.root import Root, check_location

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PROVIDERS = {None, "lance", "lancepart"}
_MADE_BY_SPARK = ("is_managed_location", "external")


def columns_of_new(schema: JsonMapping, properties: Mapping[str, str]) -> pa.Schema:
    """The columns of a new table, with their comments; of vectors a property of the table may say how long they are.

    ``TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '8')`` is what Lance's own Spark connector reads too.
    """
    sizes = {key.removesuffix(f".{VECTOR}"): value for key, value in properties.items() if key.endswith(f".{VECTOR}")}
    given = read_schema(schema)
    if unknown := sorted(sizes.keys() - set(given.names)):
        raise InvalidInputError(f"property '{unknown[0]}.{VECTOR}': there is no column {unknown[0]!r}")
    columns = new_columns(StructType([sized(field, sizes.get(field.name)) for field in given]))
    for name in sizes:
        if not pa.types.is_fixed_size_list(columns.field(name).type):
            raise InvalidInputError(f"property '{name}.{VECTOR}': column {name!r} is no ARRAY")
    return columns


def sized(field: StructField, size: str | None) -> StructField:
    """A column with the length of its vectors, if a property says it."""
    if size is None:
        return field
    if not (size.isascii() and size.isdigit()):
        raise InvalidInputError(f"property '{field.name}.{VECTOR}' is {size!r}: give the length of the vectors")
    return StructField(field.name, field.dataType, field.nullable, {**field.metadata, VECTOR: int(size)})


def checked_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The properties that a table keeps; what only says how it is made is left out, and what it can't be is refused."""
    properties = dict(given)
    provider = properties.pop("provider", None)
    if provider not in _PROVIDERS:
        raise UnsupportedOperationError(
            f"USING {provider}: tables of this catalog are USING lancepart, and a frame's .format('lancepart')"
        )
    for key in _MADE_BY_SPARK:
        properties.pop(key, None)
    check_properties(properties)
    return properties


def location_of(warehouse: Warehouse, given: str) -> str:
    """The directory that LOCATION names, from the warehouse on if it is relative: one that nothing uses yet."""
    root = warehouse.catalog.root
    wanted = Root.parse(given if given.startswith("/") or _SCHEME.match(given) else f"{root.uri}/{given}").uri
    location = wanted.removeprefix(f"{root.uri}/")
    if location == wanted:
        raise UnsupportedOperationError(
            f"LOCATION {given!r} is outside of the warehouse {root.uri!r}, whose catalog names only what is in it: "
            "leave it out, or name a directory beneath the warehouse"
        )
    check_location(location)
    if any(part.startswith((".", "_")) or part.endswith(".lance") for part in location.split("/")):
        raise InvalidInputError(f"LOCATION {given!r}: names that begin with . or _ or end in .lance are reserved")
    if warehouse.catalog.files.has_links_on_the_way(location):
        raise InvalidInputError(f"LOCATION {given!r} leads through a symbolic link: name a directory without one")
    if warehouse.names(location):
        raise InvalidInputError(f"LOCATION {given!r} is already that of another table, or holds one: name another")
    return location
