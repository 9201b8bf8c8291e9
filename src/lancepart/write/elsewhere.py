"""Data that other engines hold and write themselves, found by name only when it is met."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


def is_spark(data: Any) -> bool:
    """Whether data is a Spark DataFrame, of either kind."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def spark_frames() -> ModuleType:
    """How Spark's executors write: imported here by name, so that writing depends neither on Spark nor on its room."""
    return import_module("lancepart.spark.frames")
