"""Partitioned tables on Spark: a session with everything set, and the data source ``lancepart``."""

from lancepart.spark.session import configure, session

__all__ = ["configure", "session"]
