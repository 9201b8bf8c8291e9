"""Files that are loaded: found by names and globs, read as one stream of rows."""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

import pyarrow as pa
import pyarrow.dataset as ds
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lancepart.errors import InvalidInputError
from lancepart.storage.dataset import open_dataset
from lancepart.storage.root import Root

FORMATS = ("parquet", "csv", "json", "arrow", "lance")

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".lance": "lance",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_UNTYPED = ("csv", "json")
_TRACE = ". Detail: Python exception"


def found(patterns: Sequence[str]) -> list[str]:
    """The files and directories that names and globs stand for, each once, in order."""
    names: dict[str, None] = {}
    for pattern in patterns:
        matches = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
        if not matches:
            raise InvalidInputError(f"no file matches {pattern!r}: give files, directories or globs such as 'in/*.csv'")
        names |= dict.fromkeys(matches)
    return list(names)


def format_of(names: Sequence[str], given: str | None) -> str:
    """The format of files by their names; a directory is named after the files in it."""
    if given is not None:
        if given not in FORMATS:
            raise InvalidInputError(f"--format is {given!r}: use {', '.join(FORMATS)}")
        return given
    formats = {_by_suffix(name) for name in names}
    if len(formats) != 1 or None in formats:
        what = (
            "the files have several formats"
            if len(formats - {None}) > 1
            else f"the format of {names[0]!r} is not known"
        )
        raise InvalidInputError(f"{what}: give --format ({', '.join(FORMATS)}), or load them one format at a time")
    return next(each for each in formats if each is not None)


def _by_suffix(name: str) -> str | None:
    path = PurePath(name)
    suffix = path.suffixes[-2] if path.suffix in _COMPRESSED and len(path.suffixes) > 1 else path.suffix
    if suffix.lower() in _SUFFIXES or not os.path.isdir(name):
        return _SUFFIXES.get(suffix.lower())
    inside = (os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files if file[0] not in "._")
    return next((kind for file in inside if (kind := _by_suffix(file))), None)


@contextmanager
def read_errors() -> Iterator[None]:
    """Report a file that can't be read while its rows are written; nothing of them is committed."""
    try:
        yield
    except pa.ArrowException as error:
        reason = str(error).split(_TRACE)[0]
        raise InvalidInputError(f"{reason}: correct the file, or load it into a column of another type") from None


@dataclass(frozen=True, slots=True)
class Source:
    """Files to load, as datasets of the same columns."""

    datasets: tuple[ds.Dataset, ...]

    @classmethod
    def of(cls, names: Sequence[str], kind: str, wanted: pa.Schema | None = None) -> Source:
        """Look at files; texts of CSV and JSON are read in the types of the table that they are for."""
        if kind == "lance":
            return cls(tuple(_lance(name) for name in names))
        try:
            source = list(names) if len(names) > 1 or not os.path.isdir(names[0]) else names[0]
            partitioning = "hive" if isinstance(source, str) else None
            read = ds.dataset(source, format=kind, partitioning=partitioning)
            if wanted is not None and kind in _UNTYPED:
                fields = [wanted.field(field.name) if field.name in wanted.names else field for field in read.schema]
                read = ds.dataset(source, format=kind, schema=pa.schema(fields), partitioning=partitioning)
        except (pa.ArrowException, OSError) as error:
            raise InvalidInputError(f"{names[0]!r} can't be read as {kind}: {error}") from None
        return cls((read,))

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.datasets[0].schema

    def reader(self, *, progress: bool) -> pa.RecordBatchReader:
        """The rows as a stream, with a bar on stderr if that is a terminal."""
        show = progress and sys.stderr.isatty()
        return pa.RecordBatchReader.from_batches(self.schema, self._tracked() if show else self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for each in self.datasets:
            yield from each.scanner().to_batches()

    def _tracked(self) -> Iterator[pa.RecordBatch]:
        columns = (TextColumn("loading"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task("rows", total=sum(each.count_rows() for each in self.datasets))
            for batch in self._batches():
                yield batch
                shown.advance(task, batch.num_rows)


def _lance(name: str) -> ds.Dataset:
    folder, base = os.path.split(os.path.abspath(name))
    return open_dataset(Root.parse(folder), base)


def uneven_rows(names: Sequence[str]) -> list[dict[str, object]] | None:
    """The rows of JSON files if they do not all name the same columns: a column that is not named is kept by an upsert.

    Arrow would show it as NULL, which is a value.
    """
    rows: list[dict[str, object]] = []
    for name in names:
        with open(name, encoding="utf-8") as lines:
            try:
                rows += [json.loads(line) for line in lines if line.strip()]
            except ValueError as error:
                raise InvalidInputError(f"{name!r} can't be read as JSON, one row a line: {error}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidInputError(f'{names[0]!r}: each line of a JSON file is one row, such as {{"id": 1}}')
    return rows if len({frozenset(row) for row in rows}) > 1 else None
