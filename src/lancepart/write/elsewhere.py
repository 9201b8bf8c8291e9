"""Data that other engines hold and write themselves, found by name only when it is met."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import RowSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AUTO, NONE, HASH = "auto", "none", "hash"


def is_spark(data: RowSource) -> TypeGuard[DataFrame]:
    """Whether data is a Spark DataFrame, of either kind."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def spark_frames() -> ModuleType:
    """How Spark's executors write: imported here by name, so that writing depends neither on Spark nor on its room."""
    return import_module("lancepart.spark.frames")


def check_distribution(distribution: str) -> None:
    """Refuse a distribution that there is not, whatever data it is given for."""
    if distribution not in (AUTO, NONE, HASH):
        raise InvalidInputError(f"distribution is {distribution!r}: use {AUTO!r}, {NONE!r} or {HASH!r}")
