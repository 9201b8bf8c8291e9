"""Durations as users write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from lancepart.errors import InvalidInputError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


def age(text: str) -> timedelta | datetime:
    """An age or a moment, which is in UTC unless it says otherwise.

    >>> age("36h"), age("7d")
    (datetime.timedelta(days=1, seconds=43200), datetime.timedelta(days=7))
    >>> age("2026-01-31").isoformat()
    '2026-01-31T00:00:00+00:00'
    """
    found = _AGE.fullmatch(text.strip().lower())
    if found is not None:
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{text!r} is no age: write 7d, 12h or 30m, or a moment like 2026-01-31") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
