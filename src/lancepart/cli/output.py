"""Rows and records as text on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lancepart.report.values import text

_WHOLE = 10_000


def show_rows(
    console: Console, rows: Sequence[Mapping[str, object]], columns: Sequence[str], *, null: str = ""
) -> None:
    """Print rows as a table; ``null`` stands for what has no value."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        numeric = any(isinstance(row.get(name), int | float) for row in rows)
        table.add_column(escape(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(null if row.get(name) is None else text(row[name])) for name in columns))
    console.print(table)


def show_record(console: Console, record: Mapping[str, object]) -> None:
    """Print one record, a line a field."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in record.items():
        table.add_row(escape(key.replace("_", " ")), escape(text(value, _WHOLE)))
    console.print(table)
