"""The messages between the jar and the planning service, each defined once; ``Protocol.java`` has the same ones.

A message is a JSON object with its ``kind``; its content is in its ``body``, of the types of its operation. Golden
files in ``tests/golden/protocol`` are read and written again by both sides.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping, JsonObject

T = TypeVar("T")

VERSION = 3
"""Changes whenever a message of one side would mean something else, or nothing, to the other."""


class Message:
    """What has a form in JSON: objects with exactly the fields of a class, of their types."""

    __slots__ = ()

    def to_json(self) -> JsonObject:
        """The fields by their names; those that are ``None`` are left out."""
        names = [each.name for each in dataclasses.fields(self)]  # type: ignore[arg-type]
        found = {name: _dumped(getattr(self, name)) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def from_json(cls: type[T], value: object, what: str) -> T:
    """An object of a class from its JSON, or an error that names the first field that is wrong."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{what} is not an object")
    hints, fields = _hints(cls), {each.name: each for each in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in value:
        if name not in fields:
            raise InvalidInputError(f"{what} has no field {name!r}")
    given = {}
    for name, each in fields.items():
        if name in value:
            given[name] = _parsed(hints[name], value[name], f"{what}.{name}")
        elif each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            raise InvalidInputError(f"{what} lacks the field {name!r}")
    return cls(**given)


@cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls)


def _parsed(kind: Any, value: Any, what: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kept = [each for each in inner if each is not type(None)]
        return None if value is None and len(kept) < len(inner) else _parsed(kept[0], value, what)
    if origin is tuple and isinstance(value, list):
        return tuple(_parsed(inner[0], each, f"{what}[{at}]") for at, each in enumerate(value))
    if origin is Mapping or origin is dict:
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: _parsed(inner[1], each, f"{what}.{key}") for key, each in value.items()}
    elif kind is Any or kind is object:
        return value
    elif kind is bytes and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            pass
    elif isinstance(kind, type) and issubclass(kind, Message):
        return from_json(kind, value, what)
    elif origin is None and type(value) is kind:
        return value
    raise InvalidInputError(f"{what} does not have the expected type")


def _dumped(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: _dumped(each) for key, each in value.items()}
    return [_dumped(each) for each in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Message):
    """The first message of the service: which protocol it speaks."""

    kind: ClassVar[str] = "hello"
    protocol: int
    lancepart: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Message):
    """An operation on a table or a catalog that the options name; they may hold credentials and are never shown."""

    kind: ClassVar[str] = "request"
    id: int
    op: str
    body: JsonMapping = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Message):
    """Ask a running request to stop at its next step."""

    kind: ClassVar[str] = "cancel"
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Message):
    """What a request found or did."""

    kind: ClassVar[str] = "reply"
    id: int
    body: JsonMapping = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Message):
    """Why a request failed: the class and the code of an error of ``lancepart.errors``, and its text."""

    kind: ClassVar[str] = "failure"
    id: int
    error: str
    code: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Message):
    """How far a running request is."""

    kind: ClassVar[str] = "progress"
    id: int
    what: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Message):
    """A warning for the user, which Spark's log shows."""

    kind: ClassVar[str] = "warning"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Message):
    """Pieces of a request's work for Spark's tasks: a function, and its argument for each task."""

    kind: ClassVar[str] = "work"
    id: int
    what: str
    function: bytes
    tasks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked(Message):
    """What came of the work of a request: a result of each task, or why there is none."""

    kind: ClassVar[str] = "worked"
    id: int
    results: tuple[bytes, ...] = ()
    error: str | None = None


Envelope = Hello | Request | Cancel | Reply | Failure | Progress | Warned | Work | Worked
KINDS: Mapping[str, type[Envelope]] = {
    each.kind: each for each in (Hello, Request, Cancel, Reply, Failure, Progress, Warned, Work, Worked)
}


def dump(message: Envelope) -> JsonObject:
    """A message with its kind."""
    return {"kind": message.kind, **message.to_json()}


def parse(value: object) -> Envelope:
    """A message of whichever kind it says it is.

    >>> parse({"kind": "cancel", "id": 7})
    Cancel(id=7)
    >>> parse({"kind": "cancel"})
    Traceback (most recent call last):
    ...
    lance_namespace.errors.InvalidInputError: message cancel lacks the field 'id'
    """
    given = dict(value) if isinstance(value, Mapping) else {}
    kind = given.pop("kind", None)
    if kind not in KINDS:
        raise InvalidInputError(f"there is no message {kind!r}: use the jar inside lancepart")
    return from_json(KINDS[kind], given, f"message {kind}")
