"""The same plans run by engines that stand to the right of this room, found by name only when they are asked for."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def spark_tasks() -> ModuleType:
    """Scans and joins on Spark: imported here by name, so that reading depends neither on Spark nor on its room."""
    return import_module("lancepart.spark.tasks")
