"""How long a Spark session takes for its first query and its first write, beside Spark's own first Python query.

Every figure is of a JVM of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.report import Report, Timing, cpu_seconds, sized, timing

KINDS = ("python", "read", "write")
LABELS = {"python": "Spark's mapInArrow", "read": "query", "write": "write"}
REPEATS = sized(3, 1, large=9)
CONF = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}


def measure(kind: str, root: str) -> dict[str, float]:
    """The seconds of the first query of a kind, and of the same query again, and their CPU seconds."""
    import lancepart as lp

    spark = lp.spark.session("local[2]", **CONF)
    spark.range(10).selectExpr("sum(id)").collect()
    query = _queries(spark, root)[kind]
    found = {}
    for name in ("first", "second"):
        used, start = cpu_seconds(), time.perf_counter()
        query()
        found[name] = time.perf_counter() - start
        found[f"{name} cpu"] = cpu_seconds() - used
    spark.stop()
    return found


def _queries(spark: Any, root: str) -> dict[str, Callable[[], Any]]:
    """One query of each kind."""

    def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    rows = spark.range(100).selectExpr("id", "id % 4 AS k")
    return {
        "python": lambda: spark.range(100).mapInArrow(unchanged, "id long").collect(),
        "read": lambda: spark.read.format("lancepart").load(root).where("k = 1").collect(),
        "write": lambda: rows.write.format("lancepart").mode("append").save(root),
    }


def run(report: Report) -> None:
    """Measure every kind several times, one process each."""
    import lancepart as lp

    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "t")
        made = lp.create_table(root, pa.schema([("id", pa.int64()), ("k", pa.int64())]), ["k"])
        made.append([{"id": n, "k": n % 4} for n in range(100)])
        found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for _ in range(REPEATS):
            for kind in KINDS:
                command = [sys.executable, "-m", "benchmarks.startup", kind, root]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[kind].append(json.loads(done.stdout.splitlines()[-1]))
    for kind in KINDS[1:]:
        for which in ("first", "second"):
            own, peer = (_figure(found[name], which) for name in (kind, KINDS[0]))
            report.add(f"{LABELS[kind]}, {which} time", own, peer, peer=LABELS[KINDS[0]], unit="s")


def _figure(found: Sequence[Mapping[str, float]], which: str) -> Timing:
    return timing([each[which] for each in found], statistics.mean(each[f"{which} cpu"] for each in found))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2])))
