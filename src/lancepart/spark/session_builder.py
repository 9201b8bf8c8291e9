"""A Spark session with all settings that partitioned tables need."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING

from lancepart.errors import UnsupportedOperationError
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.spark import cancelling, started
from lancepart.storage.root import Root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CATALOG = "spark.sql.catalog.lancepart"
WAREHOUSE = "spark.sql.catalog.lance"
_JARS, _EXTENSIONS = _SHARED = ("spark.jars", "spark.sql.extensions")
_EXTENSION = "io.lancepart.spark.Extensions"
_DAEMON = "spark.python.daemon.module"
_REDACTED = "spark.sql.redaction.string.regex"
_STORAGE_OPTIONS = r"(?is)storage\.[^=\s]+=.*?(?=, [\w.]+=|\]|$)"
"""Spark's plans of writes that make a table show the options that they were given."""
_BUCKETING = "spark.sql.sources.v2.bucketing"
_SQL = {
    CATALOG: "io.lancepart.spark.PathCatalog",
    f"{_BUCKETING}.enabled": "true",
    f"{_BUCKETING}.pushPartValues.enabled": "true",
    f"{_BUCKETING}.allowCompatibleTransforms.enabled": "true",
    f"{_BUCKETING}.allowJoinKeysSubsetOfPartitionKeys.enabled": "true",
    f"{_BUCKETING}.partiallyClusteredDistribution.enabled": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.timeType.enabled": "true",
}


def session(master: str | None, *, warehouse: str | None, **conf: object) -> SparkSession:
    """A Spark session that reads partitioned tables."""
    builder = _with(_pyspark().SparkSession.builder, conf)
    chosen = master or _default_master(builder)
    builder = configure(builder if chosen is None else builder.master(chosen), warehouse=warehouse)
    builder = _with(builder, {key: value for key, value in conf.items() if key not in _SHARED})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
        made = builder.getOrCreate()
    cancelling.cancel_on_interrupt()
    return made


def configure(builder: SparkSession.Builder, *, warehouse: str | None) -> SparkSession.Builder:
    """Set on a session's builder what partitioned tables need."""
    sql = _SQL | ({} if warehouse is None else _catalog(warehouse))
    sql |= {} if _REDACTED in _options(builder) else {_REDACTED: _STORAGE_OPTIONS}
    if _is_remote(builder):
        return _with(builder, sql)
    given = started.prepare(jar(), _EXTENSION)
    shared = {
        _JARS: _beside(builder, given, _JARS, jar()),
        _EXTENSIONS: _beside(builder, given, _EXTENSIONS, _EXTENSION),
    }
    chosen = {**given, **_options(builder)}
    own = {key: value for key, value in _workers().items() if key not in chosen}
    return _with(builder, sql | own | shared)


def _default_master(builder: SparkSession.Builder) -> str | None:
    """The master that the environment names, where nothing else does."""
    taken = _options(builder).get("spark.master") or _is_remote(builder) or started.is_started()
    return None if taken else os.environ.get("SPARK_MASTER")


def _catalog(warehouse: str) -> dict[str, str]:
    """The catalog ``lance`` over the tables of a warehouse."""
    return {WAREHOUSE: "io.lancepart.spark.LanceCatalog", f"{WAREHOUSE}.warehouse": Root.parse(warehouse).uri}


def jar() -> str:
    """The jar that Spark needs on the driver and the executors."""
    path = files("lancepart.spark").joinpath("jars", "lancepart-spark.jar")
    if not path.is_file():
        raise UnsupportedOperationError(
            "this installation of lancepart has no jar for Spark: it was built with LANCEPART_JAR=0, or without a JDK; "
            "install a wheel that has it or, in a checkout, run make setup"
        )
    return str(path)


def _workers() -> dict[str, str]:
    """The workers' Python, the one that the user chose or the one that runs here, and how they are started."""
    python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return {
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.unix.domain.socket.enabled": "true",
        _DAEMON: "pyspark_lancepart.daemon",
    }


def _with(builder: SparkSession.Builder, settings: JsonMapping) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _beside(builder: SparkSession.Builder, given: Mapping[str, str], key: str, own: str) -> str:
    """Our own part of a setting, after what the builder or ``spark-submit`` has there already."""
    found = str(_options(builder).get(key) or given.get(key) or "").split(",")
    return ",".join([*(each for each in found if each not in {"", own}), own])


def _options(builder: SparkSession.Builder) -> JsonObject:
    return dict(getattr(builder, "_options", {}))


def _is_remote(builder: SparkSession.Builder) -> bool:
    url = _options(builder).get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return str(url).startswith("sc://")


def _pyspark() -> ModuleType:
    try:
        import pyspark.sql
    except ImportError as error:
        raise UnsupportedOperationError(
            f"lancepart.spark needs pyspark and pandas: pip install 'pyspark>=4.1,<5' pandas ({error})"
        ) from error
    return pyspark.sql
