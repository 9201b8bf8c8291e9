"""Parameters of filters and queries: ``$name`` is replaced by a value, always as a literal and never as SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

import numpy as np
import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import Value
from lancepart.model.quoting import quote_literal

_PIECE = re.compile(
    r"""(?P<kept>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/)|\$(?P<name>\w+)""", re.DOTALL
)
_COMMENT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_OPENED, _CLOSED = re.compile(r"\bin\s*\(\s*\Z", re.IGNORECASE), re.compile(r"\s*\)")
"""What stands around a list that has its parentheses already."""

Parameters = Mapping[str, Value]


def with_values(sql: str, params: Parameters | None) -> str:
    """The same SQL with the values of its parameters.

    >>> with_values("name = $name AND id IN $ids OR n IN ($ids)", {"name": "it's", "ids": [1, 2]})
    "name = 'it''s' AND id IN (1, 2) OR n IN (1, 2)"
    """
    return with_all_values([sql], params)[0]


def with_all_values(texts: Sequence[str], params: Parameters | None) -> list[str]:
    """Several pieces of SQL with the values of their parameters, each of which must be in one of them.

    A negative number gets parentheses: two minus signs would begin a comment.

    >>> with_all_values(["n -$step", "id = $id"], {"step": -2, "id": 7})
    ['n -(-2)', 'id = 7']
    """
    if params is None:
        return list(texts)
    if not isinstance(params, Mapping):
        raise InvalidInputError(f"params is a {type(params).__name__}: give a dict of values by name")
    used: set[str] = set()

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0]
        if name not in params:
            raise InvalidInputError(f"there is no value for ${name}: params has {', '.join(params) or 'none'}")
        used.add(name)
        literal = _literal(name, params[name])
        literal = f"({literal})" if literal.startswith("-") else literal
        listed = _is_list(params[name]) and _OPENED.search(found.string, 0, found.start())
        return literal[1:-1] if listed and _CLOSED.match(found.string, found.end()) else literal

    for text in texts:
        if not isinstance(text, str):
            raise InvalidInputError(f"params are for SQL in a string, and {text!r} is none")
    found = [_PIECE.sub(value, text) for text in texts]
    unused = [name for name in params if name not in used]
    if unused:
        raise InvalidInputError(f"params has {unused[0]!r}, and no ${unused[0]} is there")
    return found


def with_filter_values(where: str | None, params: Parameters | None) -> str | None:
    """A filter with the values of its parameters; without one there can be none."""
    if where is None and params:
        raise InvalidInputError(f"params has {next(iter(params))!r}, and there is no filter")
    return None if where is None else with_values(where, params)


def with_update_values(
    values: Mapping[str, str], where: str | None, params: Parameters | None
) -> tuple[Mapping[str, str], str | None]:
    """The expressions of an update, and its filter, with the values of their parameters."""
    if params is None:
        return values, where
    texts = with_all_values([*values.values(), *([] if where is None else [where])], params)
    return dict(zip(values, texts, strict=False)), None if where is None else texts[-1]


def without_comments(sql: str) -> str:
    """SQL with a space for each comment.

    >>> without_comments("SELECT '--x' -- y")
    "SELECT '--x'  "
    """
    return _COMMENT.sub(lambda found: found[1] or " ", sql)


def _is_list(value: Value) -> bool:
    """Whether a value stands for several: a list, a set, an array of Arrow or NumPy, a column of a frame."""
    if isinstance(value, str | bytes | bytearray | pa.Scalar):
        return False
    return isinstance(value, Sequence | Set | pa.Array | pa.ChunkedArray) or len(getattr(value, "shape", ())) == 1


def _scalar(value: Value) -> pa.Scalar:
    """A value as Arrow has it; of NumPy's dates only an array is understood, and pandas has words for NULL."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return pa.scalar(None)
    if isinstance(value, np.generic):
        return pa.array(np.array([value]))[0]
    return value if isinstance(value, pa.Scalar) else pa.scalar(value)


def _literal(name: str, value: Value) -> str:
    if _is_list(value):
        if not len(value):
            raise InvalidInputError(f"${name} is an empty list, which IN can't have")
        return f"({', '.join(_literal(name, item) for item in value)})"
    try:
        return quote_literal(_scalar(value))
    except OverflowError:
        raise InvalidInputError(
            f"${name} is {value!r}, which is too large for a whole number of 64 bits: give a decimal.Decimal"
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(f"${name} is {value!r}, which has no SQL: {error}") from None
