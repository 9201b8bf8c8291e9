"""Which casts of a column a filter can be seen through: those that never reorder values nor lose one to NULL."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lancepart.model.ordering import Key, Ordering, ordering

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
UTC_ZONES = {None, "UTC", "+00:00", "Z", "Etc/UTC"}


def widening(source: pa.DataType, target: pa.DataType) -> Callable[[Key], Key] | None:
    """The cast from one type to another as a non-decreasing function of keys, or None.

    >>> to_date = widening(pa.timestamp("us"), pa.date32())
    >>> to_date(-1)
    -1
    """
    before, after = ordering(source), ordering(target)
    if before is None or after is None:
        return None
    source, target = before.type, after.type
    if source == target or (before.kind == after.kind and before.kind in {"text", "binary"}):
        return _same
    if pa.types.is_integer(source):
        return _from_integer(before, after)
    if before.kind == "float" and after.kind == "float" and source.bit_width < target.bit_width:
        return lambda key: after.key(before.values([key]).cast(target)[0])
    if before.kind == "decimal" and after.kind == "decimal":
        return _from_decimal(source, target)
    return _from_time(source, target)


def _same(key: Key) -> Key:
    return key


def _from_integer(before: Ordering, after: Ordering) -> Callable[[Key], Key] | None:
    if pa.types.is_integer(after.type):
        return _same if after.low <= before.low and before.high <= after.high else None
    if after.kind == "decimal":
        scale = after.type.scale
        fits = scale >= 0 and max(-before.low, before.high) * 10**scale < after.high
        return (lambda key: key * 10**scale) if fits else None
    if after.type == pa.float64():
        return lambda key: after.key(pa.scalar(float(key), pa.float64()))
    return None


def _from_decimal(source: pa.DataType, target: pa.DataType) -> Callable[[Key], Key] | None:
    shift = target.scale - source.scale
    fits = shift >= 0 and target.precision - target.scale >= source.precision - source.scale
    return (lambda key: key * 10**shift) if fits else None


def _from_time(source: pa.DataType, target: pa.DataType) -> Callable[[Key], Key] | None:
    types = pa.types
    if types.is_date32(source) and types.is_timestamp(target) and target.tz in UTC_ZONES:
        factor = _DAY * _PER_SECOND[target.unit]
        return lambda key: key * factor
    if types.is_date32(source) and types.is_date64(target):
        return lambda key: key * _DAY * 1000
    if not types.is_timestamp(source):
        return None
    if types.is_date32(target) and source.tz in UTC_ZONES:
        per_day = _DAY * _PER_SECOND[source.unit]
        return lambda key: key // per_day
    same_clock = types.is_timestamp(target) and (source.tz == target.tz or {source.tz, target.tz} <= UTC_ZONES)
    if not same_clock or _PER_SECOND[target.unit] < _PER_SECOND[source.unit]:
        return None
    ratio = _PER_SECOND[target.unit] // _PER_SECOND[source.unit]
    return lambda key: key * ratio
