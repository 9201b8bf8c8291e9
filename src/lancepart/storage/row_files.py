"""Files of others as streams of rows: Parquet, CSV, JSON, Arrow and Lance, on a local disk or an object store."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import lance
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import FileFormat
from lancepart.storage.root import Root
from lancepart.storage.row_schema import FileRows, FoundFile, extension, rows_in
from lancepart.storage.translate import storage_errors

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "ipc",
    ".arrows": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".lance": "lance",
}
_NAMES = {**{kind: kind for kind in _FORMATS.values()}, "arrow": "ipc"}
_MAGIC = re.compile(r"[*?\[]")
_REMOTE = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_S3_OPTIONS = {
    "access_key": ("aws_access_key_id", "access_key_id"),
    "secret_key": ("aws_secret_access_key", "secret_access_key"),
    "session_token": ("aws_session_token", "session_token"),
    "region": ("aws_region", "region", "aws_default_region"),
    "endpoint_override": ("aws_endpoint", "endpoint", "aws_endpoint_url", "endpoint_url"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFiles:
    """Files given by paths and globs, read as one stream as often as wanted, little by little."""

    paths: tuple[str, ...]
    format: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    same_columns: bool = False

    def reader(self, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """All rows; text is read as the types of a schema where its columns have these names."""
        rows = self._opened(schema)
        if isinstance(rows, FileRows):
            stream = rows.reader()
        else:
            stream = rows.scanner(batch_readahead=2, fragment_readahead=1).to_reader()
        return pa.RecordBatchReader.from_batches(stream.schema, self._read(stream))

    def dataset(self) -> ds.Dataset | None:
        """The files as a dataset of pyarrow's; None if only a stream can be made of them."""
        rows = self._opened(None)
        return None if isinstance(rows, FileRows) else rows

    def _opened(self, schema: pa.Schema | None) -> FileRows | ds.Dataset:
        shown = ", ".join(self.paths)
        with storage_errors(f"read {shown}", Root.parse(self.paths[0], dict(self.storage_options))):
            return self._rows(schema)

    def _read(self, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The rows of a stream; an error of Arrow's names the files."""
        try:
            yield from stream
        except pa.ArrowInvalid as error:
            more = f" and {len(self.paths) - 1} others" if len(self.paths) > 1 else ""
            raise InvalidInputError(
                f"{self.paths[0]!r}{more} can't be read: {error}; a file has the types of its first rows: give "
                "schema= with types that hold the values of all, or load files of other types one at a time"
            ) from None

    def _rows(self, schema: pa.Schema | None) -> FileRows | ds.Dataset:
        first = self.paths[0]
        found = _found(self.paths, self.storage_options)
        kind = self.format or _common_format([file.path for file in found])
        if kind == "lance":
            if len(found) > 1:
                raise InvalidInputError(f"{len(found)} Lance tables match {first!r}: give one at a time")
            return lance.dataset(
                first if len(self.paths) == 1 and not _MAGIC.search(first) else found[0].path,
                storage_options=dict(self.storage_options) or None,
            )
        return rows_in(found, kind=kind, schema=schema, same_columns=self.same_columns)


def is_path(data: object) -> bool:
    """Whether data is a path or URI, or a list of them."""
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(each, str | os.PathLike) for each in data)


def names_files(data: object) -> bool:
    """Whether data is paths of files by their endings or by their being globs, rather than that of a table."""
    items: Sequence[object] = list(data) if isinstance(data, list | tuple) else [data]
    paths = [os.fspath(item) for item in items if isinstance(item, str | os.PathLike)]
    known = [bool(_MAGIC.search(path)) or _FORMATS.get(extension(path), "lance") != "lance" for path in paths]
    return bool(known) and len(known) == len(items) and all(known)


def files_at(
    data: object,
    *,
    format: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    same_columns: bool = False,
) -> RowFiles:
    """The files that a path, a glob or a list of them names; whether they are there is seen when they are read.

    ``same_columns`` refuses files that lack a column of the others: for writes in which NULL would replace a value.
    """
    items: Sequence[object] = list(data) if isinstance(data, list | tuple) else [data]
    paths = tuple(os.fspath(item) for item in items if isinstance(item, str | os.PathLike))
    if not paths or len(paths) != len(items):
        raise InvalidInputError(f"{data!r} is no path: give paths or globs of files")
    if format is not None and format not in _NAMES:
        raise InvalidInputError(f"format is {format!r}: use {', '.join(map(repr, get_args(FileFormat)))}")
    options = dict(storage_options or {})
    kind = format and _NAMES[format]
    return RowFiles(paths=paths, format=kind, storage_options=options, same_columns=same_columns)


def _found(paths: Sequence[str], options: Mapping[str, str]) -> list[FoundFile]:
    """The files that paths and globs name, in a stable order, and where they are."""
    found: list[FoundFile] = []
    for path in paths:
        if "://" in path and not path.startswith("file://"):
            system, inner = _remote(path, options)
            own = _listed_remotely(system, inner.rstrip("/"))
        else:
            system, inner = pa_fs.LocalFileSystem(), path.removeprefix("file://")
            own = _listed_locally(inner)
        if not own:
            where = path if "://" in path else os.path.abspath(path)
            if os.path.isdir(where):
                known = ", ".join(_FORMATS)
                raise InvalidInputError(f"the directory {path!r} has no file with an ending that is known: {known}")
            raise InvalidInputError(f"no file matches {path!r}: looked for {where!r}; look at the path and its ending")
        base = _base(inner, own)
        found += [FoundFile(path=each, base=base, system=system) for each in own]
    return found


def _base(given: str, found: Sequence[str]) -> str:
    """The directory beneath which folders are columns: the one given, or the fixed part of a glob."""
    plain = given.rstrip("/")
    if found == [plain]:
        return os.path.dirname(plain)
    start = _MAGIC.search(given)
    if start is None or os.path.exists(given):
        return plain
    return given[: start.start()].rpartition("/")[0]


def _listed_locally(path: str) -> list[str]:
    if not _MAGIC.search(path) or os.path.exists(path):
        named = [path] if os.path.exists(path) else []
    else:
        named = sorted(glob.glob(path, recursive=True))
    return [file for each in named for file in _inside(each)]


def _inside(path: str) -> list[str]:
    """A file, or the data files beneath a directory; a Lance table is one whole."""
    if not os.path.isdir(path) or os.path.isdir(os.path.join(path, "_versions")):
        return [path]
    inside = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    return sorted(each for each in inside if _is_data(os.path.relpath(each, path)))


def _is_data(path: str) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in path.replace(os.sep, "/").split("/"))
    return not hidden and extension(path) in _FORMATS


def _remote(path: str, options: Mapping[str, str]) -> tuple[pa_fs.FileSystem, str]:
    scheme, _, rest = path.partition("://")
    if scheme not in _REMOTE:
        raise InvalidInputError(f"no files are read from {path!r}: give a local path, or a URI with s3:// or gs://")
    if scheme not in ("s3", "s3a", "s3n") or not options:
        system, inner = pa_fs.FileSystem.from_uri(path.replace("s3a://", "s3://").replace("s3n://", "s3://"))
        return system, str(inner)
    known = {}
    for name, spellings in _S3_OPTIONS.items():
        value = next((options[spelling] for spelling in spellings if spelling in options), None)
        if value is not None:
            known[name] = value
    if str(known.get("endpoint_override", "")).startswith("http://"):
        known["scheme"] = "http"
    return pa_fs.S3FileSystem(**known), rest


def _listed_remotely(system: pa_fs.FileSystem, path: str) -> list[str]:
    start = _MAGIC.search(path)
    if start is None:
        info = system.get_file_info(path)
        if info.type == pa_fs.FileType.File or extension(path) == ".lance":
            return [path]
        inside = system.get_file_info(pa_fs.FileSelector(path, recursive=True, allow_not_found=True))
        return sorted(
            each.path for each in inside if each.type == pa_fs.FileType.File and _is_data(each.path[len(path) + 1 :])
        )
    folder = path[: start.start()].rpartition("/")[0]
    inside = system.get_file_info(pa_fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return sorted(
        each.path for each in inside if each.type == pa_fs.FileType.File and fnmatch.fnmatchcase(each.path, path)
    )


def _common_format(paths: Sequence[str]) -> str:
    """The format of files; one whose name does not say is taken for that of the first."""
    first = _format_of(paths[0])
    for path in paths:
        other = _FORMATS.get(extension(path), first)
        if other != first:
            raise InvalidInputError(
                f"{paths[0]!r} is {first} and {path!r} is {other}: give files of one format at a time"
            )
    return first


def _format_of(path: str) -> str:
    kind = _FORMATS.get(extension(path))
    if kind is None and os.path.isdir(os.path.join(path, "_versions")):
        return "lance"
    if kind is None:
        raise InvalidInputError(
            f"{path!r} has no ending that is known: {', '.join(_FORMATS)}; say what it is with format="
        )
    return kind
