"""Spark DataFrames as data: whether it is one, and how its rows may be spread over tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import RowSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AUTO, NONE, HASH = "auto", "none", "hash"


def is_spark(data: RowSource) -> TypeGuard[DataFrame]:
    """Whether data is a Spark DataFrame, of either kind."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def check_distribution(distribution: str) -> None:
    """Refuse a distribution that there is not, whatever data it is given for."""
    if distribution not in (AUTO, NONE, HASH):
        raise InvalidInputError(f"distribution is {distribution!r}: use {AUTO!r}, {NONE!r} or {HASH!r}")
