"""``TIMESTAMPTZ '…'``: DataFusion drops its zone, and would compare columns in other zones than UTC by their clocks."""

from __future__ import annotations

import re

_TEXT = r"'(?:[^']|'')*'"
_TYPE = r"(?:timestamptz|timestamp\s+with\s+time\s+zone)"
_LITERAL = re.compile(
    rf"\b{_TYPE}\s*(?P<typed>{_TEXT})"
    rf"|\bcast\s*\(\s*(?P<cast>{_TEXT})\s+as\s+{_TYPE}\s*\)"
    rf"|(?P<suffixed>{_TEXT})\s*::\s*{_TYPE}\b"
    rf"""|(?P<other>{_TEXT}|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/)""",
    re.IGNORECASE | re.DOTALL,
)
_MENTIONED = re.compile(rf"\b{_TYPE}\b", re.IGNORECASE)
_NANOSECONDS = re.compile(r"\.\d{7}")


def with_zones(sql: str) -> str:
    """The same SQL with each literal that has a zone as an instant; one that names no zone is in UTC.

    >>> with_zones("z < TIMESTAMPTZ '2024-01-01 00:30:00+01'")
    'z < arrow_cast(\\'2024-01-01 00:30:00+01\\', \\'Timestamp(Microsecond, Some("UTC"))\\')'
    """
    return _LITERAL.sub(_instant, sql) if _MENTIONED.search(sql) else sql


def _instant(found: re.Match[str]) -> str:
    text = found["typed"] or found["cast"] or found["suffixed"]
    if text is None:
        return found[0]
    unit = "Nanosecond" if _NANOSECONDS.search(text) else "Microsecond"
    return f"""arrow_cast({text}, 'Timestamp({unit}, Some("UTC"))')"""
