"""Schemas in Arrow's own JSON, the form of its IPC integration files, which the Hive-style layout keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.schema import check_column_names, schema_from_json
from lancepart.model.type_names import extension_metadata

_UNITS = {"s": "SECOND", "ms": "MILLISECOND", "us": "MICROSECOND", "ns": "NANOSECOND"}
_SHORT = {name: unit for unit, name in _UNITS.items()}
_PRECISIONS = {16: "HALF", 32: "SINGLE", 64: "DOUBLE"}
_FLOATS = {"HALF": pa.float16(), "SINGLE": pa.float32(), "DOUBLE": pa.float64()}
_PLAIN = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "utf8": pa.string(),
    "largeutf8": pa.large_string(),
    "utf8view": pa.string_view(),
    "binary": pa.binary(),
    "largebinary": pa.large_binary(),
    "binaryview": pa.binary_view(),
}
_NAMES = {kind: name for name, kind in _PLAIN.items()}
_EXTENSION = "ARROW:extension:name", "ARROW:extension:metadata"


def dump_schema(schema: pa.Schema) -> str:
    """Spell a schema.

    >>> dump_schema(pa.schema([pa.field("id", pa.int32(), nullable=False)]))
    '{"fields":[{"name":"id","nullable":false,"type":{"name":"int","bitWidth":32,"isSigned":true},"children":[]}]}'
    """
    ids = count()
    spelled: JsonObject = {"fields": [_field(field, ids) for field in schema]}
    if schema.metadata:
        spelled["metadata"] = _pairs(schema.metadata)
    return json.dumps(spelled, separators=(",", ":"), ensure_ascii=False)


def parse_schema(text: str) -> pa.Schema:
    """Read a schema, in Arrow's own JSON or as the JsonArrowSchema of ``lance_namespace``.

    >>> parse_schema('{"fields": [{"name": "day", "nullable": true, "type": {"name": "date", "unit": "DAY"}}]}')
    day: date32[day]
    """
    try:
        given = json.loads(text)
        given = given.get("schema", given)
        fields = given["fields"]
        if any("type" in field["type"] for field in fields):
            return schema_from_json(given)
        schema = pa.schema([_read_field(field) for field in fields], metadata=_read_pairs(given.get("metadata")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise InvalidInputError(f"not a schema in Arrow's JSON: {error!r}") from error
    check_column_names(schema)
    return schema


def type_to_json(kind: pa.DataType) -> JsonObject:
    """Spell a type of values alone.

    >>> type_to_json(pa.date32())
    {'type': {'name': 'date', 'unit': 'DAY'}, 'children': []}
    """
    spelled = _field(pa.field("value", kind), count())
    return {key: part for key, part in spelled.items() if key not in ("name", "nullable")}


def type_from_json(given: JsonMapping) -> pa.DataType:
    """Read a type of values.

    >>> type_from_json(type_to_json(pa.timestamp("us", "UTC")))
    TimestampType(timestamp[us, tz=UTC])
    """
    try:
        return _read_field({"name": "value", **given}).type
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise InvalidInputError(f"not a type in Arrow's JSON: {error!r}") from error


def _field(field: pa.Field, ids: Iterator[int]) -> JsonObject:
    kind, metadata = field.type, dict(field.metadata or {})
    if isinstance(kind, pa.BaseExtensionType):
        metadata |= {_EXTENSION[0]: kind.extension_name, _EXTENSION[1]: extension_metadata(kind)}
        kind = kind.storage_type
    spelled: JsonObject = {"name": field.name, "nullable": field.nullable}
    if pa.types.is_dictionary(kind):
        index = _type(kind.index_type)
        spelled["dictionary"] = {"id": next(ids), "indexType": index, "isOrdered": kind.ordered}
        kind = kind.value_type
    spelled |= {"type": _type(kind), "children": [_field(child, ids) for child in _children(kind)]}
    if metadata:
        spelled["metadata"] = _pairs(metadata)
    return spelled


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)]
    return [kind.field(i) for i in range(kind.num_fields)]


def _type(kind: pa.DataType) -> JsonObject:
    types = pa.types
    if kind in _NAMES:
        return {"name": _NAMES[kind]}
    if types.is_integer(kind):
        return {"name": "int", "bitWidth": kind.bit_width, "isSigned": types.is_signed_integer(kind)}
    if types.is_floating(kind):
        return {"name": "floatingpoint", "precision": _PRECISIONS[kind.bit_width]}
    if types.is_decimal(kind):
        return {"name": "decimal", "precision": kind.precision, "scale": kind.scale, "bitWidth": kind.bit_width}
    if types.is_date(kind):
        return {"name": "date", "unit": "DAY" if types.is_date32(kind) else "MILLISECOND"}
    if types.is_time(kind):
        return {"name": "time", "unit": _UNITS[kind.unit], "bitWidth": kind.bit_width}
    if types.is_timestamp(kind):
        return {"name": "timestamp", "unit": _UNITS[kind.unit], **({"timezone": kind.tz} if kind.tz else {})}
    if types.is_duration(kind):
        return {"name": "duration", "unit": _UNITS[kind.unit]}
    if types.is_fixed_size_binary(kind):
        return {"name": "fixedsizebinary", "byteWidth": kind.byte_width}
    if types.is_fixed_size_list(kind):
        return {"name": "fixedsizelist", "listSize": kind.list_size}
    if types.is_map(kind):
        return {"name": "map", "keysSorted": kind.keys_sorted}
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
        return {"name": "struct" if types.is_struct(kind) else "list" if types.is_list(kind) else "largelist"}
    raise InvalidInputError(f"Lance does not store values of type {kind}")


def _read_field(given: JsonMapping) -> pa.Field:
    children = [_read_field(child) for child in given.get("children") or []]
    kind = _read_type(given["type"], children)
    coded = given.get("dictionary")
    if coded:
        kind = pa.dictionary(_read_type(coded["indexType"], []), kind, ordered=bool(coded.get("isOrdered", False)))
    metadata = _read_pairs(given.get("metadata"))
    field = pa.field(given["name"], kind, nullable=given.get("nullable", True), metadata=metadata)
    known = metadata is not None and _EXTENSION[0] in metadata
    return pa.ipc.read_schema(pa.schema([field]).serialize()).field(0) if known else field


def _read_type(given: JsonMapping, children: list[pa.Field]) -> pa.DataType:
    name = given["name"]
    if name in _PLAIN:
        return _PLAIN[name]
    match name:
        case "int":
            return getattr(pa, f"{'' if given['isSigned'] else 'u'}int{int(given['bitWidth'])}")()
        case "floatingpoint":
            return _FLOATS[given["precision"]]
        case "decimal":
            return getattr(pa, f"decimal{given.get('bitWidth', 128)}")(int(given["precision"]), int(given["scale"]))
        case "date":
            return pa.date32() if given["unit"] == "DAY" else pa.date64()
        case "time":
            return (pa.time32 if int(given["bitWidth"]) == 32 else pa.time64)(_SHORT[given["unit"]])
        case "timestamp":
            return pa.timestamp(_SHORT[given["unit"]], given.get("timezone") or None)
        case "duration":
            return pa.duration(_SHORT[given["unit"]])
        case "fixedsizebinary":
            return pa.binary(int(given["byteWidth"]))
    return _read_nested(name, given, children)


def _read_nested(name: str, given: JsonMapping, children: list[pa.Field]) -> pa.DataType:
    match name:
        case "struct":
            return pa.struct(children)
        case "list":
            return pa.list_(children[0])
        case "largelist":
            return pa.large_list(children[0])
        case "fixedsizelist":
            return pa.list_(children[0], int(given["listSize"]))
        case "map":
            return pa.map_(children[0].type.field(0), children[0].type.field(1), bool(given.get("keysSorted")))
    raise ValueError(f"unknown type {name!r}")


def _pairs(metadata: Mapping[bytes, bytes]) -> list[dict[str, str]]:
    return [{"key": _text(key), "value": _text(value)} for key, value in metadata.items()]


def _read_pairs(given: Mapping[str, str] | Sequence[Mapping[str, str]] | None) -> dict[str, str] | None:
    if not given:
        return None
    return dict(given) if isinstance(given, Mapping) else {pair["key"]: pair["value"] for pair in given}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
