"""A program for sessions of other kinds than the tests' own: each needs a process to itself."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import pickle
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lancepart as lp

CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.ui.showConsoleProgress": "false",
}
BRIEF = CONF | {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.python.authenticate.socketTimeout": "120s",
}
"""For sessions that do not live long enough for what is compiled to pay."""
COMPACT = "CALL lance.system.compact(table => 't')"


def session(kind: str) -> Any:
    """A session on a local cluster, over Spark Connect, or without the jar."""
    from pyspark.sql import SparkSession

    if kind == "cluster":
        return lp.spark.session("local-cluster[2,1,1024]", **CONF, **{"spark.executor.memory": "1g"})
    builder = SparkSession.builder.remote("local[2]") if kind == "connect" else SparkSession.builder.master("local[2]")
    builder = lp.spark.configure(builder)
    for key, value in CONF.items():
        builder = builder.config(key, value)
    if kind == "plain":
        builder = builder.config("spark.jars", "").config("spark.sql.extensions", "")
    return builder.getOrCreate()


def explained(frame: Any) -> str:
    """What EXPLAIN prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain()
    return printed.getvalue()


def main(kind: str, orders: str, customers: str) -> None:
    """Read, join and write, and print what came of it."""
    spark = session(kind)
    frame = spark.read.format("lancepart").load(orders)
    frame.createOrReplaceTempView("orders")
    spark.read.format("lancepart").load(customers).createOrReplaceTempView("customers")
    joined = spark.sql("SELECT o.id, c.text FROM orders o JOIN customers c ON o.id = c.id")
    found: dict[str, Any] = {
        "filtered": frame.where("id = 3 AND country IS NOT NULL").count(),
        "joined": joined.count(),
        "plan": explained(joined),
        "types": frame.dtypes,
        "union": frame.where("id = 1").unionAll(frame.where("id = 2")).count(),
    }
    folder = Path(orders).parent
    found["attacked"] = attacked(spark, orders, folder / "touched")
    found["searched"] = [] if kind == "plain" else searched(spark, folder)
    found["services"] = served(kind, orders)
    found["interrupted"] = [interrupted(spark, kind, f"DELETE FROM lancepart.`{orders}`")]
    found["left"] = frame.count()
    found |= written(spark, kind, folder)
    found["sql"] = changed(spark, kind, folder)
    found["interrupted"].append(interrupted(spark, kind, COMPACT))
    found["sql_left"] = 0 if kind == "plain" else spark.table("lance.t").count()
    print("\n" + json.dumps(found))
    spark.stop()


def attacked(spark: Any, root: str, mark: Path) -> list[str]:
    """Ask to delete all rows, and have a pickle loaded, as anybody can who may set options; the errors of each."""
    evil = base64.b64encode(zlib.compress(pickle.dumps(Touch(mark)))).decode()
    delete = '{"kind":"request","id":1,"op":"delete","body":{"where":[]},"options":{}}'
    reader = spark.read.format("lancepart")
    view = "CREATE OR REPLACE TEMPORARY VIEW evil USING lancepart OPTIONS"
    attacks: list[Callable[[], Any]] = [
        lambda: reader.option("lancepart.request", delete).load(root).schema,
        lambda: spark.sql(f"{view} (path '{root}', 'LancePart.Request' '{delete}')").collect(),
        lambda: spark.sql(f"{view} (path '{root}', 'lancepart.plan' '{evil}', 'lancepart.columns' '{{}}')").collect(),
    ]
    found = []
    for attack in attacks:
        try:
            attack()
        except Exception as error:
            found.append(str(error))
    return found


def services() -> list[int]:
    """The planning services of the driver, which was started by this process."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"lancepart.spark.service" in (path / "cmdline").read_bytes() and os.getpid() in _parents(
                int(path.name)
            ):
                found.append(int(path.name))
    return found


def _parents(process: int) -> list[int]:
    found = []
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        found.append(process)
    return found


def served(kind: str, root: str) -> list[int]:
    """How many planning services there are for one session and, over Spark Connect, for two."""
    if kind != "connect":
        return [len(services())]
    from pyspark.sql import SparkSession

    first = len(services())
    other = lp.spark.configure(SparkSession.builder.remote("sc://localhost")).create()
    assert other.read.format("lancepart").load(root).count() > 0
    return [first, len(services())]


def interrupted(spark: Any, kind: str, statement: str) -> str:
    """How a statement ends whose tag is interrupted while the planning services are stopped, so that it can't end."""
    if kind != "connect":
        return ""
    errors, stopped, tag = [], services(), "to be interrupted"

    def run() -> None:
        spark.addTag(tag)
        try:
            spark.sql(statement).collect()
        except Exception as error:
            errors.append(str(error))

    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    thread = threading.Thread(target=run)
    thread.start()
    while not spark.interruptTag(tag):
        time.sleep(0.05)
    for process in stopped:
        os.kill(process, signal.SIGCONT)
    thread.join()
    return " ".join(errors)


def searched(spark: Any, folder: Path) -> list[list[Any]]:
    """What SQL finds for a constant, and for the rows of another table."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(str(folder / "vectors"), schema, ["bucket(id, 2)"])
    table.append([{"id": n, "v": [float(n), 0.0]} for n in range(9)])
    spark.sql("SELECT array(2.2F, 0F) AS q UNION ALL SELECT array(6.9F, 0F)").createOrReplaceTempView("asked")
    constant = spark.sql(f"SELECT id FROM lance_search('{table.root}', 'v', array(3.1, 0), 2)")
    lateral = spark.sql(f"SELECT s.id FROM asked, LATERAL lance_search('{table.root}', 'v', asked.q, 1) s ORDER BY id")
    return [[row["id"] for row in frame.collect()] for frame in (constant, lateral)]


class Touch:
    """What would write a file if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def written(spark: Any, kind: str, folder: Path) -> dict[str, Any]:
    """Make a table, write to it in both ways, and join it."""
    root = str(folder / "written")
    data = spark.range(20).selectExpr("id", "cast(id % 3 as int) AS k", "concat('t', id) AS t")
    data.write.format("lancepart").mode("append").option("partition_by", "k").save(root)
    table = lp.open_table(root)
    if kind != "plain":
        table.upsert(data.where("id < 2").selectExpr("id", "cast(9 as int) AS k", "'up' AS t"), on=["id"])
    joined = table.join(table, on=["k"], columns=["id", "id_right"])
    return {
        "written": sorted(map(list, table.scan().to_spark(spark).collect())),
        "joined_tables": joined.to_spark(spark).count() if kind != "plain" else None,
    }


def changed(spark: Any, kind: str, folder: Path) -> list[Any]:
    """Make a table of a warehouse and change its rows, which without the jar is not possible."""
    if kind == "plain":
        return []
    spark.conf.set("spark.sql.catalog.lance", "io.lancepart.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.lance.warehouse", str(folder / "warehouse"))
    spark.sql("CREATE TABLE lance.t PARTITIONED BY (k) AS SELECT id, id % 2 AS k FROM range(6)").collect()
    spark.sql("UPDATE lance.t SET k = 7 WHERE id * 2 = 4").collect()
    merged = "USING (SELECT id + 5 AS id FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = 8"
    spark.sql(f"MERGE INTO lance.t t {merged} WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 9)").collect()
    spark.sql("DELETE FROM lance.t WHERE id % 3 = 0 AND k < 2").collect()
    spark.sql(COMPACT).collect()
    return sorted(map(list, spark.table("lance.t").collect()))


if __name__ == "__main__":
    main(*sys.argv[1:])
