"""Converting Python values to columns, under the same rules as Arrow values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import ModuleType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lancepart.errors import TableSchemaValidationError
from lancepart.model.aliases import JsonObject, Value
from lancepart.write.casts import cast, vector_length

Take: TypeAlias = Callable[[Value], Value]
"""Gives a value as Arrow takes it, or raises."""

_EPOCH = datetime(1970, 1, 1)
_TICK = timedelta(microseconds=1)
_TYPES: ModuleType = pa.types


class _UnfitError(ValueError):
    """Why a value is not taken."""


def column_of(values: Sequence[Value], wanted: pa.DataType, name: str) -> pa.Array:
    """Values as a column of a type; the first that does not fit is named."""
    plain, take = _natural(wanted), _taker(wanted)
    taken = []
    for value in values:
        try:
            taken.append(take(value))
        except (_UnfitError, TypeError, ValueError, OverflowError) as error:
            raise _refusal(name, value, wanted, error) from None
    try:
        made = pa.array(taken, plain)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _refusal(name, values[_first(taken, plain)], wanted, error) from None
    return cast(made, wanted, name)


def _refusal(name: str, value: Value, wanted: pa.DataType, error: Exception) -> TableSchemaValidationError:
    text = repr(value)
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    reason: object = "it is too large" if isinstance(error, OverflowError) else error
    if (length := vector_length(wanted)) is not None and isinstance(value, Sequence) and len(value) != length:
        reason = f"it has {len(value)} numbers; give {length} in each row"
    return TableSchemaValidationError(f"column {name!r}: {shown} does not fit {wanted}: {reason}")


def _first(taken: Sequence[Value], plain: pa.DataType) -> int:
    for at, value in enumerate(taken):
        try:
            pa.array([value], plain)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return at
    return 0


def _natural(wanted: pa.DataType) -> pa.DataType:
    """The type that Python's values are of before they are cast: its times have microseconds."""
    if _TYPES.is_dictionary(wanted):
        return _natural(wanted.value_type)
    if _TYPES.is_timestamp(wanted):
        return pa.timestamp(_finest(wanted), wanted.tz)
    if _TYPES.is_duration(wanted):
        return pa.duration(_finest(wanted))
    if _TYPES.is_time(wanted):
        return pa.time64("us")
    if _TYPES.is_date(wanted):
        return pa.date32()
    if _TYPES.is_struct(wanted):
        return pa.struct([field.with_type(_natural(field.type)) for field in wanted])
    if _TYPES.is_map(wanted):
        return pa.map_(_natural(wanted.key_type), _natural(wanted.item_type))
    if _TYPES.is_fixed_size_list(wanted):
        return pa.list_(wanted.value_field.with_type(_natural(wanted.value_type)), wanted.list_size)
    if _TYPES.is_large_list(wanted):
        return pa.large_list(wanted.value_field.with_type(_natural(wanted.value_type)))
    if _TYPES.is_list(wanted):
        return pa.list_(wanted.value_field.with_type(_natural(wanted.value_type)))
    return wanted


def _finest(wanted: pa.DataType) -> str:
    return "ns" if wanted.unit == "ns" else "us"


def _taker(wanted: pa.DataType) -> Take:
    """A function that gives a value as Arrow takes it for a type, or says why not; NULL is taken for every type."""
    take = _taker_of_values(wanted)
    return lambda value: None if is_missing(value) else take(value)


def is_missing(value: Value) -> bool:
    """Whether a value is Python's or pandas' word for NULL; NaN is a number."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or _is_no_time(value)


def _is_no_time(value: Value) -> bool:
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _taker_of_values(wanted: pa.DataType) -> Take:
    if _TYPES.is_dictionary(wanted):
        return _taker(wanted.value_type)
    if _TYPES.is_struct(wanted):
        return _struct(wanted)
    if _TYPES.is_map(wanted):
        return _map(wanted)
    if _TYPES.is_list(wanted) or _TYPES.is_large_list(wanted) or _TYPES.is_fixed_size_list(wanted):
        return _list(wanted)
    if _TYPES.is_timestamp(wanted):
        return lambda value: _moment(value, wanted)
    if _TYPES.is_duration(wanted):
        return lambda value: _span(value, wanted)
    if _TYPES.is_floating(wanted):
        limit = float(np.finfo(wanted.to_pandas_dtype()).max)
        return lambda value: _float(value, limit)
    for test, take in _TAKERS:
        if test(wanted):
            return take
    return lambda value: value


def _integer(value: Value) -> int:
    if _is_integer(value):
        return int(value)
    if isinstance(value, float | np.floating | Decimal):
        if math.isfinite(value) and int(value) == value:
            return int(value)
        raise _UnfitError("it is no whole number")
    raise _UnfitError("give a whole number")


def _is_integer(value: Value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _float(value: Value, limit: float) -> float:
    """A float as it is: one of a narrower type is the nearest there is, since Python has but one type of them."""
    if _is_integer(value):
        if int(float(value)) != int(value):
            raise _UnfitError("no float is exactly that")
        value = float(value)
    if not isinstance(value, float | np.floating):
        raise _UnfitError("give a number")
    if math.isfinite(value) and abs(float(value)) > limit:
        raise _UnfitError("it is too large")
    return float(value)


def _decimal(value: Value) -> Decimal | int:
    if isinstance(value, Decimal) or _is_integer(value):
        return value if isinstance(value, Decimal) else int(value)
    raise _UnfitError("give a Decimal or a whole number")


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise _UnfitError("give a text")
    return str(value)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _UnfitError("give bytes")
    return bytes(value)


def _boolean(value: Value) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise _UnfitError("give True or False")
    return bool(value)


def _moment(value: Value, wanted: pa.DataType) -> int:
    """A time as its count of micro- or nanoseconds; with a zone only where the column has one, and the other way."""
    if isinstance(value, np.datetime64):
        return _counted(value, wanted)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _UnfitError("give a datetime")
    if value.tzinfo is None and wanted.tz is not None:
        raise _UnfitError("it has no time zone, and the column has one: give it one")
    if value.tzinfo is not None and wanted.tz is None:
        raise _UnfitError(
            "it has a time zone, and the column has none: take it off after converting it to the one meant"
        )
    start = _EPOCH if value.tzinfo is None else _EPOCH.replace(tzinfo=UTC)
    return _scaled((value - start) // _TICK, getattr(value, "nanosecond", 0), wanted)


def _counted(value: Value, wanted: pa.DataType) -> int:
    """A time of numpy's, which has no zone."""
    if wanted.tz is not None:
        raise _UnfitError("it has no time zone, and the column has one: give it one")
    for unit, scale in (("us", 1), ("ns", 1000)):
        fine = value.astype(f"datetime64[{unit}]")
        if fine.astype(value.dtype) == value:
            return _scaled(*divmod(int(fine.astype(np.int64)), scale), wanted)
    raise _UnfitError("it is too far away")


def _span(value: Value, wanted: pa.DataType) -> int:
    if isinstance(value, np.timedelta64):
        return _scaled(*divmod(int(value.astype("timedelta64[ns]").astype(np.int64)), 1000), wanted)
    if not isinstance(value, timedelta):
        raise _UnfitError("give a timedelta")
    return _scaled(int(value // _TICK), getattr(value, "nanoseconds", 0), wanted)


def _scaled(micros: int, nanos: int, wanted: pa.DataType) -> int:
    if wanted.unit == "ns":
        return micros * 1000 + nanos
    if nanos:
        raise _UnfitError("it has nanoseconds")
    return micros


def _day(value: Value) -> date:
    if isinstance(value, np.datetime64):
        days = value.astype("datetime64[D]")
        value = days.item() if days.astype(value.dtype) == value else value
    if isinstance(value, datetime):
        if value.tzinfo is not None or value.time() != time() or bool(getattr(value, "nanosecond", 0)):
            raise _UnfitError("it is a time of a day: give a date")
        return value.date()
    if not isinstance(value, date):
        raise _UnfitError("give a date")
    return value


def _clock(value: Value) -> time:
    if not isinstance(value, time):
        raise _UnfitError("give a time")
    if value.tzinfo is not None:
        raise _UnfitError("it has a time zone, and the column has none")
    return value


def _struct(wanted: pa.DataType) -> Take:
    takers = {field.name: _taker(field.type) for field in wanted}

    def take(value: Value) -> JsonObject:
        if not isinstance(value, Mapping):
            raise _UnfitError("give a dict")
        extra = [name for name in value if name not in takers]
        if extra:
            raise _UnfitError(f"it has {extra[0]!r}, which the column has not")
        return {name: takers[name](each) for name, each in value.items()}

    return take


def _list(wanted: pa.DataType) -> Take:
    """Lists; in those of whole numbers pandas gives NULL as NaN of an array of floats."""
    each, is_vector = _taker(wanted.value_type), _TYPES.is_floating(wanted.value_type)
    is_whole = _TYPES.is_integer(wanted.value_type)
    limit = float(np.finfo(wanted.value_type.to_pandas_dtype()).max) if is_vector else 0.0

    def take(value: Value) -> Value:
        if is_vector and isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1:
            if (np.abs(value[np.isfinite(value)]) > limit).any():
                raise _UnfitError("a number in it is too large")
            return value
        if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
            raise _UnfitError("give a list")
        if is_whole and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            value = [None if math.isnan(item) else item for item in value]
        return [each(item) for item in value]

    return take


def _map(wanted: pa.DataType) -> Take:
    keys, items = _taker(wanted.key_type), _taker(wanted.item_type)

    def take(value: Value) -> list[tuple[Value, Value]]:
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(keys(key), items(item)) for key, item in pairs]

    return take


_TAKERS: tuple[tuple[Callable[[pa.DataType], bool], Take], ...] = (
    (_TYPES.is_integer, _integer),
    (_TYPES.is_decimal, _decimal),
    (_TYPES.is_boolean, _boolean),
    (_TYPES.is_date, _day),
    (_TYPES.is_time, _clock),
    (_TYPES.is_string, _text),
    (_TYPES.is_large_string, _text),
    (_TYPES.is_string_view, _text),
    (_TYPES.is_binary, _bytes),
    (_TYPES.is_large_binary, _bytes),
    (_TYPES.is_binary_view, _bytes),
    (_TYPES.is_fixed_size_binary, _bytes),
)
