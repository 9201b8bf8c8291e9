"""Values as JSON, of which only listed kinds are made again: what may have travelled is never unpickled."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping, Value
from lancepart.storage.fragment_json import Fragment, fragments_from_json, fragments_to_json

_NUMBERS = ("int64", "uint64")
_ONLY = "value"


class ValueJson:
    """The JSON of plain values, of Arrow and Lance, and of some dataclasses; ``what`` is named in errors."""

    def __init__(self, classes: Iterable[type[Value]], *, what: str) -> None:
        self._classes = {each.__name__: each for each in classes}
        self._what = what
        self._readers: dict[str, Callable[..., Value]] = {
            "tuple": lambda *items: tuple(map(self._read, items)),
            "map": lambda *pairs: {self._read(key): self._read(value) for key, value in pairs},
            "bytes": _bytes,
            "schema": lambda text: pa.ipc.read_schema(pa.py_buffer(_bytes(text))),
            "table": _table,
            "scalar": lambda text: _table(text).column(_ONLY)[0],
            "numbers": _numbers,
            "fragment": lambda *texts: fragments_from_json(texts)[0],
            "object": self._object,
        }

    def dumps(self, value: object) -> bytes:
        """A value as JSON."""
        return json.dumps(self._spelled(value), separators=(",", ":")).encode()

    def loads(self, text: bytes) -> Value:
        """A value from its JSON; anything else is refused."""
        try:
            return self._read(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
            raise InvalidInputError(f"{self._what} is not understood: {error}") from None

    def _spelled(self, value: object) -> Value:
        """A value in JSON: plain ones as they are, all others as a list of their kind and what they consist of."""
        match value:
            case None | bool() | int() | float() | str():
                return value
            case bytes():
                return ["bytes", _text(value)]
            case tuple():
                return ["tuple", *map(self._spelled, value)]
            case Mapping():
                return ["map", *([self._spelled(key), self._spelled(each)] for key, each in value.items())]
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
        if is_dataclass(value) and type(value).__name__ in self._classes:
            own = {each.name: self._spelled(getattr(value, each.name)) for each in fields(value)}
            return ["object", type(value).__name__, own]
        raise TypeError(f"{self._what} can't hold {type(value).__name__}")

    def _read(self, given: Value) -> Value:
        if not isinstance(given, list):
            if isinstance(given, dict):
                raise ValueError("an object without its kind")
            return given
        kind, *rest = given
        return self._readers[kind](*rest)

    def _object(self, name: str, given: JsonMapping) -> Value:
        kind = self._classes[name]
        if given.keys() != {each.name for each in fields(kind)}:
            raise ValueError(f"{name} with the fields {', '.join(given)}")
        return kind(**{key: self._read(value) for key, value in given.items()})


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
