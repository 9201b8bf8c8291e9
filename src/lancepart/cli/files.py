"""Files that are loaded: read as ``lp.load`` reads them, with a bar for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def uneven_rows(files: RowFiles) -> list[dict[str, object]] | None:
    """The rows of JSON files if they do not all name the same columns: a column that is not named is kept by an upsert.

    Arrow would show it as NULL, which is a value.
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
    return rows if len({frozenset(row) for row in rows}) > 1 else None
