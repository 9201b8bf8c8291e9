"""Where Spark looks for Python data sources of its own accord: ``format("lancepart")`` needs no registration."""

from lancepart.spark.source import LancepartSource as DefaultSource

__all__ = ["DefaultSource"]
