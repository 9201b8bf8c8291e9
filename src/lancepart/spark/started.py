"""A Spark that runs already, as under ``spark-submit``: what it was started with, and the jar brought to it.

A client of a Spark Connect server has no JVM, and does not use this module.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView
    from pyspark import SparkContext


_GATEWAY = "PYSPARK_GATEWAY_PORT"


def is_started() -> bool:
    """Whether there is a JVM already: that of ``spark-submit``, or of a session that was made before."""
    return _GATEWAY in os.environ or _context()._gateway is not None


def prepare(jar: str, extension: str) -> dict[str, str]:
    """Bring the jar to a JVM that runs already; the settings that it was started with, none if there is no JVM yet."""
    if not is_started():
        return {}
    context = _context()
    active = context._active_spark_context
    if active is not None:
        if not _is_known(active._jvm, extension):
            _add(active, jar, extension)
        return dict(active.getConf().getAll())
    context._ensure_initialized()
    if not _is_known(context._jvm, extension):
        _extend(context._jvm, jar)
    from pyspark import SparkConf

    return dict(SparkConf(_jvm=context._jvm).getAll())


def _is_known(jvm: JVMView, name: str) -> bool:
    """Whether the driver finds a class."""
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        return False
    return True


def _extend(jvm: JVMView, jar: str) -> None:
    """Do on a driver that has no session yet what ``--jars`` does; executors get the jar by ``spark.jars``."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    except Exception:
        warnings.warn(
            f"Spark was started without lancepart's jar, and can't load it any more: pass --jars {jar} to spark-submit",
            RuntimeWarning,
            stacklevel=4,
        )


def _add(active: SparkContext, jar: str, extension: str) -> None:
    """Bring the jar to a session; its extensions can't be added any more."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        active._jsc.addJar(jar)
        _extend(active._jvm, jar)
        return
    quoted = jar.replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"ADD JAR '{quoted}'")
    warnings.warn(
        "the Spark session was started without lancepart: tables can be read and written, but joins may be shuffled. "
        "Stop it before you call lancepart.spark.session(), or start it with "
        f"--jars {jar} --conf spark.sql.extensions={extension}",
        RuntimeWarning,
        stacklevel=4,
    )


def _context() -> type[SparkContext]:
    from pyspark import SparkContext

    return SparkContext
