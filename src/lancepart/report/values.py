"""Values, rows and sizes, as JSON and as text."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

import pyarrow as pa

Json: TypeAlias = Mapping[str, "Json"] | Sequence["Json"] | str | float | int | bool | None

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_BLOCKS = " ▏▎▍▌▋▊▉"
_MOST_ITEMS = 4
_MOST_CHARACTERS = 60
_LARGE, _HUGE = 1e5, 1e15
_MOST_EXACT = 2**53 - 1


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """The rows of a table, maps as dicts."""
    return [{key: _mapped(value) for key, value in row.items()} for row in table.to_pylist()]


def _mapped(value: object) -> object:
    pairs = isinstance(value, list) and bool(value) and all(isinstance(item, tuple) for item in value)
    return dict(value) if pairs else value  # type: ignore[call-overload]


def plain(value: object) -> Json:
    """A value as JSON has it: times in ISO 8601, bytes in base64, decimals and what is no number as text.

    >>> plain({"at": datetime(2026, 1, 31), "n": float("nan"), "b": b"ab"})
    {'at': '2026-01-31T00:00:00', 'n': 'NaN', 'b': 'YWI='}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else "-Infinity"[value > 0 :]
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() | UUID():
            return str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
    return str(value)


def text(value: object, most: int = _MOST_CHARACTERS) -> str:
    """A value in a cell: long texts and lists are cut short.

    >>> text([0.25, 1.0, 2.0, 3.0, 4.0, 5.0]), text(None), text(1234)
    ('[0.25, 1, 2, 3, … 6]', '', '1234')
    """
    match value:
        case None:
            return ""
        case float():
            return _float_text(value)
        case datetime():
            return value.isoformat(sep=" ", timespec="milliseconds" if value.microsecond else "seconds")
        case Mapping():
            return ", ".join(f"{key}={text(item) if item is not None else 'NULL'}" for key, item in value.items())
        case list() | tuple():
            shown = ", ".join(_item_text(item) for item in value[:_MOST_ITEMS])
            return f"[{shown}, … {len(value)}]" if len(value) > _MOST_ITEMS else f"[{shown}]"
    found = str(plain(value)).replace("\n", " ")
    return found if len(found) <= most else f"{found[: most - 1]}…"


def _float_text(value: float) -> str:
    """A float with seven digits, as many as any float32 has, or with two decimals where it is so large.

    >>> _float_text(0.1 + 0.2), _float_text(1234567.89), _float_text(1e20), _float_text(-123456.0)
    ('0.3', '1234567.89', '1e+20', '-123456')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".") if _LARGE <= abs(value) < _HUGE else f"{value:.7g}"


def _item_text(value: object) -> str:
    """A value in a list: of a vector's numbers fewer digits do."""
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1 else text(value)


def safe_integers(value: Json) -> Json:
    """JSON for JavaScript, whose numbers can't hold large integers exactly: those become texts.

    >>> safe_integers({"id": 2**53 + 1, "n": [2**53 - 1, 0.5, None]})
    {'id': '9007199254740993', 'n': [9007199254740991, 0.5, None]}
    """
    match value:
        case int() if abs(value) > _MOST_EXACT:
            return str(value)
        case Mapping():
            return {key: safe_integers(item) for key, item in value.items()}
        case list():
            return [safe_integers(item) for item in value]
    return value


def size(count: float | None) -> str:
    """A number of bytes.

    >>> size(950), size(1_500_000), size(None)
    ('950 B', '1.5 MB', '?')
    """
    if count is None:
        return "?"
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def number(count: int | None) -> str:
    """A count with its thousands apart."""
    return "?" if count is None else f"{count:,}"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(2_000, "file")
    ('1 row', '2,000 files')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bar(share: float, width: int = 24) -> str:
    """A bar whose length is a share of the width.

    >>> bar(0.5, 4), bar(0.0, 4)
    ('██', '')
    """
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    return ("█" * (eighths // 8) + _BLOCKS[eighths % 8]).rstrip()
