"""Which types fit into which: all of their values, or only those that are represented exactly."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

_UNITS = ("s", "ms", "us", "ns")


def fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of one type is a value of the other, whatever it is.

    >>> fits(pa.int32(), pa.int64()), fits(pa.int64(), pa.int32()), fits(pa.large_string(), pa.string())
    (True, False, True)
    """
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return fits(given.value_type, wanted)
    if pa.types.is_dictionary(wanted):
        return fits(given, wanted.value_type)
    return (
        _fits_number(given, wanted)
        or _fits_bytes(given, wanted)
        or _fits_time(given, wanted)
        or _nested(given, wanted, fits)
    )


def may_fit(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type may fit the other, so that each must be checked.

    >>> may_fit(pa.int64(), pa.int32()), may_fit(pa.string(), pa.int32()), may_fit(pa.bool_(), pa.int8())
    (True, False, False)
    """
    if fits(given, wanted):
        return True
    if pa.types.is_dictionary(given):
        return may_fit(given.value_type, wanted)
    if pa.types.is_dictionary(wanted):
        return may_fit(given, wanted.value_type)
    return (
        _may_fit_number(given, wanted)
        or _may_fit_time(given, wanted)
        or (pa.types.is_fixed_size_binary(wanted) and _fits_bytes(given, pa.binary()))
        or _nested(given, wanted, may_fit)
    )


def _fits_number(given: pa.DataType, wanted: pa.DataType) -> bool:
    t = pa.types
    if t.is_integer(given) and t.is_integer(wanted):
        if t.is_signed_integer(given) == t.is_signed_integer(wanted):
            return bool(given.bit_width <= wanted.bit_width)
        return bool(t.is_signed_integer(wanted) and given.bit_width < wanted.bit_width)
    if t.is_floating(given) and t.is_floating(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    if t.is_decimal(given) and t.is_decimal(wanted):
        return bool(given.scale <= wanted.scale and given.precision - given.scale <= wanted.precision - wanted.scale)
    return False


def _may_fit_number(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Numbers fit by value; only a float and a decimal are never taken for one another."""
    t = pa.types
    kinds = (t.is_integer, t.is_floating, t.is_decimal)
    if not any(kind(given) for kind in kinds) or not any(kind(wanted) for kind in kinds):
        return False
    return not (t.is_floating(given) and t.is_decimal(wanted)) and not (t.is_decimal(given) and t.is_floating(wanted))


def _fits_bytes(given: pa.DataType, wanted: pa.DataType) -> bool:
    t = pa.types

    def is_text(kind: pa.DataType) -> bool:
        return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))

    def is_bytes(kind: pa.DataType) -> bool:
        return bool(
            t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind)
        )

    if is_text(given) and is_text(wanted):
        return True
    return is_bytes(given) and is_bytes(wanted) and not t.is_fixed_size_binary(wanted)


def _fits_time(given: pa.DataType, wanted: pa.DataType) -> bool:
    t = pa.types
    if t.is_date(given) and t.is_date(wanted):
        return bool(t.is_date32(given))
    if t.is_timestamp(given) and t.is_timestamp(wanted):
        zoned = (given.tz is None) == (wanted.tz is None)
        return zoned and _UNITS.index(given.unit) <= _UNITS.index(wanted.unit)
    if (t.is_time(given) and t.is_time(wanted)) or (t.is_duration(given) and t.is_duration(wanted)):
        return _UNITS.index(given.unit) <= _UNITS.index(wanted.unit)
    return False


def _may_fit_time(given: pa.DataType, wanted: pa.DataType) -> bool:
    """A time fits by value; one with a zone and one without are never taken for one another, midnight is a date."""
    t = pa.types

    def is_day(kind: pa.DataType) -> bool:
        return bool(t.is_date(kind) or (t.is_timestamp(kind) and kind.tz is None))

    zoned = t.is_timestamp(given) and t.is_timestamp(wanted) and (given.tz is None) == (wanted.tz is None)
    alike = (t.is_time(given) and t.is_time(wanted)) or (t.is_duration(given) and t.is_duration(wanted))
    return zoned or alike or (is_day(given) and is_day(wanted))


def _nested(given: pa.DataType, wanted: pa.DataType, test: Callable[[pa.DataType, pa.DataType], bool]) -> bool:
    """The same shape, with values of types that pass a test."""
    t = pa.types
    if t.is_struct(given) and t.is_struct(wanted):
        names = [given.field(i).name for i in range(given.num_fields)]
        own = [wanted.field(i) for i in range(wanted.num_fields)]
        return names == [field.name for field in own] and all(
            test(given.field(i).type, field.type) for i, field in enumerate(own)
        )
    if t.is_map(given) and t.is_map(wanted):
        return test(given.key_type, wanted.key_type) and test(given.item_type, wanted.item_type)
    if t.is_fixed_size_list(wanted):
        sized = t.is_fixed_size_list(given) and given.list_size == wanted.list_size
        listed = sized or t.is_list(given) or t.is_large_list(given)
        return bool(listed) and test(given.value_type, wanted.value_type)
    if t.is_list(wanted) or t.is_large_list(wanted):
        listed = t.is_list(given) or t.is_large_list(given) or t.is_fixed_size_list(given)
        return bool(listed) and test(given.value_type, wanted.value_type)
    return False
