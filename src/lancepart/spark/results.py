"""What tasks on executors report, as JSON: who reads it makes nothing of it but the values that are listed here.

A client of Spark Connect gets reports from its server, and must not run what a server could put into a pickle.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit.leaf_changes import Staged
from lancepart.commit.write_job import StagedPartition, WriteResult
from lancepart.errors import InvalidInputError
from lancepart.maintain.fingerprint import Fingerprint
from lancepart.maintain.sweep import Found, Garbage, Removed
from lancepart.maintain.upgrade_copy import Copy, Piece
from lancepart.model.aliases import JsonMapping, Value
from lancepart.storage.fragment_json import Fragment, fragments_from_json, fragments_to_json
from lancepart.storage.leaf_data import Fragments

_CLASSES: dict[str, type[Value]] = {
    each.__name__: each
    for each in (
        Copy,
        Fingerprint,
        Found,
        Fragments,
        Garbage,
        Piece,
        Removed,
        Staged,
        StagedPartition,
        WriteResult,
    )
}
_NUMBERS = ("int64", "uint64")
_ONLY = "value"


def dumps(value: object) -> bytes:
    """A report as JSON.

    >>> loads(dumps((1, None, Fingerprint(2, 3))))
    (1, None, Fingerprint(rows=2, checksum=3))
    """
    return json.dumps(_spelled(value), separators=(",", ":")).encode()


def loads(report: bytes) -> Value:
    """A report from its JSON; what is none of ours is refused."""
    try:
        return _read(json.loads(report))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise InvalidInputError(f"what a task reports is not understood: {error}") from None


def _spelled(value: object) -> Value:
    """A value in JSON: plain ones as they are, all others as a list of their kind and what they consist of."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return ["tuple", *map(_spelled, value)]
        case Mapping():
            return ["map", *([_spelled(key), _spelled(each)] for key, each in value.items())]
        case pa.Schema():
            return ["schema", _text(value.serialize())]
        case pa.Table():
            return ["table", _text(_stream(value))]
        case pa.Scalar():
            return ["scalar", _text(_stream(pa.table({_ONLY: pa.array([value], value.type)})))]
        case np.ndarray() if value.dtype.name in _NUMBERS:
            return ["numbers", value.dtype.name, _text(value.tobytes())]
        case Fragment():
            return ["fragment", *fragments_to_json([value])]
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        own = {each.name: _spelled(getattr(value, each.name)) for each in fields(value)}
        return ["object", type(value).__name__, own]
    raise TypeError(f"a task can't report {type(value).__name__}")


def _read(given: Value) -> Value:
    if not isinstance(given, list):
        if isinstance(given, dict):
            raise ValueError("an object without its kind")
        return given
    kind, *rest = given
    return _READERS[kind](*rest)


def _object(name: str, given: JsonMapping) -> Value:
    kind = _CLASSES[name]
    if given.keys() != {each.name for each in fields(kind)}:
        raise ValueError(f"{name} with the fields {', '.join(given)}")
    return kind(**{key: _read(value) for key, value in given.items()})


def _numbers(kind: str, text: str) -> npt.NDArray[np.int64 | np.uint64]:
    if kind not in _NUMBERS:
        raise ValueError(f"numbers of the type {kind!r}")
    return np.frombuffer(_bytes(text), kind)


def _table(text: str) -> pa.Table:
    found = pa.ipc.open_stream(_bytes(text)).read_all()
    found.validate(full=True)
    return found


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _text(content: bytes | pa.Buffer) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_READERS: dict[str, Callable[..., Value]] = {
    "tuple": lambda *items: tuple(map(_read, items)),
    "map": lambda *pairs: {_read(key): _read(value) for key, value in pairs},
    "schema": lambda text: pa.ipc.read_schema(pa.py_buffer(_bytes(text))),
    "table": _table,
    "scalar": lambda text: _table(text).column(_ONLY)[0],
    "numbers": _numbers,
    "fragment": lambda *texts: fragments_from_json(texts)[0],
    "object": _object,
}
