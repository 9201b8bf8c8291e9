"""Schemas as JsonArrowSchema, written as Lance's own catalog does, and the field ids inside them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import pyarrow as pa
from lance_namespace_urllib3_client.models.json_arrow_data_type import JsonArrowDataType
from lance_namespace_urllib3_client.models.json_arrow_field import JsonArrowField
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

from lancepart.errors import InvalidInputError, InvalidTableStateError, TableSchemaValidationError
from lancepart.model.aliases import JsonMapping, JsonModel
from lancepart.model.type_names import extension_metadata, type_from_name, type_name

_Model = TypeVar("_Model", JsonArrowSchema, JsonArrowDataType)

FIELD_ID = "lance:field_id"
COMMENT = "comment"
TEXT_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps that a text is a ``varchar(3)``: it checks that itself."""
EXACT_TYPE = "lancepart:type"
_EXTENSION_NAME, _EXTENSION_METADATA = "ARROW:extension:name", "ARROW:extension:metadata"
_MAX_FIELD_ID = 2**31 - 1


def schema_to_json(schema: pa.Schema) -> JsonArrowSchema:
    """Spell a schema as DescribeTable does; what that loses of a type is in the field's metadata.

    >>> schema_to_json(pa.schema([pa.field("id", pa.int64(), nullable=False)])).to_dict()
    {'fields': [{'name': 'id', 'nullable': False, 'type': {'type': 'int64'}}]}
    """
    check_column_names(schema)
    fields = [_field_to_json(field) for field in schema]
    return JsonArrowSchema(fields=fields, metadata=_texts(schema.metadata, owner="the schema"))


def schema_from_json(spelled: JsonArrowSchema | JsonMapping | str) -> pa.Schema:
    """Read a schema from its model, its mapping or its text.

    >>> schema_from_json('{"fields": [{"name": "day", "nullable": true, "type": {"type": "date32"}}]}')
    day: date32[day]
    """
    model = _model(JsonArrowSchema, spelled, "schema")
    schema = pa.schema([_field_from_json(field) for field in model.fields], metadata=model.metadata)
    check_column_names(schema)
    return schema


def type_to_json(arrow_type: pa.DataType) -> JsonArrowDataType:
    """Spell a type outside a field, its unit and zone in the name since no field can carry them.

    >>> type_to_json(pa.timestamp("us", "UTC")).to_dict()
    {'type': 'timestamp[us, tz=UTC]'}
    >>> type_to_json(pa.decimal128(10, 2)).to_dict()
    {'length': 10002, 'type': 'decimal128'}
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        raise InvalidInputError(f"extension type {arrow_type} needs a field around it; use its storage type")
    plain = _plain(arrow_type)
    return plain if _is_exact(plain, arrow_type) else JsonArrowDataType(type=type_name(arrow_type))


def type_from_json(spelled: JsonArrowDataType | JsonMapping | str) -> pa.DataType:
    """Read a type; a bare ``timestamp``, ``time64`` or ``duration`` counts microseconds, a bare ``time32`` millis.

    >>> type_from_json({"type": "timestamp"})
    TimestampType(timestamp[us])
    >>> type_from_json('{"type": "fixed_size_binary", "length": 5}')
    FixedSizeBinaryType(fixed_size_binary[5])
    """
    model = _model(JsonArrowDataType, spelled, "type")
    nested = [_field_from_json(field) for field in model.fields or []]
    if model.fields is not None or model.type in {"list", "large_list", "fixed_size_list", "map"}:
        return _nested_from_json(model.type, nested, model.length)
    return type_from_name(model.type, model.length)


def dumps(model: JsonModel) -> str:
    """The compact text of a model, in the key order that the model declares.

    >>> dumps(type_to_json(pa.date32()))
    '{"type":"date32"}'
    """
    return json.dumps(model.to_dict(), separators=(",", ":"), ensure_ascii=False)


def check_column_names(schema: pa.Schema) -> None:
    """Refuse a schema, or a struct in it, in which one name appears twice."""
    _check_names("the schema", schema)
    for path, field in _walk(schema):
        if pa.types.is_struct(field.type):
            _check_names(f"column {path!r}", field.type)


def refuse_empty_names(schema: pa.Schema) -> None:
    """Refuse a new column, or a field of a struct, that no filter could name: an empty name, or one with a NUL."""
    for name in schema.names:
        if not name or "\0" in name:
            raise TableSchemaValidationError(f"a column has {_unusable(name)}: give it another")
    for path, field in _walk(schema):
        for child in field.type if pa.types.is_struct(field.type) else ():
            if not child.name or "\0" in child.name:
                raise TableSchemaValidationError(f"a field of column {path!r} has {_unusable(child.name)}")


def _unusable(name: str) -> str:
    return "an empty name" if not name else f"the name {name!r}, which has a NUL in it"


def field_id(field: pa.Field) -> int | None:
    """The id that a field carries, or None; a malformed one is an error that names the field.

    >>> field_id(pa.field("a", pa.int32(), metadata={"lance:field_id": "7"}))
    7
    """
    text = (field.metadata or {}).get(FIELD_ID.encode())
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= _MAX_FIELD_ID):
        raise InvalidTableStateError(
            f"field {field.name!r} has the malformed {FIELD_ID} {text.decode(errors='replace')!r}"
        )
    return int(text)


def field_ids(schema: pa.Schema) -> dict[int, pa.Field]:
    """Every field by its id, nested ones too; an id that appears twice is an error that names both fields."""
    found: dict[int, tuple[str, pa.Field]] = {}
    for path, field in _walk(schema):
        number = field_id(field)
        if number is None:
            continue
        if number in found:
            raise InvalidTableStateError(f"fields {found[number][0]!r} and {path!r} share the {FIELD_ID} {number}")
        found[number] = (path, field)
    return {number: field for number, (_, field) in found.items()}


def field_by_id(schema: pa.Schema, number: int) -> pa.Field | None:
    """The field with this id, or None if the column was removed."""
    return field_ids(schema).get(number)


def source_path(schema: pa.Schema, number: int) -> tuple[pa.Field, ...] | None:
    """The fields from a column down to the one with this id, all but the last structs; None if there is none such."""
    for field in schema:
        if field_id(field) == number:
            return (field,)
        if pa.types.is_struct(field.type) and (inside := source_path(field.type, number)) is not None:
            return (field, *inside)
    return None


def source_by_id(schema: pa.Schema, number: int) -> pa.Field | None:
    """The field with this id, a nested one under its path; None if it was removed or has no single value a row.

    >>> inner = pa.field("a", pa.int32(), metadata={"lance:field_id": "1"})
    >>> source_by_id(pa.schema([pa.field("s", pa.struct([inner]), metadata={"lance:field_id": "0"})]), 1).name
    's.a'
    """
    path = source_path(schema, number)
    return None if path is None else path[-1].with_name(".".join(field.name for field in path))


def max_field_id(schema: pa.Schema) -> int:
    """The highest id in use, or -1; ids of removed columns are not seen here, so keep the highest ever given."""
    return max(field_ids(schema), default=-1)


def assign_field_ids(schema: pa.Schema, start: int = 0) -> pa.Schema:
    """Give an id, depth first, to each field that has none: from ``start``, and above every id in use.

    >>> schema = assign_field_ids(pa.schema([("a", pa.int32()), ("b", pa.list_(pa.int8()))]), start=5)
    >>> list(field_ids(schema))
    [5, 6, 7]
    """
    check_column_names(schema)
    counter = iter(range(max(start, max_field_id(schema) + 1), _MAX_FIELD_ID))
    return pa.schema([_with_ids(field, counter) for field in schema], metadata=schema.metadata)


def require_field_ids(schema: pa.Schema) -> None:
    """Insist that each top-level column has its own valid id: what a stored table must have."""
    for field in schema:
        if field_id(field) is None:
            raise InvalidTableStateError(f"column {field.name!r} has no {FIELD_ID} in its metadata")
    field_ids(schema)


def _with_ids(field: pa.Field, counter: Iterator[int]) -> pa.Field:
    if field_id(field) is None:
        field = field.with_metadata({**(field.metadata or {}), FIELD_ID.encode(): str(next(counter)).encode()})
    children = _children(field.type)
    return (
        field.with_type(_rebuilt(field.type, [_with_ids(child, counter) for child in children])) if children else field
    )


def _walk(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, pa.Field]]:
    for field in fields:
        yield prefix + field.name, field
        yield from _walk(_children(field.type), f"{prefix}{field.name}.")


def _children(arrow_type: pa.DataType) -> list[pa.Field]:
    """The fields inside a type; those of an extension are its own affair."""
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    if isinstance(arrow_type, pa.BaseExtensionType) or not pa.types.is_nested(arrow_type):
        return []
    return [arrow_type.field(i) for i in range(arrow_type.num_fields)]


def _rebuilt(arrow_type: pa.DataType, children: list[pa.Field]) -> pa.DataType:
    """The same type around other fields."""
    if pa.types.is_struct(arrow_type):
        return pa.struct(children)
    if pa.types.is_map(arrow_type):
        return pa.map_(children[0], children[1], keys_sorted=arrow_type.keys_sorted)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(children[0], arrow_type.list_size)
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(children[0])
    if pa.types.is_list(arrow_type):
        return pa.list_(children[0])
    raise InvalidInputError(f"Lance does not store values of type {arrow_type}")


def _check_names(owner: str, fields: pa.DataType | pa.Schema) -> None:
    twice = [name for name, count in Counter(field.name for field in fields).items() if count > 1]
    if twice:
        raise TableSchemaValidationError(f"{owner} has {twice[0]!r} more than once; give each column its own name")


def _field_to_json(field: pa.Field) -> JsonArrowField:
    metadata = _texts(field.metadata, owner=f"field {field.name!r}") or {}
    metadata.pop(EXACT_TYPE, None)
    arrow_type = field.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        extra = {_EXTENSION_NAME: arrow_type.extension_name, _EXTENSION_METADATA: extension_metadata(arrow_type)}
        metadata |= _texts(extra, owner=f"field {field.name!r}") or {}
        arrow_type = arrow_type.storage_type
    plain = _plain(arrow_type)
    if not _is_exact(plain, arrow_type):
        metadata[EXACT_TYPE] = type_name(arrow_type)
    return JsonArrowField(name=field.name, nullable=field.nullable, type=plain, metadata=metadata or None)


def _field_from_json(model: JsonArrowField) -> pa.Field:
    metadata = dict(model.metadata or {})
    exact = metadata.pop(EXACT_TYPE, None)
    try:
        arrow_type = type_from_json(model.type) if exact is None else type_from_name(exact)
        field = pa.field(model.name, arrow_type, nullable=model.nullable, metadata=metadata or None)
    except (InvalidInputError, ValueError) as error:
        raise InvalidInputError(f"field {model.name!r}: {error}") from error
    return pa.ipc.read_schema(pa.schema([field]).serialize()).field(0) if _EXTENSION_NAME in metadata else field


def _plain(arrow_type: pa.DataType) -> JsonArrowDataType:
    """A type as Lance's catalog spells it, which may say less than the type does."""
    kinds = pa.types
    if kinds.is_decimal(arrow_type):
        size = arrow_type.precision * 1000 + arrow_type.scale
        return JsonArrowDataType(type=f"decimal{arrow_type.bit_width}", length=size)
    if kinds.is_fixed_size_binary(arrow_type):
        return JsonArrowDataType(type="fixed_size_binary", length=arrow_type.byte_width)
    if kinds.is_map(arrow_type):
        entries = pa.field("entries", pa.struct(_children(arrow_type)), nullable=False)
        return JsonArrowDataType(type="map", fields=[_field_to_json(entries)])
    if kinds.is_nested(arrow_type):
        name = str(arrow_type).split("<", 1)[0]
        fields = [_field_to_json(child) for child in _children(_rebuilt(arrow_type, _children(arrow_type)))]
        size = arrow_type.list_size if kinds.is_fixed_size_list(arrow_type) else None
        return JsonArrowDataType(type=name, fields=fields, length=size)
    return JsonArrowDataType(type=type_name(arrow_type, exact=False))


def _is_exact(plain: JsonArrowDataType, arrow_type: pa.DataType) -> bool:
    if pa.types.is_map(arrow_type) and arrow_type.keys_sorted:
        raise InvalidInputError(f"Lance does not store {arrow_type}: a map whose keys are sorted")
    return plain.fields is not None or type_from_json(plain) == arrow_type


def _nested_from_json(name: str, fields: list[pa.Field], length: int | None) -> pa.DataType:
    if name == "struct":
        return pa.struct(fields)
    if len(fields) != 1:
        raise InvalidInputError(f"type {name!r} needs exactly one field inside it, not {len(fields)}")
    if name == "list":
        return pa.list_(fields[0])
    if name == "large_list":
        return pa.large_list(fields[0])
    if name == "fixed_size_list" and length is not None:
        return pa.list_(fields[0], length)
    if name == "map" and pa.types.is_struct(fields[0].type) and fields[0].type.num_fields == 2:
        return pa.map_(fields[0].type.field(0), fields[0].type.field(1))
    raise InvalidInputError(f"{name!r} with length {length} and field {fields[0]} is not an Arrow type")


def _texts(metadata: Mapping[str, str] | Mapping[bytes, bytes] | None, *, owner: str) -> dict[str, str] | None:
    try:
        return {_text(key): _text(value) for key, value in metadata.items()} if metadata else None
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{owner} has metadata that is not UTF-8, which JSON cannot hold") from error


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _model(kind: type[_Model], spelled: _Model | JsonMapping | str, what: str) -> _Model:
    """A model from itself, its mapping or its text."""
    if isinstance(spelled, kind):
        return spelled
    try:
        model = kind.from_dict(json.loads(spelled) if isinstance(spelled, str) else dict(spelled))
        assert isinstance(model, kind)
    except (ValueError, TypeError, AttributeError, KeyError, AssertionError, RecursionError) as error:
        raise InvalidInputError(f"not a valid {what}: {error}") from error
    return model
