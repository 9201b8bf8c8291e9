"""A filter as callers give it: SQL with parameters, a pyarrow expression, or a Polars expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.arrow_filter import translated
from lancepart.model.parameters import Parameters, with_filter_values, with_values
from lancepart.model.polars_filter import from_polars

if TYPE_CHECKING:
    import polars as pl

Where: TypeAlias = Union[str, pc.Expression, "pl.Expr", None]
"""A filter, or none."""


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
