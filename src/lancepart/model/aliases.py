"""Type aliases for values without a type of their own: JSON, and values of columns as Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON that was just read or is about to be written."""

JsonMapping: TypeAlias = Mapping[str, Any]
"""The same where it is only read."""

Value: TypeAlias = Any
"""A value of a column as Python holds it: a number, a text, a date, a list, None."""

RowSource: TypeAlias = object
"""Rows that a user gives: anything with Arrow inside, a list of dicts, a frame of pandas, polars or Spark."""


class JsonModel(Protocol):
    """A model of ``lance_namespace``, which can spell itself as a dict."""

    def to_dict(self) -> JsonObject:
        """The model as a JSON object."""


RawExpr: TypeAlias = Any
"""A node of a parsed expression as DataFusion's own library holds it, which has no types."""
