"""The steps of the demo: each one on a partitioned table, and the same on Hive-partitioned Parquet."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lancepart as lp
from examples.demo import rows

EVENTS = "lance.demo.events"
CONF = {
    "spark.driver.memory": "4g",
    "spark.log.level": "ERROR",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@dataclass
class Step:
    """What a step did: seconds of both sides, None where Parquet can't do it, and what is worth seeing."""

    title: str
    ours: float = 0.0
    parquet: float | None = None
    lines: list[str] = field(default_factory=list)
    without: str = ""
    data: dict[str, Any] = field(default_factory=dict)


class Demo:
    """A session, a warehouse, and a folder of Parquet beside it."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count, self.folder = count, folder
        self.raw, self.parquet = f"{folder}/raw", f"{folder}/parquet"
        self.old = count * 4 // 5

    def steps(self) -> Iterator[tuple[str, Callable[[], Step]]]:
        """The steps in order, with what each is about."""
        yield "Start Spark", self.start
        yield f"Make {self.count:,} events", self.make
        yield "Ingest 2025 through Spark SQL", self.ingest
        yield "Change the partitioning, and ingest 2026 by month", self.evolve
        for title, where in self.filters():
            yield f"Query: {title}", lambda title=title, where=where: self.query(title, where)
        yield "MERGE changes into three tenants", self.merge
        yield "Write a stream", self.stream
        yield "Travel in time", self.travel
        yield "Join two tables on their buckets", self.join
        yield "Build a vector index", self.index
        yield "Search one tenant", lambda: self.search("Search one tenant", "tenant = 'tenant-05'")
        yield "Search all tenants", lambda: self.search("Search all tenants", None)
        yield "Compact small files", self.compact

    def start(self) -> Step:
        """A session with the catalog ``lance``, and a first small job for each side."""
        step = Step("Start Spark", without="it has started with the session")

        def session() -> None:
            with quiet_launch():
                self.spark = lp.spark.session("local[*]", warehouse=f"{self.folder}/warehouse", **CONF)
            few = self.spark.range(100).selectExpr("id", "id % 2 AS k")
            few.write.partitionBy("k").parquet(f"{self.folder}/warm.parquet")
            few.write.format("lancepart").option("partition_by", "k").save(f"{self.folder}/warm")
            self.spark.read.format("lancepart").load(f"{self.folder}/warm").where("k = 1").collect()

        step.ours = seconds(session)
        step.lines = [f"Spark {self.spark.version}, lancepart {lp.__version__}"]
        return step

    def make(self) -> Step:
        """The rows, as files that both sides read."""
        step = Step("Make the events", without="both sides read the same files")
        step.ours = seconds(self._write_raw)
        return step

    def _write_raw(self) -> None:
        spans = {"2025": (0, self.old, "2025-01-01", 365), "2026": (self.old, self.count, "2026-01-01", 59)}
        streamed = max(600, self.count // 25)
        spans["stream"] = (self.count, self.count + streamed, "2026-03-01", 5)
        for name, (first, last, day, days) in spans.items():
            self.spark.range(first, last, 1, 6 if name == "stream" else 4).createOrReplaceTempView("ids")
            made = self.spark.sql(rows.events("ids", start=day, days=days))
            made.write.parquet(f"{self.raw}/{name}")
            self.spark.read.parquet(f"{self.raw}/{name}").createOrReplaceTempView(f"raw_{name}")

    def ingest(self) -> Step:
        """One leaf for each tenant and year; Parquet needs a column of its own for the year."""
        step = Step("Ingest 2025")
        warehouse = lp.connect(f"{self.folder}/warehouse")
        warehouse.create_namespace("demo")
        warehouse.create_table("demo.events", rows.SCHEMA, ["tenant", "year(ts)"])
        step.ours = self.sql(f"INSERT INTO {EVENTS} SELECT * FROM raw_2025")
        self.table = warehouse.table("demo.events")
        self.table.tags.create("loaded", self.table.version)
        frame = self.spark.sql("SELECT *, year(ts) AS year FROM raw_2025")
        step.parquet = seconds(lambda: frame.write.partitionBy("tenant", "year").parquet(self.parquet))
        leaves = self.table.scan().plan().leaves
        sizes = sorted(((leaf.stats.rows, leaf.values[0]) for leaf in leaves if leaf.stats), reverse=True)
        spread = f"the largest has {sizes[0][0]:,} rows, the smallest {sizes[-1][0]:,}"
        step.lines = [f"{len(leaves)} partitions in one commit; {spread}"]
        step.data["tenants"] = [(tenant, count) for count, tenant in sizes]
        return step

    def evolve(self) -> Step:
        """Months from now on. The leaves of 2025 stay as they are; a Hive-partitioned folder is written anew."""
        step = Step("Change the partitioning, ingest 2026")
        change = self.sql("CALL lance.system.add_partition_field(table => 'demo.events', field => 'month(ts)')")
        step.ours = change + self.sql(f"INSERT INTO {EVENTS} SELECT * FROM raw_2026")

        def rewrite() -> None:
            both = self.spark.sql("SELECT * FROM raw_2025 UNION ALL SELECT * FROM raw_2026")
            new = both.selectExpr("*", "year(ts) AS year", "month(ts) AS month")
            shutil.rmtree(self.parquet)
            new.repartition("tenant", "year", "month").write.partitionBy("tenant", "year", "month").parquet(
                self.parquet
            )

        step.parquet = seconds(rewrite)
        specs = [row["spec_id"] for row in self.table.inspect.partitions().to_pylist()]
        step.lines = [
            f"the change itself took {change:.1f} s; {specs.count(1)} leaves are by year, {specs.count(2)} by month",
            "Parquet: every row is written again, and nobody should read meanwhile",
        ]
        return step

    def filters(self) -> list[tuple[str, str]]:
        """Queries by time and tenant, which do not name the columns that Parquet's folders are made of."""
        return [
            ("one tenant, a week of 2025", f"tenant = 'tenant-03' AND {between('2025-03-03', '2025-03-10')}"),
            ("one tenant, a day of 2026", f"tenant = 'tenant-03' AND {between('2026-02-03', '2026-02-04')}"),
            ("all tenants, a day of 2026", between("2026-02-03", "2026-02-04")),
        ]

    def query(self, title: str, where: str) -> Step:
        """The best of two runs, the leaves that the filter keeps, and the files that Parquet opened."""
        step = Step(f"Query: {title}")
        self.spark.read.parquet(self.parquet).createOrReplaceTempView("parquet_events")
        query = f"SELECT count(*), round(sum(amount), 2) FROM {{}} WHERE {where}"
        step.ours, found = self.best_query(query.format(EVENTS))
        step.parquet, same = self.best_query(query.format("parquet_events"))
        assert found == same, (found, same)
        kept = self.table.scan(where).plan().leaves
        every = self.table.scan().plan().leaves
        files, of = files_read(self.last), len(self.spark.read.parquet(self.parquet).inputFiles())
        step.lines = [
            f"{found[0][0]:,} rows; {len(kept)} of {len(every)} leaves are read: {named(kept)}",
            f"Parquet reads {files} of {of} files: its folders are named by year and month, the query by ts",
        ]
        step.data["leaves"] = [(leaf.values, leaf in kept) for leaf in every]
        step.data["files"] = (files, of)
        return step

    def merge(self) -> Step:
        """Changed and new events of three tenants; of Parquet the partitions that they touch are written anew."""
        step = Step("MERGE into three tenants")
        few = "tenant IN ('tenant-02', 'tenant-08', 'tenant-20')"
        changes = self.spark.sql(f"""
            SELECT id, ts, tenant, user, amount + 1 AS amount, concat('corrected: ', text) AS text, embedding
            FROM raw_2026 WHERE {few} AND pmod(id, 10) = 0
            UNION ALL SELECT id + 100000000, ts, tenant, user, amount, text, embedding
            FROM raw_2026 WHERE {few} AND pmod(id, 50) = 1""")
        changes.write.parquet(f"{self.folder}/changes")
        new = self.spark.read.parquet(f"{self.folder}/changes")
        new.createOrReplaceTempView("changes")
        before = self.table.version
        step.ours = self.sql(f"""
            MERGE INTO {EVENTS} t USING changes s ON t.tenant = s.tenant AND t.ts = s.ts AND t.id = s.id
            WHEN MATCHED THEN UPDATE SET amount = s.amount, text = s.text
            WHEN NOT MATCHED THEN INSERT *""")

        def rewrite() -> None:
            old = self.spark.read.parquet(self.parquet).where(f"{few} AND year = 2026")
            both = old.join(new, "id", "left_anti").select(*new.columns).unionByName(new)
            dated = both.selectExpr("*", "year(ts) AS year", "month(ts) AS month")
            dated.write.mode("overwrite").partitionBy("tenant", "year", "month").parquet(self.parquet)

        step.parquet = seconds(rewrite)
        last = self.table.inspect.snapshots().to_pylist()[-1]
        step.lines = [
            f"{new.count():,} changes; snapshot {before} became {last['version']} in one commit",
            "Parquet: six partitions are read and replaced, folder by folder",
        ]
        return step

    def stream(self) -> Step:
        """Micro-batches, each one atomic commit; a batch that Spark repeats is not written twice."""
        step = Step("Write a stream of six batches")
        step.ours, own = self._stream("lancepart", self.table.root)
        step.parquet, theirs = self._stream("parquet", self.parquet)
        step.lines = [f"{len(own)} batches, each exactly once; the median batch took {sorted(own)[len(own) // 2]:,} ms"]
        step.data["batches"] = {"lancepart": own, "parquet": theirs}
        assert self.table.scan().count() == self.spark.read.parquet(self.parquet).count()
        return step

    def _stream(self, kind: str, path: str) -> tuple[float, list[int]]:
        fields = self.spark.table("raw_stream").schema
        source = self.spark.readStream.schema(fields).option("maxFilesPerTrigger", 1).parquet(f"{self.raw}/stream")
        if kind == "parquet":
            source = source.selectExpr("*", "year(ts) AS year", "month(ts) AS month")
        writer = source.writeStream.format(kind).option("checkpointLocation", f"{self.folder}/checkpoint-{kind}")
        if kind == "parquet":
            # A folder that a stream wrote is read by the stream's own list of files, so the batches go beside the rest.
            writer = writer.foreachBatch(lambda batch, _: self._append(batch, path))
        start = time.perf_counter()
        query = writer.trigger(availableNow=True).start(path)
        query.awaitTermination()
        spent = time.perf_counter() - start
        return spent, [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]]

    @staticmethod
    def _append(batch: Any, path: str) -> None:
        batch.write.mode("append").partitionBy("tenant", "year", "month").parquet(path)

    def travel(self) -> Step:
        """The table as it was, by a tag and by a snapshot's number."""
        step = Step("Travel in time", without="Parquet keeps no history")
        query = f"SELECT count(*) AS n FROM {EVENTS}"
        step.ours, then = self.best_query(f"{query} VERSION AS OF 'loaded'")
        now = self.spark.sql(query).collect()
        snapshots = self.table.inspect.snapshots().to_pylist()
        step.lines = [f"{now[0].n:,} events now, {then[0].n:,} at the tag 'loaded'; {len(snapshots)} snapshots"]
        step.data["history"] = [
            (each["version"], each["operation"], each["partitions"], each["rows_added"], each["rows_deleted"])
            for each in snapshots
        ]
        return step

    def join(self) -> Step:
        """Purchases and users in buckets of the user: Spark joins bucket by bucket, without an exchange."""
        step = Step("Join on buckets")
        purchases = "SELECT user, id, amount FROM raw_2025"
        users = "SELECT id AS user, concat('user ', id) AS name, pmod(id, 7) AS plan FROM range(100000)"
        for name, query in (("purchases", purchases), ("users", users)):
            self.sql(f"CREATE TABLE lance.demo.{name} PARTITIONED BY (bucket(8, user)) AS {query}")
            self.spark.sql(query).write.parquet(f"{self.folder}/{name}.parquet")
            self.spark.read.parquet(f"{self.folder}/{name}.parquet").createOrReplaceTempView(f"parquet_{name}")
        query = "SELECT plan, count(*), round(sum(amount)) FROM {0}purchases JOIN {0}users USING (user) GROUP BY plan"
        ours, theirs = (self.spark.sql(query.format(prefix)) for prefix in ("lance.demo.", "parquet_"))
        step.data["plans"] = {"lancepart": plan(ours), "parquet": plan(theirs)}
        step.ours, found = self.best_query(query.format("lance.demo."))
        step.parquet, same = self.best_query(query.format("parquet_"))
        assert sorted(found) == sorted(same)
        counts = {name: shuffles(text) for name, text in step.data["plans"].items()}
        step.lines = [f"exchanges below the join: {counts['lancepart']}; with Parquet {counts['parquet']}"]
        return step

    def index(self) -> Step:
        """An index in each leaf that is large enough for one, declared on the table."""
        step = Step("Build a vector index", without="Parquet has none")
        step.ours = seconds(lambda: self.table.maintenance.create_index("embedding", progress=False))
        own = [row for row in self.table.inspect.indices().to_pylist() if row["scope"] == "leaf"]
        step.lines = [f"{sum(1 for row in own if row['indexed_rows'])} leaves have one; smaller ones need none"]
        return step

    def search(self, title: str, where: str | None) -> Step:
        """The ten nearest events; with Parquet Spark computes the distance of every row."""
        step = Step(title)
        query = self.spark.sql("SELECT embedding FROM raw_2026 ORDER BY id LIMIT 1").collect()[0][0]
        found = self.table.search(query, k=10, where=where, columns=["id", "tenant", "text"])
        step.ours = seconds(found.to_list)
        again, near = best(found.to_list)
        away = " + ".join(f"pow(embedding[{n}] - cast({value} AS float), 2)" for n, value in enumerate(query))
        every = self.spark.read.parquet(self.parquet).where(where or "true")
        step.parquet, same = best(
            lambda: every.selectExpr("id", f"{away} AS away").orderBy("away", "id").limit(10).collect()
        )
        agree = len({row["id"] for row in near} & {row.id for row in same})
        step.lines = [f"the same search again takes {again * 1000:.0f} ms; {agree} of the 10 nearest are the same"]
        step.lines += [f"{row['_distance']:.3f}  {row['tenant']}  {row['text']}" for row in near[:3]]
        return step

    def compact(self) -> Step:
        """The small files of the stream and the MERGE put together; readers see the table before or after."""
        step = Step("Compact small files")
        before = self._fragments()
        step.ours = self.sql("CALL lance.system.compact(table => 'demo.events')")

        def rewrite() -> None:
            streamed = self.spark.read.parquet(self.parquet).where("year = 2026")
            streamed.repartition("tenant", "month").write.mode("overwrite").partitionBy(
                "tenant", "year", "month"
            ).parquet(self.parquet)

        step.parquet = seconds(rewrite)
        step.lines = [f"{before} fragments became {self._fragments()}; Parquet's partitions of 2026 are written anew"]
        return step

    def _fragments(self) -> int:
        return sum(row["fragments"] for row in self.table.inspect.partitions().to_pylist())

    def best_query(self, query: str) -> tuple[float, Any]:
        """The better time of two runs of a query, and its rows; the same DataFrame would reuse its shuffles."""

        def run() -> Any:
            self.last = self.spark.sql(query)
            return self.last.collect()

        return best(run)

    def sql(self, statement: str) -> float:
        """Run a statement to its end, and return its seconds."""
        return seconds(lambda: self.spark.sql(statement).collect())


def seconds(action: Callable[[], Any]) -> float:
    """How long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def best(action: Callable[[], Any]) -> tuple[float, Any]:
    """The better time of two runs, and the result."""
    times, found = [], None
    for _ in range(2):
        start = time.perf_counter()
        found = action()
        times.append(time.perf_counter() - start)
    return min(times), found


@contextmanager
def quiet_launch() -> Iterator[None]:
    """Start Spark without the lines that its JVM writes to stderr; its errors reach Python as exceptions."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def between(first: str, last: str) -> str:
    """A filter on a span of days that both dialects of SQL understand."""
    return f"ts >= TIMESTAMP '{first} 00:00:00' AND ts < TIMESTAMP '{last} 00:00:00'"


def named(leaves: tuple[Any, ...]) -> str:
    """The values of some leaves, the first few."""
    texts = ["/".join(str(value) for value in leaf.values) for leaf in leaves]
    return ", ".join(texts[:4]) + (" …" if len(texts) > 4 else "")


def files_read(frame: Any) -> int:
    """How many files a query over Parquet opened, by Spark's own metric."""
    return _files_of(frame._jdf.queryExecution().executedPlan())


def _files_of(node: Any) -> int:
    inner = node.executedPlan() if "Adaptive" in node.nodeName() else node
    leaves, found = inner.collectLeaves(), 0
    for n in range(leaves.size()):
        leaf = leaves.apply(n)
        if "QueryStage" in leaf.nodeName():
            found += _files_of(leaf.plan())
        else:
            metric = leaf.metrics().get("numFiles")
            found += int(metric.get().value()) if metric.isDefined() else 0
    return found


def plan(frame: Any) -> str:
    """The physical plan as Spark draws it, without what is too long to read."""
    text = frame._jdf.queryExecution().executedPlan().toString()
    return "\n".join(line[:110] for line in text.splitlines() if "AdaptiveSparkPlan" not in line)


def shuffles(text: str) -> int:
    """The exchanges beneath the join of a plan."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if "Join" in line)
    return sum("Exchange" in line for line in lines[at:])
