"""The three properties that make a namespace a Hive-style partitioned table, and the columns they name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from lancepart.errors import InvalidInputError, InvalidTableStateError, LanceNamespaceError
from lancepart.layout.metadata import HIVE, WEAK, TableMetadata, as_stored, without_ids
from lancepart.model import hive_path
from lancepart.model.aliases import JsonObject
from lancepart.model.arrow_json import dump_schema, parse_schema
from lancepart.model.schema import assign_field_ids, check_column_names, field_id, max_field_id
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Year
from lancepart.model.transforms.hive import FloorBucket, FloorTruncate, Hash, Unknown
from lancepart.model.values import logical_type

PREFIX = "lance.partitioning."
IS_PARTITIONED = f"{PREFIX}is_partitioned"
COLUMNS = f"{PREFIX}partition_columns"
SCHEMA = f"{PREFIX}schema"

_PARAMETERS = {"bucket": "num_buckets", "truncate": "width"}
_SUFFIXES = {"identity": "", "truncate": "_trunc"} | {
    name: f"_{name}" for name in ("year", "month", "day", "hour", "bucket", "hash")
}
_CALL = re.compile(r"\s*(\w+)\s*(?:\(\s*(\d+)?\s*\))?\s*")

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveColumn:
    """One level of a Hive-style table: a column, the function applied to it, and the function's number if any."""

    name: str
    function: str = "identity"
    number: int | None = None

    def __post_init__(self) -> None:
        if self.function not in _SUFFIXES:
            known = ", ".join(_SUFFIXES)
            raise InvalidInputError(f"partition column {self.name!r}: unknown function {self.function!r}; use {known}")
        parameter = _PARAMETERS.get(self.function)
        if parameter is None and self.number is not None:
            raise InvalidInputError(f"partition column {self.name!r}: {self.function} takes no number")
        if parameter is not None and (self.number is None or self.number < 1):
            given = "none" if self.number is None else self.number
            raise InvalidInputError(
                f"partition column {self.name!r}: {self.function} needs {parameter}, a positive integer, not {given}"
            )

    @property
    def key(self) -> str:
        """The part of directory names before the ``=``."""
        return f"{self.name}{_SUFFIXES[self.function]}"

    @property
    def transform(self) -> Transform:
        """The function as the planner and the writer know it."""
        number = self.number or 1
        known: dict[str, Transform] = {
            "identity": Identity(),
            "year": Year(),
            "month": Month(),
            "day": Day(),
            "hour": Hour(),
            "bucket": FloorBucket(number),
            "truncate": FloorTruncate(number),
            "hash": Hash(),
        }
        return known[self.function]

    def to_json(self) -> JsonObject:
        """The object to store in ``partition_columns``."""
        spelled: JsonObject = {"name": self.name, "function": self.function}
        if self.number is not None:
            spelled["properties"] = {_PARAMETERS[self.function]: str(self.number)}
        return spelled

    @classmethod
    def from_json(cls, given: object) -> HiveColumn:
        """Read such an object; the function may carry its number, and numbers may be texts."""
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
            raise InvalidInputError(f"a partition column is an object with a name, not {given!r}")
        call = _CALL.fullmatch(str(given.get("function") or "identity"))
        if call is None:
            raise InvalidInputError(f"partition column {given['name']!r}: unknown function {given['function']!r}")
        function = call.group(1).lower()
        properties = given.get("properties") or {}
        spelled = properties.get(_PARAMETERS.get(function, ""), call.group(2))
        number = None if spelled is None else _number(given["name"], spelled)
        if call.group(2) is not None and number != int(call.group(2)):
            raise InvalidInputError(
                f"partition column {given['name']!r}: {given['function']} and its properties disagree"
            )
        return cls(name=given["name"], function=function, number=number)

    def check(self, kind: pa.DataType) -> None:
        """Refuse a column whose type the function is not defined for."""
        plain, types = logical_type(kind), pa.types
        fits = {
            "identity": hive_path.stringifies(kind),
            "hour": types.is_timestamp(plain) or types.is_time(plain),
            "hash": True,
        }.get(self.function)
        if fits is None:
            fits = self.transform.accepts(plain)
        if not fits:
            raise InvalidInputError(f"{self.function} is not defined for column {self.name!r} of type {kind}")


def _number(name: str, spelled: object) -> int:
    text = str(spelled).strip()
    if isinstance(spelled, bool) or not re.fullmatch(r"[+-]?\d+", text):
        raise InvalidInputError(f"partition column {name!r}: {spelled!r} is not a whole number")
    return int(text)


def is_hive(properties: Mapping[str, str]) -> bool:
    """Whether a namespace's properties are those of a Hive-style table."""
    return properties.get(IS_PARTITIONED) == "true"


def to_properties(schema: pa.Schema, columns: Sequence[HiveColumn]) -> dict[str, str]:
    """The three properties."""
    plain = pa.schema([without_ids(field) for field in schema], metadata=schema.metadata)
    listed = json.dumps([column.to_json() for column in columns], separators=(",", ":"), ensure_ascii=False)
    return {IS_PARTITIONED: "true", COLUMNS: listed, SCHEMA: dump_schema(plain)}


def from_properties(properties: Mapping[str, str]) -> tuple[pa.Schema, tuple[HiveColumn, ...]]:
    """The schema and the partition columns; an invalid property says which and why."""
    schema = _checked(SCHEMA, properties, lambda text: assign_field_ids(_stored(parse_schema(text))))

    def read(text: str) -> tuple[HiveColumn, ...]:
        given = json.loads(text)
        if not isinstance(given, list):
            raise InvalidInputError(f"it is an array of partition columns, not {given!r}")
        columns = tuple(HiveColumn.from_json(item) for item in given)
        check(schema, columns)
        return columns

    return schema, _checked(COLUMNS, properties, read)


def _stored(schema: pa.Schema) -> pa.Schema:
    return pa.schema([without_ids(as_stored(field)) for field in schema], metadata=schema.metadata)


def _checked(key: str, properties: Mapping[str, str], read: Callable[[str], Read]) -> Read:
    if key not in properties:
        raise InvalidTableStateError(f"the table has no property {key!r}")
    try:
        return read(properties[key])
    except (LanceNamespaceError, ValueError) as error:
        raise InvalidTableStateError(f"property {key!r} is not valid: {error}") from None


def check(schema: pa.Schema, columns: Sequence[HiveColumn]) -> None:
    """Insist that the columns exist, that their functions fit, that names differ, and that a leaf has a column left."""
    check_column_names(schema)
    if not columns:
        raise InvalidInputError("there are no partition columns: name at least one")
    for column in columns:
        index = schema.get_field_index(column.name)
        if index < 0:
            raise InvalidInputError(f"partition column {column.name!r} is not in the schema")
        column.check(schema.field(index).type)
    keys = [column.key for column in columns]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise InvalidInputError(f"two partition columns would both be called {twice[0]!r} in paths")
    if {column.name for column in columns if column.function == "identity"} >= set(schema.names):
        raise InvalidInputError("every column would be in the path only: keep at least one in the leaves")


def as_metadata(schema: pa.Schema, columns: Sequence[HiveColumn]) -> TableMetadata:
    """The definition as all layouts have it: one spec, whose fields are called as the path calls them."""
    fields = []
    for column in columns:
        source = schema.field(column.name)
        kinds = [logical_type(source.type)]
        fields.append(
            PartitionField(
                field_id=field_name(column.key),
                source_ids=(int(field_id(source) or 0),),
                transform=column.transform,
                result_type=column.transform.result_type(kinds),
            )
        )
    return TableMetadata(
        schema=schema,
        specs=(PartitionSpec(id=1, fields=tuple(fields)),),
        transactions=WEAK,
        salt="",
        last_field_id=max_field_id(schema),
        layout=HIVE,
    )


def field_name(key: str) -> str:
    """A path's key as a partition field's id, which may not hold dots or backticks."""
    return key.replace(".", "%2E").replace("`", "%60")


def function_of(field: PartitionField) -> str:
    """The function that a partition field of a Hive-style table applies."""
    return "unknown" if field.transform is None or isinstance(field.transform, Unknown) else field.transform.name


def column_of(field: PartitionField, schema: pa.Schema) -> HiveColumn:
    """A partition field as a level of a Hive-style table, where there is such a function."""
    (source,) = field.sources(schema) if len(field.source_ids) == 1 else (None,)
    function = None if field.transform is None else field.transform.name
    if source is None or function not in _SUFFIXES:
        raise InvalidInputError(f"partition field {field.field_id!r}: the Hive-style layout has no such function")
    number = None
    if isinstance(field.transform, Bucket):
        number = field.transform.num_buckets
    elif isinstance(field.transform, Truncate):
        number = field.transform.width
    return HiveColumn(name=source.name, function=str(function), number=number)


def stored_schema(metadata: TableMetadata) -> pa.Schema:
    """The columns that leaves hold: all but those that the path holds exactly."""
    in_path = path_ids(metadata)
    return pa.schema([field for field in metadata.schema if field_id(field) not in in_path])


def path_ids(metadata: TableMetadata) -> set[int]:
    """The field ids of the columns that the path holds exactly: those with the identity function."""
    return {field.source_ids[0] for field in metadata.spec.fields if isinstance(field.transform, Identity)}
