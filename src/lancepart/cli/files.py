"""Files that are loaded: read as ``lp.load`` reads them, with a bar for people."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import get_args

import pyarrow as pa
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lancepart.cli.shell import Shell
from lancepart.cli.usage import choice
from lancepart.errors import InvalidInputError
from lancepart.model.aliases import FileFormat
from lancepart.storage.row_files import RowFiles, files_at
from lancepart.write.streams import counted

_FINER = re.compile(r"\.\d{7}")
"""A fraction of a second with more digits than a ``datetime`` has."""
_TRACE = ". Detail: Python exception"
_JSON = (".json", ".jsonl", ".ndjson")


def found(shell: Shell, patterns: Sequence[str], format: str | None = None, *, same_columns: bool = False) -> RowFiles:
    """The files that names and globs match, local or on the object store whose options are given."""
    if format is not None:
        choice("--format", format, get_args(FileFormat))
    return files_at(list(patterns), format=format, storage_options=shell.storage, same_columns=same_columns)


@contextmanager
def reading(files: RowFiles, schema: pa.Schema | None, *, progress: bool) -> Iterator[pa.RecordBatchReader]:
    """The rows of files as a stream to write; a file that can't be read fails the write, and nothing is committed."""
    try:
        rows = files.reader(schema)
        if not progress or not sys.stderr.isatty():
            yield rows
            return
        columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} rows read"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task("rows", total=None)
            yield counted(rows, lambda count: shown.update(task, completed=count))
    except pa.ArrowException as error:
        reason = str(error).split(_TRACE)[0]
        raise InvalidInputError(f"{reason}: correct the file, or load it into a column of another type") from None


def uneven_rows(files: RowFiles, schema: pa.Schema) -> list[dict[str, object]] | None:
    """The rows of JSON files if they do not all name the same columns: a column that is not named is kept by an upsert.

    Arrow would show it as NULL, which is a value. Texts are read in the types of the table, as Arrow does.
    """
    if files.format not in (None, "json") or not all(path.endswith(_JSON) for path in files.paths):
        return None
    rows: list[dict[str, object]] = []
    for name in files.paths:
        try:
            with open(name, encoding="utf-8") as lines:
                rows += [json.loads(line) for line in lines if line.strip()]
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InvalidInputError(f"{name!r} can't be read as JSON, one row a line: {error}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidInputError(f'{files.paths[0]!r}: each line of a JSON file is one row, such as {{"id": 1}}')
    if len({frozenset(row) for row in rows}) <= 1:
        return None
    types = {field.name: field.type for field in schema}
    return [{name: _typed(value, types.get(name)) for name, value in row.items()} for row in rows]


def _typed(value: object, kind: pa.DataType | None) -> object:
    """A text of JSON as the date, the time or the decimal that the column holds; what is none stays, and is refused.

    >>> _typed("2026-01-30", pa.date32()), _typed("2026-01-30T01:00:00+01:00", pa.timestamp("us")).isoformat()
    (datetime.date(2026, 1, 30), '2026-01-30T00:00:00')
    """
    if kind is None or not isinstance(value, str):
        return value
    try:
        if pa.types.is_decimal(kind):
            return Decimal(value)
        if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) or _FINER.search(value):
            return value
        found = datetime.fromisoformat(value)
    except (ArithmeticError, ValueError):
        return value
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    if pa.types.is_timestamp(kind):
        return found if kind.tz is not None else found.replace(tzinfo=None)
    return value if found.time() != time() else found.date()
