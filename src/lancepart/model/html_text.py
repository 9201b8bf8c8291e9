"""Small tables of HTML for notebooks; every value is escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence


def html_record(title: str, record: Mapping[str, object]) -> str:
    """A thing with its properties, a row each.

    >>> html_record("<t>", {"rows": 1200, "by": None})
    '<b>&lt;t&gt;</b><table><tr><td>rows</td><td>1,200</td></tr><tr><td>by</td><td></td></tr></table>'
    """
    rows = "".join(f"<tr><td>{_text(key)}</td><td>{_text(value)}</td></tr>" for key, value in record.items())
    return f"<b>{_text(title)}</b><table>{rows}</table>"


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under their columns' names."""
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):,}"
    if isinstance(value, tuple | list):
        return html.escape(", ".join(map(str, value)))
    return html.escape(str(value))
