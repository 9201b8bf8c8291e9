"""The names of types: a plain name, and the exact one for types that a plain name cannot distinguish."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from lancepart.errors import InvalidInputError

_PLAIN = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "utf8": pa.string(),
    "large_utf8": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "date32": pa.date32(),
    "date64": pa.date64(),
}
_NAMES = {arrow_type: name for name, arrow_type in _PLAIN.items()}
_ALIASES = {
    "boolean": pa.bool_(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "utf8_view": pa.string_view(),
    "date32[day]": pa.date32(),
    "date64[ms]": pa.date64(),
    "timestamp": pa.timestamp("us"),
    "time32": pa.time32("ms"),
    "time64": pa.time64("us"),
    "duration": pa.duration("us"),
}
_BY_NAME = _PLAIN | _ALIASES
_EXTENSION_PARAMETERS: dict[str, tuple[str, ...]] = {
    "arrow.bool8": (),
    "arrow.uuid": (),
    "arrow.json": (),
    "arrow.opaque": ("type_name", "vendor_name"),
    "arrow.fixed_shape_tensor": ("shape", "dim_names", "permutation"),
}
_LOSSY = {pa.string_view(): "utf8", pa.binary_view(): "binary"}
_TIME = re.compile(r"(time32|time64|duration|timestamp)\[(s|ms|us|ns)(?:, *(?:tz=)?(.+))?\]")
_DECIMAL = re.compile(r"(decimal(?:32|64|128|256))\((\d+), *(-?\d+)\)")
_FIXED_BINARY = re.compile(r"fixed_size_binary\[(\d+)\]")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(u?int\d+), ordered=([01])>")
_TIMES = {"time32": pa.time32, "time64": pa.time64, "duration": pa.duration}
_DECIMALS = {f"decimal{bits}": getattr(pa, f"decimal{bits}") for bits in (32, 64, 128, 256)}


_UNITS = ("s", "ms", "us", "ns")


def type_name(arrow_type: pa.DataType, *, exact: bool = True) -> str:
    """The name of a type without fields; the plain one leaves out units, zones and how values are encoded.

    >>> type_name(pa.timestamp("us", "UTC")), type_name(pa.timestamp("us", "UTC"), exact=False)
    ('timestamp[us, tz=UTC]', 'timestamp')
    """
    if not exact and arrow_type in _LOSSY:
        return _LOSSY[arrow_type]
    if arrow_type in _NAMES:
        return _NAMES[arrow_type]
    if pa.types.is_dictionary(arrow_type):
        values = type_name(arrow_type.value_type, exact=exact)
        indices = type_name(arrow_type.index_type)
        return f"dictionary<values={values}, indices={indices}, ordered={int(arrow_type.ordered)}>" if exact else values
    name = str(arrow_type)
    if not (pa.types.is_temporal(arrow_type) or pa.types.is_decimal(arrow_type) or _FIXED_BINARY.fullmatch(name)):
        raise InvalidInputError(f"Lance does not store values of type {arrow_type}")
    if pa.types.is_interval(arrow_type):
        raise InvalidInputError(f"Lance does not store values of type {arrow_type}; keep a duration instead")
    return name if exact else re.split(r"[\[(]", name, maxsplit=1)[0]


def type_from_name(name: str, length: int | None = None) -> pa.DataType:
    """Read a type's name, plain or exact, with the length that a plain one may have beside it.

    >>> type_from_name("dictionary<values=utf8, indices=int8, ordered=0>")
    DictionaryType(dictionary<values=string, indices=int8, ordered=0>)
    >>> type_from_name("decimal128", 9998)
    Decimal128Type(decimal128(10, -2))
    """
    try:
        found = _by_length(name, length) if length is not None else _by_pattern(name)
    except (ValueError, pa.ArrowException) as error:
        raise InvalidInputError(f"{name!r} is not a valid Arrow type: {error}") from error
    if found is None:
        beside = "" if length is None else f" with length {length}"
        raise InvalidInputError(
            f"unknown Arrow type {name!r}{beside}; spell it like 'int64', 'utf8' or 'timestamp[us]'"
        )
    return found


def kind_of(arrow_type: pa.DataType) -> str:
    """What a type holds, whatever its width, unit or offsets: between types of one kind a value is merely cast.

    >>> kind_of(pa.int8()) == kind_of(pa.decimal128(5, 2)), kind_of(pa.large_string()), kind_of(pa.timestamp("s"))
    (True, 'text', 'timestamp')
    """
    kinds = pa.types
    if kinds.is_integer(arrow_type) or kinds.is_floating(arrow_type) or kinds.is_decimal(arrow_type):
        return "number"
    if kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type) or kinds.is_string_view(arrow_type):
        return "text"
    if kinds.is_binary(arrow_type) or kinds.is_large_binary(arrow_type) or kinds.is_fixed_size_binary(arrow_type):
        return "bytes"
    return str(arrow_type).split("[", 1)[0].rstrip("0123456789")


def holds_exactly(declared: pa.DataType, given: pa.DataType) -> bool:
    """Whether a type that is declared for values keeps each of them that fits, so that equal ones stay equal.

    >>> holds_exactly(pa.int64(), pa.int32()), holds_exactly(pa.float32(), pa.float64())
    (True, False)
    """
    kinds = pa.types
    if declared == given or kinds.is_null(given):
        return True
    if kinds.is_floating(declared) and kinds.is_floating(given):
        return bool(declared.bit_width >= given.bit_width)
    if kinds.is_decimal(declared) and kinds.is_decimal(given):
        return bool(declared.scale == given.scale)
    if kinds.is_timestamp(declared) and kinds.is_timestamp(given):
        return declared.tz == given.tz and _UNITS.index(declared.unit) >= _UNITS.index(given.unit)
    if kinds.is_integer(declared) and kinds.is_integer(given):
        return True
    return kind_of(declared) == kind_of(given) in ("text", "bytes")


def extension_metadata(arrow_type: pa.DataType) -> str | bytes:
    """The value of ``ARROW:extension:metadata`` for an extension type; Arrow's own do not say it themselves.

    >>> extension_metadata(pa.fixed_shape_tensor(pa.float32(), [2, 3]))
    '{"shape": [2, 3]}'
    """
    if hasattr(arrow_type, "__arrow_ext_serialize__"):
        return bytes(arrow_type.__arrow_ext_serialize__())
    names = _EXTENSION_PARAMETERS.get(arrow_type.extension_name)
    if names is None:
        raise InvalidInputError(f"extension type {arrow_type} is not known; store it as {arrow_type.storage_type}")
    parameters = {name: getattr(arrow_type, name) for name in names if getattr(arrow_type, name) is not None}
    return json.dumps(parameters) if parameters else ""


def _by_length(name: str, length: int) -> pa.DataType:
    if name == "fixed_size_binary":
        return pa.binary(length)
    if name in _DECIMALS:
        scale = (length + 500) % 1000 - 500
        return _DECIMALS[name]((length - scale) // 1000, scale)
    return None


def _by_pattern(name: str) -> pa.DataType:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if match := _TIME.fullmatch(name):
        kind, unit, zone = match.groups()
        return pa.timestamp(unit, zone) if kind == "timestamp" else None if zone else _TIMES[kind](unit)
    if match := _DECIMAL.fullmatch(name):
        return _DECIMALS[match[1]](int(match[2]), int(match[3]))
    if match := _FIXED_BINARY.fullmatch(name):
        return pa.binary(int(match[1]))
    if match := _DICTIONARY.fullmatch(name):
        values, indices = type_from_name(match[1]), type_from_name(match[2])
        return pa.dictionary(indices, values, ordered=match[3] == "1")
    return None
