"""What users see of Spark's Python workers: errors that say what to do, and no word of how workers end."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_HIDE = "SPARK_HIDE_TRACEBACK"
_GONE = (BrokenPipeError, ConnectionResetError)


@contextmanager
def plainly() -> Iterator[None]:
    """Leave out a worker's traceback where an error of ours says what is wrong and what to do.

    Spark reads the environment when it formats an error, and ends the process after it: no other error is shortened.
    """
    try:
        yield
    except Exception as error:
        from lancepart.errors import LanceNamespaceError

        if isinstance(error, LanceNamespaceError):
            os.environ[_HIDE] = "1"
        raise


def hush(daemon: ModuleType) -> None:
    """End workers of a daemon silently when Spark has closed their connection.

    Spark closes it after a minute without work, when a query has enough rows, and at its own end; the worker then fails
    to report its end.
    """
    work = daemon.__dict__["worker"]

    def worker(*given: Any) -> int:
        try:
            return int(work(*given))
        except _GONE:
            return 1

    daemon.__dict__.update(worker=worker, print=_print)


def hush_own() -> None:
    """The same in a worker of one of Spark's own daemons, from the next time on that it waits for work."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == "pyspark.daemon":
        hush(main)


def _print(*words: Any, **options: Any) -> None:
    if not isinstance(sys.exc_info()[1], _GONE):
        builtins.print(*words, **options)
