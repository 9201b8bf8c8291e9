"""Partition functions in filters: ``year(ts)``, ``bucket(16, id)`` and their like, each as a column of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion import ScalarUDF, SessionContext, udf

from lancepart.errors import InvalidInputError
from lancepart.model.functions import expression_type
from lancepart.model.quoting import quote_identifier
from lancepart.model.sql_text import arguments, closing, tokens
from lancepart.model.transforms import TRANSFORMS, Transform

FUNCTION_NAMES = tuple(name for name, kind in TRANSFORMS.items() if kind.is_function)
_CALL = re.compile(rf"\b({'|'.join(FUNCTION_NAMES)})\s*\(", re.IGNORECASE)
_ALIAS = re.compile(rf"partition_({'|'.join(FUNCTION_NAMES)})_(\d+)_[0-9a-f]{{32}}")
_BOUND = re.compile(rf"{_ALIAS.pattern}\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A partition function of columns, which a filter compares as if it were a column."""

    transform: Transform
    columns: tuple[str, ...]

    def to_sql(self, names: Mapping[str, str]) -> str:
        """The call, with the columns under other names where they have such."""
        return self.transform.call([quote_identifier(names.get(column, column)) for column in self.columns])

    def value_type(self, types: Mapping[str, pa.DataType]) -> pa.DataType:
        """The type of its values, given those of the columns."""
        return self.transform.result_type([types[column] for column in self.columns])


def has_terms(sql: str) -> bool:
    """Whether SQL may call a partition function."""
    return _CALL.search(sql) is not None


def bind_terms(ctx: SessionContext, sql: str, schema: pa.Schema) -> str:
    """The same SQL over ``schema``, each partition function renamed to one registered for its arguments' types."""
    if not has_terms(sql):
        return sql
    found = tokens(sql)
    pieces, position, index = [], 0, 0
    while index + 1 < len(found):
        token = found[index]
        if token.kind == "word" and token.name in FUNCTION_NAMES and found[index + 1].text == "(":
            end = closing(found, index + 1)
            spans = arguments(found, index + 1, end)
            inner = [bind_terms(ctx, sql[start:stop], schema) for start, stop in spans]
            pieces += [sql[position : token.start], _bound(ctx, str(token.name), inner, schema)]
            position, index = found[end].end, end
        index += 1
    return "".join([*pieces, sql[position:]])


def bound_function(transform: Transform, types: Sequence[pa.DataType]) -> tuple[str, ScalarUDF]:
    """The function that computes a transform of values of these types, and its name."""
    kinds = [transform.null_type if pa.types.is_null(kind) else kind for kind in types]
    transform.check(kinds)
    digest = hashlib.md5(repr(kinds).encode(), usedforsecurity=False).hexdigest()
    number = transform.parameters[0] if transform.parameters else 0
    alias = f"partition_{transform.name}_{number}_{digest}"
    return alias, _function(transform, alias, kinds)


def spelled(text: str) -> str:
    """A text of DataFusion's with partition functions as users write them.

    >>> spelled("max(partition_bucket_16_0123456789abcdef0123456789abcdef(t.id))")
    'max(bucket(16, t.id))'
    """
    return _BOUND.sub(lambda found: f"{found[1]}({'' if found[2] == '0' else f'{found[2]}, '}", text)


def bound_transform(alias: str) -> Transform | None:
    """The transform that a function registered by ``bind_terms`` computes; None for any other function."""
    found = _ALIAS.fullmatch(alias)
    return None if found is None else transform_of(found[1], int(found[2]))


def transform_of(name: str, size: int) -> Transform:
    """A transform by its name, with its number if it takes one."""
    kind: Callable[..., Transform] = TRANSFORMS[name]
    return kind(size) if TRANSFORMS[name].takes_number() else kind()


def _bound(ctx: SessionContext, name: str, inner: Sequence[str], schema: pa.Schema) -> str:
    size, place = split_size(name, inner)
    sources = inner if place is None else inner[1:] if place == 0 else inner[:-1]
    alias, function = bound_function(
        transform_of(name, size), [expression_type(ctx, source, schema) for source in sources]
    )
    ctx.register_udf(function)
    return f"{alias}({', '.join(sources)})"


def split_size(name: str, inner: Sequence[str]) -> tuple[int, int | None]:
    """The number that a function takes from either end of its arguments, and at which; None if it takes none."""
    kind = TRANSFORMS[name]
    if not kind.takes_number():
        return 0, None
    for position in (0, -1):
        if len(inner) > 1 and inner[position].isascii() and inner[position].isdigit():
            return int(inner[position]), position
    raise InvalidInputError(f"{name} takes a whole number and {'columns' if kind.takes_many else 'a column'}")


def _function(transform: Transform, alias: str, types: Sequence[pa.DataType]) -> ScalarUDF:
    kind = transform.result_type(types)

    def compute(*arrays: pa.Array) -> pa.Array:
        values = transform.apply(arrays)
        return values if values.type == kind else values.cast(kind)

    return udf(compute, list(types), kind, "immutable", name=alias)
