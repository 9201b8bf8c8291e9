"""Cancelling statements that run in the planning service, where Spark has no job to cancel."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

from lancepart.errors import InvalidInputError, UnsupportedOperationError

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView
    from pyspark.sql import SparkSession

_SECONDS = 5


def cancel(spark: SparkSession, *, group: str | None, tag: str | None) -> int:
    """Cancel the statements of a job group or with a tag, or all of this driver; how many there were."""
    from pyspark.errors import PySparkException

    if group is not None and tag is not None:
        raise InvalidInputError("give either a job group or a tag")
    try:
        jvm = spark.sparkContext._jvm
    except PySparkException:
        raise UnsupportedOperationError("over Spark Connect use spark.interruptTag or spark.interruptAll") from None
    assert jvm is not None
    return _cancelled(jvm, group, tag)


def _cancelled(jvm: JVMView, group: str | None = None, tag: str | None = None) -> int:
    statements = jvm.io.lancepart.spark.Statements
    if group is not None:
        return int(statements.cancelGroup(group))
    return int(statements.cancelTag(tag) if tag is not None else statements.cancelAll())


def cancel_on_interrupt() -> None:
    """Let Ctrl-C cancel statements too, before PySpark's own handler cancels jobs; only the main thread may set it."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        return
    if getattr(previous, "__module__", None) == __name__:
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        thread = threading.Thread(target=_cancel_all, daemon=True)
        thread.start()
        thread.join(_SECONDS)
        previous(number, frame)

    signal.signal(signal.SIGINT, interrupted)


def _cancel_all() -> None:
    """In a thread of its own, since the interrupted one may be in the middle of a call to the JVM."""
    with contextlib.suppress(Exception):
        from pyspark import SparkContext

        context = SparkContext._active_spark_context
        if context is not None and context._jvm is not None:
            _cancelled(context._jvm)
