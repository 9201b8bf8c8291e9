"""Names of tables and namespaces as texts: parts with dots between them, in back-ticks where one holds a dot itself."""

from __future__ import annotations

from collections.abc import Sequence

from lancepart.errors import InvalidInputError

_QUOTE = "`"


def joined(path: Sequence[str]) -> str:
    """The name of a path, which ``parts_of`` reads again.

    >>> joined(["sales", "events"]), joined(["a.b", "c"])
    ('sales.events', '`a.b`.c')
    """
    return ".".join(_quoted(part) if "." in part or part.startswith(_QUOTE) else part for part in path)


def parts_of(name: str) -> tuple[str, ...]:
    """The path that a name stands for; a back-tick within back-ticks is written twice.

    >>> parts_of("sales.events"), parts_of("`a.b`.c"), parts_of("")
    (('sales', 'events'), ('a.b', 'c'), ())
    """
    parts: list[str] = []
    rest = name
    while rest:
        part, rest = _quoted_part(name, rest[1:]) if rest.startswith(_QUOTE) else _plain_part(rest)
        if not part:
            raise InvalidInputError(f"{name!r} holds an empty name: write namespace.table")
        parts.append(part)
        if rest == ".":
            raise InvalidInputError(f"{name!r} holds an empty name: write namespace.table")
        rest = rest[1:]
    return tuple(parts)


def _quoted(part: str) -> str:
    return f"{_QUOTE}{part.replace(_QUOTE, _QUOTE * 2)}{_QUOTE}"


def _plain_part(rest: str) -> tuple[str, str]:
    part, dot, behind = rest.partition(".")
    return part, dot + behind


def _quoted_part(name: str, rest: str) -> tuple[str, str]:
    part = ""
    while True:
        piece, closed, rest = rest.partition(_QUOTE)
        part += piece
        if not closed or (rest and not rest.startswith((".", _QUOTE))):
            raise InvalidInputError(f"{name!r}: a back-tick is not closed; write `a.b`.c for a name that holds a dot")
        if not rest.startswith(_QUOTE):
            return part, rest
        part, rest = part + _QUOTE, rest[1:]
