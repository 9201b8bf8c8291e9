"""A program that writes on Spark while its executors, or it itself, are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lancepart as lp
from tests.spark.elsewhere import BRIEF

ROWS = 4_000


def main(kind: str, how: str, root: str, marker: str) -> None:
    """Write in a session in which the first task to come takes its executor with it, or dawdles to be killed."""
    master = "local-cluster[2,1,1024]" if kind == "executor" else "local[2]"
    spark = lp.spark.session(master, **BRIEF, **{"spark.executor.memory": "1g"})
    data = spark.range(0, ROWS, 1, 4).selectExpr("id", "cast(id % 5 as int) AS k", "concat('t', id) AS t")
    doomed = data.mapInArrow(killing(marker) if kind == "executor" else dawdling(marker), data.schema)
    if how == "format":
        doomed.write.format("lancepart").mode("append").save(root)
    else:
        lp.open_table(root).append(doomed)
    print("done")
    spark.stop()


def killing(marker: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows handed on, half of them, before the executor of the first task dies."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            first = True
        except FileExistsError:
            first = False
        for batch in batches:
            yield batch
            if first:
                daemon = os.getppid()
                executor = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(executor, signal.SIGKILL)

    return run


def dawdling(marker: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows handed on after a while, and a sign that it has begun."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        Path(marker).touch()
        time.sleep(0.5)
        yield from batches

    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
