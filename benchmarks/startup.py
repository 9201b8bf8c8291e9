"""How long a Spark session takes for its first query and its first write, beside Spark's own first Python query.

Run it with ``python -m benchmarks.startup [repeats]``: every figure is of a JVM of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

KINDS = ("python", "source", "read", "write")
LABELS = {
    "python": "Spark's own first Python query (mapInArrow)",
    "source": "Spark's own first query of a Python data source",
    "read": "lancepart: first query",
    "write": "lancepart: first write",
}
CONF = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}


def measure(kind: str, root: str) -> dict[str, float]:
    """The seconds of the first query of a kind, and of the same query again."""
    import lancepart as lp

    spark = lp.spark.session("local[2]", **CONF)
    spark.range(10).selectExpr("sum(id)").collect()
    query = _queries(spark, root)[kind]
    found = {}
    for name in ("first", "second"):
        start = time.perf_counter()
        query()
        found[name] = time.perf_counter() - start
    spark.stop()
    return found


def _queries(spark: Any, root: str) -> dict[str, Callable[[], Any]]:
    """One query of each kind."""
    from pyspark.sql.datasource import DataSource, DataSourceReader

    class Reader(DataSourceReader):
        def read(self, partition: Any) -> Iterator[tuple[int]]:
            yield from ((n,) for n in range(10))

    class Tiny(DataSource):
        @classmethod
        def name(cls) -> str:
            return "tiny"

        def schema(self) -> str:
            return "id long"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    def source() -> Any:
        spark.dataSource.register(Tiny)
        return spark.read.format("tiny").load().collect()

    def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    rows = spark.range(100).selectExpr("id", "id % 4 AS k")
    return {
        "python": lambda: spark.range(100).mapInArrow(unchanged, "id long").collect(),
        "source": source,
        "read": lambda: spark.read.format("lancepart").load(root).where("k = 1").collect(),
        "write": lambda: rows.write.format("lancepart").mode("append").save(root),
    }


def main(repeats: int) -> None:
    """Measure every kind several times, one process each, and print the medians."""
    import lancepart as lp

    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "t")
        made = lp.create_table(root, pa.schema([("id", pa.int64()), ("k", pa.int64())]), ["k"])
        made.append([{"id": n, "k": n % 4} for n in range(100)])
        found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for _ in range(repeats):
            for kind in KINDS:
                command = [sys.executable, "-m", "benchmarks.startup", kind, root]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[kind].append(json.loads(done.stdout.splitlines()[-1]))
    own = statistics.median(each["first"] for each in found["python"])
    print(f"{'':50} {'first':>7} {'over':>7} {'second':>7}")
    for kind in KINDS:
        first, second = (statistics.median(each[name] for each in found[kind]) for name in ("first", "second"))
        print(f"{LABELS[kind]:50} {first:6.1f}s {first - own:+6.1f}s {second:6.2f}s")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measure(sys.argv[1], sys.argv[2])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
