"""Files of one kind as one dataset: the columns of all of them, and those that key=value folders name."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import and_
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
import pyarrow.json as pa_json

from lancepart.errors import InvalidInputError
from lancepart.storage.csv_numbers import refuse_rounded
from lancepart.storage.csv_text import not_unicode, refuse_other_encoding, refuse_other_separator
from lancepart.storage.row_streams import columns_of, fitted, is_stream, rows_of
from lancepart.storage.text_types import NOT_WHOLE, as_json, with_decimals

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_READERS = 8
_COLUMN = re.compile(r"In CSV column #(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file, where it is, and the directory beneath which its folders are columns."""

    path: str
    base: str
    system: pa_fs.FileSystem

    def folders(self) -> dict[str, str]:
        """What the key=value folders say."""
        parts = self.path.removeprefix(self.base).replace(os.sep, "/").split("/")[:-1]
        pairs = [part.split("=", 1) for part in parts if "=" in part]
        return {unquote(key): unquote(value) for key, value in pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Files as one stream of rows with the columns of all."""

    columns: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]

    def reader(self) -> pa.RecordBatchReader:
        """All rows, little by little."""
        return pa.RecordBatchReader.from_batches(self.columns, self.batches())


def rows_in(
    files: Sequence[FoundFile], *, kind: str, schema: pa.Schema | None, same_columns: bool = False
) -> FileRows | ds.Dataset:
    """Files as one whole with the columns of all; a schema types text, JSON and folders where it has their names."""
    formats = [_file_format(kind, file.path, schema) for file in files]
    known = {each.name: each for each in schema or ()}
    with ThreadPoolExecutor(max_workers=min(_READERS, len(files))) as readers:
        streams = list(readers.map(lambda file: is_stream(kind, file.path, file.system), files))
        inspected = list(readers.map(_inspected, files, formats, streams))
    formats, physical = [format for format, _ in inspected], [own for _, own in inspected]
    if kind == "json":
        physical = [as_json(pa.schema([known.get(each.name, each) for each in own])) for own in physical]
        physical = [
            own if stream else _read_through(file, own)
            for file, own, stream in zip(files, physical, streams, strict=True)
        ]
    folders = [file.folders() for file in files]
    named = _folder_columns(folders, known)
    if same_columns:
        _refuse_uneven(files, [{*own.names, *keys} for own, keys in zip(physical, folders, strict=True)])
    for file, own in zip(files, physical, strict=True):
        _refuse_doubled(file, own)
    columns = _with_folders(_unified(files, _as_known(physical, known)), named)
    parts = [
        _Part(file=file, format=format, columns=own, values=_values(file, keys, named), is_stream=stream)
        for file, format, own, keys, stream in zip(files, formats, physical, folders, streams, strict=True)
    ]
    if not any(streams):
        return ds.FileSystemDataset([each.fragment() for each in parts], columns, formats[0], files[0].system)
    return FileRows(columns=columns, batches=lambda: (batch for each in parts for batch in each.batches(kind, columns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One of several files, with its own columns and the values that its folders give to all its rows."""

    file: FoundFile
    format: ds.FileFormat
    columns: pa.Schema
    values: Mapping[str, pa.Scalar]
    is_stream: bool

    def fragment(self) -> ds.Fragment:
        """The file as a part of a dataset."""
        tests = [
            ds.field(name) == value if value.is_valid else ds.field(name).is_null()
            for name, value in self.values.items()
        ]
        where = reduce(and_, tests) if tests else None
        return self.format.make_fragment(self.file.path, self.file.system, partition_expression=where)

    def batches(self, kind: str, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows in the columns of all files."""
        if self.is_stream:
            for batch in rows_of(kind, self.file.path, self.file.system, self.columns):
                yield fitted(batch, columns, self.values)
        else:
            alone = ds.FileSystemDataset([self.fragment()], columns, self.format, self.file.system)
            yield from alone.scanner(batch_readahead=2, fragment_readahead=1).to_batches()


def extension(path: str) -> str:
    """The ending of a name that says what a file holds, without that of a compression."""
    plain = path.rstrip("/").lower()
    for suffix in _COMPRESSED:
        plain = plain.removesuffix(suffix)
    return os.path.splitext(plain)[1]


def _file_format(kind: str, path: str, schema: pa.Schema | None) -> ds.FileFormat:
    if kind == "parquet":
        return ds.ParquetFileFormat()
    if kind == "ipc":
        return ds.IpcFileFormat()
    if kind == "json":
        return ds.JsonFileFormat()
    types = {each.name: each.type for each in schema or () if not pa.types.is_nested(each.type)}
    return _csv_format(path, types)


def _csv_format(path: str, types: Mapping[str, pa.DataType]) -> ds.CsvFileFormat:
    return ds.CsvFileFormat(
        parse_options=pa_csv.ParseOptions(delimiter="\t" if extension(path) == ".tsv" else ","),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _inspected(file: FoundFile, format: ds.FileFormat, stream: bool) -> tuple[ds.FileFormat, pa.Schema]:
    """How one file is read, and its columns; nothing else of it is kept."""
    if stream:
        return format, columns_of("ipc" if isinstance(format, ds.IpcFileFormat) else "json", file.path, file.system)
    try:
        found = format.inspect(file.path, file.system)
        if isinstance(format, ds.CsvFileFormat):
            refuse_other_separator(file.path, found.names)
            refuse_other_encoding(file.path, found, format.default_fragment_scan_options.convert_options.column_types)
            refuse_rounded(file.path, file.system, format, found)
        return format, found
    except UnicodeDecodeError:
        raise not_unicode(file.path, "the name of a column") from None
    except pa.ArrowInvalid as error:
        lenient = _with_decimals(file, format)
        if lenient is not None:
            return lenient, lenient.inspect(file.path, file.system)
        kind, reason = format.default_extname, _with_column(file, format, str(error))
        if kind == "csv" and "Expected 1 columns" in reason:
            raise InvalidInputError(f"{file.path!r}: {reason}: are its fields separated by commas?") from None
        raise InvalidInputError(f"{file.path!r} can't be read as {kind}: {reason}: correct the file") from None


def _with_column(file: FoundFile, format: ds.FileFormat, reason: str) -> str:
    """Arrow's error about a CSV file with the name of the column in place of its number."""
    found = _COLUMN.search(reason)
    if found is None or not isinstance(format, ds.CsvFileFormat):
        return reason
    with contextlib.suppress(pa.ArrowInvalid):
        names = _csv_format(file.path, {}).inspect(file.path, file.system).names
        return reason.replace(found[0], f"column {names[int(found[1])]!r}")
    return reason


def _with_decimals(file: FoundFile, format: ds.FileFormat) -> ds.FileFormat | None:
    """How a CSV file is read whose whole numbers are written like 1.0, or are too large; None for other files."""
    if not isinstance(format, ds.CsvFileFormat):
        return None
    types = dict(format.default_fragment_scan_options.convert_options.column_types)
    other = _csv_format(file.path, {name: with_decimals(kind) for name, kind in types.items()})
    try:
        other.inspect(file.path, file.system)
    except pa.ArrowInvalid:
        return None
    return other


def _read_through(file: FoundFile, columns: pa.Schema) -> pa.Schema:
    """The types in which a JSON file can be read.

    Refuse one with a field that only rows after the first block have: Arrow would leave it out silently.
    """
    expected = pa_json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="error")
    try:
        with file.system.open_input_stream(file.path) as stream:
            for _ in pa_json.open_json(stream, parse_options=expected):
                pass
    except pa.ArrowInvalid as error:
        if NOT_WHOLE in str(error):
            return pa.schema([each.with_type(with_decimals(each.type)) for each in columns])
        if "unexpected field" in str(error):
            raise InvalidInputError(
                f"{file.path!r} has a field that none of its first rows has: put a row with all fields, null where "
                "there is no value, at its beginning, or convert the file to Parquet"
            ) from None
    return columns


def _refuse_doubled(file: FoundFile, columns: pa.Schema) -> None:
    """Refuse a file with two columns of one name, of which none could be meant."""
    doubled = [name for name in columns.names if columns.names.count(name) > 1]
    if doubled:
        raise InvalidInputError(f"{file.path!r} has two columns {doubled[0]!r}: give one of them another name")


def _as_known(schemas: Sequence[pa.Schema], known: Mapping[str, pa.Field]) -> list[pa.Schema]:
    """Columns that are integers in the table, and numbers of several types in the files, as the table's.

    A type that all files have in common would be that of floats, which round large integers.
    """
    types: dict[str, set[pa.DataType]] = {}
    for own in schemas:
        for each in own:
            types.setdefault(each.name, set()).add(each.type)
    wanted = {
        name: known[name].type
        for name, kinds in types.items()
        if len(kinds) > 1 and name in known and pa.types.is_integer(known[name].type) and all(map(_is_number, kinds))
    }
    return [pa.schema([each.with_type(wanted.get(each.name, each.type)) for each in own]) for own in schemas]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _unified(files: Sequence[FoundFile], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of all files, each in a type that holds all values; one that some files lack can be NULL there."""
    unified = schemas[0]
    seen = {unified}
    for file, own in zip(files, schemas, strict=True):
        if own in seen:
            continue
        seen.add(own)
        try:
            unified = pa.unify_schemas([unified, own], promote_options="permissive")
        except pa.ArrowException as error:
            raise InvalidInputError(
                f"{file.path!r} does not fit the files before it: {error}: load it by itself, or correct its types"
            ) from None
    everywhere = set.intersection(*(set(own.names) for own in seen))
    fields = [each if each.name in everywhere else each.with_nullable(True) for each in unified]
    return pa.schema(fields, metadata=unified.metadata)


def _refuse_uneven(files: Sequence[FoundFile], columns: Sequence[set[str]]) -> None:
    every = set().union(*columns)
    for file, own in zip(files, columns, strict=True):
        if own != every:
            raise InvalidInputError(
                f"{file.path!r} has no column {min(every - own)!r}, which other files have, and NULL would replace "
                "what the table holds: write files of the same columns together"
            )


def _folder_columns(folders: Iterable[Mapping[str, str]], known: Mapping[str, pa.Field]) -> dict[str, pa.Field]:
    """The columns that folders name: of the type that is known, or else int32 or text as Hive's readers infer."""
    values: dict[str, set[str]] = {}
    for own in folders:
        for key, value in own.items():
            values.setdefault(key, set()).add(value)
    return {
        key: pa.field(key, _folder_type(known[key].type) if key in known else _inferred(texts))
        for key, texts in values.items()
    }


def _folder_type(type: pa.DataType) -> pa.DataType:
    return type.value_type if isinstance(type, pa.DictionaryType) else type


def _inferred(texts: set[str]) -> pa.DataType:
    given = texts - {_NULL_FOLDER}
    try:
        pa.array(sorted(given), pa.string()).cast(pa.int32())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.int32() if given else pa.string()


def _with_folders(columns: pa.Schema, named: Mapping[str, pa.Field]) -> pa.Schema:
    """The columns of the files and of folders; a column of both has the folder's value, if the types agree."""
    for key, own in named.items():
        at = columns.get_field_index(key)
        if at < 0:
            columns = columns.append(own)
        elif columns.field(at).type != own.type:
            raise InvalidInputError(
                f"column {key!r} is {columns.field(at).type} in the files and {own.type} in the names of folders: "
                "give the files by name to read their own column"
            )
        else:
            columns = columns.set(at, columns.field(at).with_nullable(True))
    return columns


def _values(file: FoundFile, keys: Mapping[str, str], named: Mapping[str, pa.Field]) -> dict[str, pa.Scalar]:
    """The values that a file's folders give to all its rows."""
    return {key: _value(file, named[key], text) for key, text in keys.items()}


def _value(file: FoundFile, column: pa.Field, text: str) -> pa.Scalar:
    if text == _NULL_FOLDER:
        return pa.scalar(None, column.type)
    try:
        return pa.scalar(text, pa.string()).cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"the folder {column.name}={text} of {file.path!r} does not fit column {column.name!r}: {error}"
        ) from None
