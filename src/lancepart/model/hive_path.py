"""The ``key=value`` names of the Hive-style layout: partition values to text and back, exactly."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError
from lancepart.model.values import canonical, logical_type

NULL = "__HIVE_DEFAULT_PARTITION__"
SUFFIX = ".lance"

_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^$]")
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ZONED = r"(Z|[+-]\d\d(:?\d\d)?)$"
_DIGITS = {"year": 4, "month": 2, "day": 2, "hour": 2}


def escape(text: str) -> str:
    """A text as part of a name: what separates ids, paths and keys is percent-encoded, as Hive does, and ``$`` too.

    >>> escape("50% of $5/a=b"), escape("x.lance")
    ('50%25 of %245%2Fa%3Db', 'x%2Elance')
    """
    safe = _SPECIAL.sub(lambda found: f"%{ord(found.group()):02X}", text)
    return safe[: -len(SUFFIX)] + "%2E" + SUFFIX[1:] if safe.endswith(SUFFIX) else safe


def unescape(text: str) -> str:
    """The text that a part of a name encodes; a percent sign that escapes nothing is literal.

    >>> unescape("50%25 of %245"), unescape("100%")
    ('50% of $5', '100%')
    """
    return _ESCAPED.sub(lambda found: bytes.fromhex(found.group().replace("%", "")).decode(errors="replace"), text)


def segment(key: str, text: str | None) -> str:
    """One level's name.

    >>> segment("country", None), segment("country", ""), segment("country", NULL)
    ('country=__HIVE_DEFAULT_PARTITION__', 'country=', 'country=%5F_HIVE_DEFAULT_PARTITION__')
    """
    if text is None:
        return f"{escape(key)}={NULL}"
    return f"{escape(key)}=%5F{NULL[1:]}" if text == NULL else f"{escape(key)}={escape(text)}"


def split(name: str) -> tuple[str, str | None] | None:
    """The key and value of a level's name, None as value for NULL; None when it is no such name.

    >>> split("a%2Fb=50%25"), split("country=__HIVE_DEFAULT_PARTITION__"), split("users")
    (('a/b', '50%'), ('country', None), None)
    """
    key, equals, text = name.partition("=")
    if not equals or not key:
        return None
    return unescape(key), None if text == NULL else unescape(text)


def stringifies(arrow_type: pa.DataType) -> bool:
    """Whether values of a type can be parsed back from their text."""
    kind, types = logical_type(arrow_type), pa.types
    text = types.is_string(kind) or types.is_large_string(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    return bool(text or number or types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind))


def texts(values: pa.Array, function: str) -> list[str | None]:
    """Partition values as they are in names: time in UTC, months, days and hours with two digits."""
    kind = values.type
    if function in _DIGITS:
        digits = _DIGITS[function]
        return [None if number is None else f"{number:0{digits}d}" for number in values.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if number is None else repr(number) for number in canonical(values).to_pylist()]
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit))
    elif pa.types.is_date64(kind):
        values = values.cast(pa.timestamp("ms"))
    spelled: list[str | None] = pc.cast(values, pa.string()).to_pylist()
    return spelled


def parse(spelled: list[str | None], kind: pa.DataType, *, key: str) -> pa.Array:
    """Texts of names as values of a type."""
    array = pa.array(spelled, pa.string())
    try:
        return _parsed(array, kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidTableStateError(f"a partition's {key!r} is not of type {kind}: {error}") from None


def _parsed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_integer(kind) and not types.is_uint64(kind):
        low = np.iinfo(kind.to_pandas_dtype()).min
        whole = array.cast(pa.int64())
        return pc.max_element_wise(whole, pa.scalar(low, pa.int64()), skip_nulls=False).cast(kind)
    if types.is_floating(kind):
        numbers = array.cast(pa.float64())
        return canonical(numbers.cast(kind, safe=False))
    if types.is_timestamp(kind):
        moments = _with_zone(array).cast(pa.timestamp(kind.unit, "UTC"))
        return moments.cast(pa.int64()).cast(kind)
    if types.is_date64(kind):
        return _with_zone(array).cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).cast(kind)
    if types.is_time(kind):
        since = pc.binary_join_element_wise(pa.scalar("1970-01-01"), array, " ").cast(pa.timestamp(kind.unit))
        ticks = since.cast(pa.int64())
        return (ticks.cast(pa.int32()) if types.is_time32(kind) else ticks).cast(kind)
    return array.cast(kind)


def _with_zone(array: pa.Array) -> pa.Array:
    """Moments that do not say their zone are in UTC."""
    dated = pc.match_substring_regex(array, r"^-?\d+-\d\d-\d\d$")
    full = pc.if_else(dated, pc.binary_join_element_wise(array, pa.scalar(" 00:00:00"), ""), array)
    zoned = pc.match_substring_regex(full, _ZONED)
    return pc.if_else(pc.and_(zoned, pc.invert(dated)), full, pc.binary_join_element_wise(full, pa.scalar("Z"), ""))


def guessed(spelled: list[str | None]) -> pa.DataType:
    """The type of a bare tree's values: whole numbers, dates, or text.

    >>> guessed(["1", "-2", None]), guessed(["2025-12-10"]), guessed(["01", "x"])
    (DataType(int64), DataType(date32[day]), DataType(string))
    """
    known = [text for text in spelled if text is not None]
    for kind in (pa.int64(), pa.date32()):
        try:
            if known and pa.array(known).cast(kind).cast(pa.string()).to_pylist() == known:
                return kind
        except pa.ArrowInvalid:
            continue
    return pa.string()
