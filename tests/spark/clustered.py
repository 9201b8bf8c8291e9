"""A program that drives a standalone cluster: tables on an object store, while processes of the cluster are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lancepart as lp
from tests.spark.elsewhere import BRIEF, explained
from tests.support.waiting import until

ROWS = 2_000
PIECE = 50
"""Rows are handed on in pieces: a Python worker keeps the last 64 kB to itself until it ends or has more."""
_WAREHOUSE = "spark.sql.catalog.lance"


def main(master: str, root: str, folder: str, worker: str) -> None:
    """Do everything that a cluster is for, and print what came of it; storage options come by stdin."""
    storage = json.loads(sys.stdin.read())
    marks = Path(folder)
    spark = session(master, root, storage)
    found = {
        "written": written(spark),
        "changed": changed(spark),
        "executor": survived(spark, killing_executor(str(marks / "executor")), "lance.killed_executor"),
        "reader": read_through_kill(spark, str(marks / "reader")),
        "writer": survived(spark, killing_workers(str(marks / "writer")), "lance.killed_writer"),
        "streamed": streamed(spark, f"{root}/streamed", storage, marks / "checkpoint"),
        "marks": sorted(path.name for path in marks.iterdir() if path.is_file()),
    }
    os.kill(int(worker), signal.SIGKILL)
    found["after"] = joined(spark).count()
    print("\n" + json.dumps(found), flush=True)
    spark.stop()


def session(master: str, root: str, storage: dict[str, str]) -> Any:
    """A session in client mode; its driver and its executors are on loopback."""
    conf = {
        **BRIEF,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "640m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **{f"{_WAREHOUSE}.storage.{key}": value for key, value in storage.items()},
    }
    return lp.spark.session(master, warehouse=root, **conf)


def rows(spark: Any) -> Any:
    """Rows in as many parts as make every executor busy."""
    return spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 5 AS k", "concat('t', id, repeat('x', 600)) AS t")


def joined(spark: Any) -> Any:
    """Two tables joined by their partitions."""
    return spark.sql("SELECT o.id, p.name FROM lance.orders o JOIN lance.people p ON o.customer = p.customer")


def written(spark: Any) -> list[Any]:
    """Tables made of queries and appended to, then read and joined."""
    spark.sql(
        "CREATE TABLE lance.orders PARTITIONED BY (bucket(8, customer)) "
        f"AS SELECT id, id % 20 AS customer FROM range({ROWS // 2})"
    )
    spark.sql(f"INSERT INTO lance.orders SELECT id, id % 20 FROM range({ROWS // 2}, {ROWS})")
    spark.sql(
        "CREATE TABLE lance.people PARTITIONED BY (bucket(4, customer)) "
        "AS SELECT id AS customer, concat('p', id) AS name FROM range(10)"
    )
    plan = explained(joined(spark))
    return [spark.table("lance.orders").where("customer = 3").count(), joined(spark).count(), "Exchange" in plan]


def changed(spark: Any) -> list[Any]:
    """Rows updated, merged and deleted."""
    spark.sql("CREATE TABLE lance.t PARTITIONED BY (k) AS SELECT id, id % 2 AS k FROM range(6)")
    spark.sql("UPDATE lance.t SET k = 7 WHERE id * 2 = 4")
    source = "USING (SELECT id + 5 AS id FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = 8"
    spark.sql(f"MERGE INTO lance.t t {source} WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 9)")
    spark.sql("DELETE FROM lance.t WHERE id % 3 = 0 AND k < 2")
    return sorted(map(list, spark.table("lance.t").collect()))


Rows = Callable[[Iterator[Any]], Iterator[Any]]


def survived(spark: Any, kill: Rows, table: str) -> list[Any]:
    """A table made by tasks of which one is killed: how many rows, how many different ones, and how many commits."""
    data = rows(spark)
    data.mapInArrow(kill, data.schema).writeTo(table).partitionedBy("k").create()
    count, different = spark.sql(f"SELECT count(id), count(DISTINCT id) FROM {table}").first()
    commits = spark.sql(f"SELECT * FROM {table}.snapshots WHERE operation = 'append'").count()
    return [count, different, commits]


def read_through_kill(spark: Any, mark: str) -> int:
    """The rows of a table whose readers are killed in the middle of the query."""
    frame = spark.table("lance.killed_executor")
    return int(frame.mapInArrow(killing_workers(mark), frame.schema).count())


def killing_executor(mark: str) -> Rows:
    """Rows handed on, until the executor of the first task to come is killed."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        first = once(mark)
        for batch in batches:
            yield from pieces(batch)
            if first:
                os.kill(parent(os.getppid()), signal.SIGKILL)

    return run


def killing_workers(mark: str) -> Rows:
    """Rows handed on, until all other Python workers of the executor of the first task to come are killed."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        first = once(mark)
        for batch in batches:
            yield from pieces(batch)
            if first:
                others = until(other_workers)
                Path(mark).write_text(str(len(others)))
                for each in others:
                    os.kill(each, signal.SIGKILL)

    return run


def pieces(batch: Any) -> Iterator[Any]:
    """The rows of a batch, few at a time."""
    return (batch.slice(start, PIECE) for start in range(0, batch.num_rows, PIECE))


def other_workers() -> list[int]:
    """The Python workers of the executor that this one belongs to; Spark has a daemon for each kind of them."""
    daemons = children(parent(os.getppid()))
    return [each for daemon in daemons for each in children(daemon) if each != os.getpid()]


def once(mark: str) -> bool:
    """Whether this is the first process that gets here."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def parent(process: int) -> int:
    """The process that started another."""
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def children(process: int) -> list[int]:
    """The processes that any thread of a process started."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def streamed(spark: Any, root: str, storage: dict[str, str], checkpoint: Path) -> list[int]:
    """A table followed by a stream into another, in two runs; how many rows, and how many different ones."""
    options = {f"storage.{key}": value for key, value in storage.items()}
    for _ in range(2):
        source = spark.readStream.table("lance.orders")
        sink = source.writeStream.format("lancepart").options(**options, partition_by="customer")
        query = sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(root)
        query.awaitTermination()
        spark.sql(f"INSERT INTO lance.orders VALUES ({ROWS}, 3)")
    frame = spark.read.format("lancepart").options(**options).load(root)
    return [frame.count(), frame.select("id").distinct().count()]


if __name__ == "__main__":
    main(*sys.argv[1:])
