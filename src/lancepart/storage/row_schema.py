"""Files of one kind as one dataset: the columns of all of them, and those that key=value folders name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_READERS = 8
_FIRST_BYTES = 1_024


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


def dataset_of(
    files: Sequence[FoundFile], *, kind: str, schema: pa.Schema | None, same_columns: bool = False
) -> ds.Dataset:
    """Files as one dataset with the columns of all; a schema types text, JSON and folders where it has their names."""
    formats = [_file_format(kind, file.path, schema) for file in files]
    known = {each.name: each for each in schema or ()}
    with ThreadPoolExecutor(max_workers=min(_READERS, len(files))) as readers:
        physical = list(readers.map(_inspected, files, formats))
    if kind == "json":
        physical = [pa.schema([known.get(each.name, each) for each in own]) for own in physical]
        for file, own in zip(files, physical, strict=True):
            _refuse_late_fields(file, own)
    folders = [file.folders() for file in files]
    named = _folder_columns(folders, known)
    if same_columns:
        _refuse_uneven(files, [{*own.names, *keys} for own, keys in zip(physical, folders, strict=True)])
    columns = _with_folders(_unified(files, physical), named)
    fragments = [
        format.make_fragment(file.path, file.system, partition_expression=_constants(file, keys, named))
        for file, format, keys in zip(files, formats, folders, strict=True)
    ]
    return ds.FileSystemDataset(fragments, columns, formats[0], files[0].system)


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
    types = None if schema is None else {each.name: each.type for each in schema if not pa.types.is_nested(each.type)}
    return ds.CsvFileFormat(
        parse_options=pa_csv.ParseOptions(delimiter="\t" if extension(path) == ".tsv" else ","),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _inspected(file: FoundFile, format: ds.FileFormat) -> pa.Schema:
    """The columns of one file, of which nothing else is kept."""
    try:
        return format.inspect(file.path, file.system)
    except pa.ArrowInvalid as error:
        kind, hint = format.default_extname, _hint(file, format)
        raise InvalidInputError(
            f"{file.path!r} can't be read as {kind}: {hint or f'{error}: correct the file'}"
        ) from None


def _hint(file: FoundFile, format: ds.FileFormat) -> str | None:
    """What a file holds, if it is of a form that is close to the one expected."""
    with file.system.open_input_stream(file.path) as stream:
        if isinstance(format, ds.JsonFileFormat) and stream.read(_FIRST_BYTES).lstrip().startswith(b"["):
            return "it is one JSON array: write an object a line, or read it with json.load and give the list"
        try:
            is_stream = isinstance(format, ds.IpcFileFormat) and pa.ipc.open_stream(stream) is not None
        except pa.ArrowException:
            return None
    return f"it is an Arrow stream: give pyarrow.ipc.open_stream({file.path!r})" if is_stream else None


def _refuse_late_fields(file: FoundFile, columns: pa.Schema) -> None:
    """Refuse JSON with a field that only rows after the first block have: Arrow would leave it out silently."""
    expected = pa_json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="error")
    try:
        with file.system.open_input_stream(file.path) as stream:
            for _ in pa_json.open_json(stream, parse_options=expected):
                pass
    except pa.ArrowInvalid as error:
        if "unexpected field" in str(error):
            raise InvalidInputError(
                f"{file.path!r} has a field that none of its first rows has: put a row with all fields, null where "
                "there is no value, at its beginning, or convert the file to Parquet"
            ) from None


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


def _constants(file: FoundFile, keys: Mapping[str, str], named: Mapping[str, pa.Field]) -> ds.Expression | None:
    """The values that a file's folders give to all its rows."""
    return reduce(and_, [_constant(file, named[key], text) for key, text in keys.items()]) if keys else None


def _constant(file: FoundFile, column: pa.Field, text: str) -> ds.Expression:
    if text == _NULL_FOLDER:
        return ds.field(column.name).is_null()
    try:
        value = pa.scalar(text, pa.string()).cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"the folder {column.name}={text} of {file.path!r} does not fit column {column.name!r}: {error}"
        ) from None
    return ds.field(column.name) == value
