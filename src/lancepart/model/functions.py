"""The hash functions as DataFusion UDFs; these have fixed types, so one is registered for each use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import pyarrow as pa
from datafusion import ScalarUDF, SessionContext, udf

from lancepart.errors import InvalidInputError
from lancepart.model import hashing
from lancepart.model.sql_text import Token, arguments, closing, tokens

FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "murmur3": lambda array: hashing.murmur3(array).cast(pa.int64()),
    "murmur3_multi": lambda *arrays: hashing.murmur3_multi(arrays).cast(pa.int64()),
    "md5_int": hashing.md5_int,
}
_SAFE_ABS = "safe_abs"
_BOUND = FUNCTIONS | {_SAFE_ABS: hashing.safe_abs}


def register_functions(ctx: SessionContext, source_types: Sequence[pa.DataType] = ()) -> None:
    """Register ``murmur3``, ``murmur3_multi`` and ``md5_int`` in a DataFusion context, for columns of these types.

    A hash comes as int64, so that DataFusion's own ``abs`` survives the smallest int32. Where one query needs
    several types, ``bind_functions`` registers what each call needs.

    >>> from datafusion import SessionContext
    >>> ctx = SessionContext()
    >>> register_functions(ctx, [pa.int64()])
    >>> ctx.sql("SELECT abs(murmur3(6018035362574630912)) % 16 AS b").to_pydict()
    {'b': [0]}
    """
    types = list(source_types) or [pa.int64()]
    for name in FUNCTIONS:
        ctx.register_udf(_function(name, name, types if name == "murmur3_multi" else types[:1]))


def bind_functions(ctx: SessionContext, sql: str, schema: pa.Schema) -> str:
    """The same SQL over ``schema``, each hash call renamed to a function registered for just its arguments' types.

    ``abs`` right around a hash becomes one that the smallest number does not break.
    """
    found = tokens(sql)
    pieces, position, index = [], 0, 0
    while index < len(found):
        token = found[index]
        name = _called(found, index)
        if name is not None:
            end = closing(found, index + 1)
            spans = arguments(found, index + 1, end)
            inner = [bind_functions(ctx, sql[start:stop], schema) for start, stop in spans]
            pieces += [sql[position : token.start], _bound_call(ctx, name, inner, schema)]
            position, index = found[end].end, end
        index += 1
    return "".join([*pieces, sql[position:]])


def _called(found: Sequence[Token], index: int) -> str | None:
    """The function to bind that is called at a place, if any."""
    names = [token.name for token in found[index : index + 3 : 2]]
    if index + 1 >= len(found) or found[index + 1].text != "(":
        return None
    if names[0] in FUNCTIONS:
        return names[0]
    around = len(names) == 2 and names[1] in FUNCTIONS and _called(found, index + 2) is not None
    whole = around and closing(found, index + 3) == closing(found, index + 1) - 1
    return _SAFE_ABS if names[0] == "abs" and whole else None


def expression_type(ctx: SessionContext, sql: str, schema: pa.Schema) -> pa.DataType:
    """The type that DataFusion gives an expression over ``schema``."""
    frame = ctx.read_batch(pa.RecordBatch.from_pylist([], schema=schema))
    return frame.select(frame.parse_sql_expr(sql).alias("value")).schema().field(0).type


def _bound_call(ctx: SessionContext, name: str, inner: Sequence[str], schema: pa.Schema) -> str:
    if not inner or (name != "murmur3_multi" and len(inner) != 1):
        wanted = "at least one argument" if name == "murmur3_multi" else "exactly one argument"
        raise InvalidInputError(f"{name} takes {wanted}, not {len(inner)}")
    types = [expression_type(ctx, argument, schema) for argument in inner]
    types = [pa.int64() if pa.types.is_null(kind) else kind for kind in types]
    for kind in types:
        if not hashing.hashable(kind):
            raise InvalidInputError(f"{name} is not defined for values of type {kind}")
    digest = hashlib.md5(repr(types).encode(), usedforsecurity=False).hexdigest()
    alias = f"{name}_{digest}"
    ctx.register_udf(_function(name, alias, types))
    return f"{alias}({', '.join(inner)})"


def _function(name: str, alias: str, types: Sequence[pa.DataType]) -> ScalarUDF:
    return udf(_BOUND[name], list(types), pa.int64(), "immutable", name=alias)
