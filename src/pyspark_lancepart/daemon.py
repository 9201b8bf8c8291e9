"""Spark's daemon of Python workers, with lancepart imported before it forks them.

Spark stops workers that were idle for a minute, so that a query after a pause would import everything again in each
worker.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings

from pyspark_lancepart.messages import hush

_SHORT = ("lookup_data_sources", "plan_data_source_read")
"""Workers that look up sources or hand plans on, and need nothing."""


def prepare(worker: str) -> None:
    """Import what the workers of a module need; the fork of a process in which Lance has done nothing yet is safe."""
    if worker.endswith(_SHORT):
        return
    warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
    with contextlib.suppress(ImportError):
        import lancepart.spark.running
        import lancepart.spark.source
        import lancepart.spark.writing  # noqa: F401
    gc.freeze()


if __name__ == "__main__":
    prepare(sys.argv[1] if len(sys.argv) > 1 else "")
    from pyspark import daemon

    hush(daemon)
    daemon.manager()
