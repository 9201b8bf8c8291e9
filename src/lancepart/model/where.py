"""A filter as callers give it: SQL with parameters, a pyarrow expression, or a Polars expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, Union, overload

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.arrow_filter import translated
from lancepart.model.parameters import Parameters, with_filter_values, with_update_values, with_values
from lancepart.model.polars_filter import from_polars

if TYPE_CHECKING:
    import polars as pl

Condition: TypeAlias = Union[str, pc.Expression, "pl.Expr"]
"""A filter."""

Where: TypeAlias = Condition | None
"""A filter, or none."""


@overload
def text_of(where: Condition, schema: Callable[[], pa.Schema], params: Parameters | None = None) -> str: ...
@overload
def text_of(where: Where, schema: Callable[[], pa.Schema], params: Parameters | None = None) -> str | None: ...
def text_of(where: Where, schema: Callable[[], pa.Schema], params: Parameters | None = None) -> str | None:
    """A filter as SQL; the schema is only loaded if it is an expression of pyarrow or Polars."""
    if where is None or isinstance(where, str):
        return with_filter_values(where, params)
    return as_sql(where, schema(), params)


def update_texts(
    values: Mapping[str, str], where: Where, schema: Callable[[], pa.Schema], params: Parameters | None
) -> tuple[Mapping[str, str], str | None]:
    """The expressions and the filter of an update as SQL, with the values of their parameters."""
    if where is None or isinstance(where, str):
        return with_update_values(values, where, params)
    return with_update_values(values, None, params)[0], as_sql(where, schema())


def as_sql(where: Where, schema: pa.Schema, params: Parameters | None = None) -> str | None:
    """A filter as SQL; SQL's own meaning of NULL and NaN decides, whatever it was written as.

    >>> as_sql(pc.field("n") > 5, pa.schema([("n", pa.int64())]))
    '(`n` > 5)'
    """
    if isinstance(where, str):
        return with_values(where, params)
    if where is None:
        return with_filter_values(where, params)
    if params is not None:
        raise InvalidInputError("params are for filters in SQL, and this one is an expression: put the values into it")
    if isinstance(where, pc.Expression):
        found = translated(where, schema, trusting=True)
        if found.sql is None or found.unknown is not None:
            raise InvalidInputError(f"the pyarrow filter {where} has no SQL ({found.unknown}): write it as SQL")
        return found.sql
    if type(where).__module__.startswith("polars."):
        return from_polars(where, schema)
    raise InvalidInputError(f"the filter is {where!r}: give SQL in a string, or an expression of pyarrow or Polars")
