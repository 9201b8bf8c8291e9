"""TPC-H and TPC-DS in Spark SQL beside Parquet files as they come, and beside Parquet tables that are bucketed alike.

All rows are compared. Every query runs once to warm up and then three times on each side; the best run of each counts,
by its wall time and by the CPU seconds of the JVM and the Python processes together. Each round starts with another
side: half of the CPU of a query's first runs is the JVM compiling, which the first side pays for the others too.
Queries are chosen by name, and the data can be kept:
``python -m benchmarks.tpc h2 h16 ds64 --scale 0.3 --data DIRECTORY``.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lancepart as lp
from benchmarks.report import LARGE, QUICK, Report, cpu_seconds, timing
from benchmarks.tpc_data import DS, GENERATOR, H, generate, tables

SCALE = float(os.environ.get("LANCEPART_TPC", "0.01" if QUICK else "1" if LARGE else "0.1"))
CHOSEN = () if LARGE else ("h1", "h3", "h18", "ds7", "ds64") if QUICK else ("h", *(f"ds{n}" for n in range(1, 100, 12)))
"""All of TPC-H and every twelfth query of TPC-DS; large runs take all."""
OURS, PARQUET, BUCKETED = "lancepart", "Parquet", "bucketed Parquet"
PEERS = (PARQUET, BUCKETED)
RUNS = 1 if QUICK else 3
"""Rounds of each query; as many as there are sides, so that each is first once."""
BUCKETS: Mapping[str, Mapping[str, tuple[str, int]]] = {
    H: {
        "lineitem": ("l_orderkey", 8),
        "orders": ("o_orderkey", 8),
        "customer": ("c_custkey", 4),
        "part": ("p_partkey", 4),
        "partsupp": ("ps_partkey", 4),
    },
    DS: {
        "store_sales": ("ss_item_sk", 8),
        "store_returns": ("sr_item_sk", 8),
        "catalog_sales": ("cs_item_sk", 8),
        "catalog_returns": ("cr_item_sk", 8),
        "web_sales": ("ws_item_sk", 8),
        "web_returns": ("wr_item_sk", 8),
        "inventory": ("inv_item_sk", 8),
        "item": ("i_item_sk", 8),
    },
}
"""The tables that are bucketed, and by what; the others are small, or are joined by other keys, and are left whole."""

CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.ui.showConsoleProgress": "false",
}


@dataclass
class Suite:
    """The tables of one suite in one session, three times; a query runs on those that are in use."""

    spark: Any
    name: str
    folder: Path
    queries: Mapping[str, str]
    catalogs: dict[str, str] = field(default_factory=dict)

    def prepare(self, sides: Sequence[str] = (OURS, *PEERS)) -> None:
        """Make the tables that are not there yet."""
        made = {OURS: self._ours, PARQUET: self._parquet, BUCKETED: self._bucketed}
        for side in sides:
            self.catalogs[side] = made[side]()

    def _ours(self) -> str:
        root = self.folder / "warehouse"
        if not root.exists():
            fill(self.folder, root, BUCKETS[self.name])
        catalog = f"lance_{self.name}"
        self.spark.conf.set(f"spark.sql.catalog.{catalog}", "io.lancepart.spark.LanceCatalog")
        self.spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", str(root))
        return catalog

    def _parquet(self) -> str:
        database = self._database("plain")
        for name in tables(self.folder):
            self.spark.sql(f"CREATE TABLE {database}.{name} USING parquet LOCATION '{self.folder}/{name}.parquet'")
        return database

    def _bucketed(self) -> str:
        database, folder = self._database("bucketed"), self.folder / "bucketed"
        for name in tables(self.folder):
            frame = self.spark.read.parquet(f"{self.folder}/{name}.parquet")
            column, count = BUCKETS[self.name].get(name, ("", 0))
            if not (folder / name / "_SUCCESS").exists():
                chosen = frame.repartition(count, column) if count else frame.coalesce(1)
                writer = chosen.write.option("path", str(folder / name))
                (writer.bucketBy(count, column) if count else writer).saveAsTable(f"{database}.{name}")
                continue
            columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in frame.schema)
            by = f"CLUSTERED BY ({column}) INTO {count} BUCKETS" if count else ""
            where = f"LOCATION '{folder / name}'"
            self.spark.sql(f"CREATE TABLE {database}.{name} ({columns}) USING parquet {by} {where}")
        return database

    def _database(self, kind: str) -> str:
        database = f"spark_catalog.{kind}_{self.name}"
        self.spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
        self.spark.sql(f"CREATE DATABASE {database} LOCATION '{self.folder}/{kind}_database'")
        return database

    def frame(self, side: str, query: str) -> Any:
        """A query over the tables of one side, planned and not run."""
        self.spark.sql(f"USE {self.catalogs[side]}")
        return self.spark.sql(self.queries[query])

    def rows(self, side: str, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.frame(side, query).collect()]


def fill(folder: Path, root: Path, buckets: Mapping[str, tuple[str, int]]) -> None:
    """Append each Parquet file of a folder to a table of a warehouse."""
    made = lp.connect(root)
    for name in tables(folder):
        file = pq.ParquetFile(folder / f"{name}.parquet")
        schema = file.schema_arrow.remove_metadata()
        column, count = buckets.get(name, ("", 0))
        table = made.create_table(name, schema, [f"bucket({count}, {column})"] if count else [])
        table.append(pa.RecordBatchReader.from_batches(schema, file.iter_batches()))


def differing(ours: Iterable[tuple[Any, ...]], theirs: Iterable[tuple[Any, ...]]) -> str | None:
    """How two answers differ as multisets, floats compared to nine digits; None where they don't."""
    one, other = _grouped(ours), _grouped(theirs)
    for key in one.keys() | other.keys():
        left = list(other.get(key, ()))
        for row in one.get(key, ()):
            found = next((each for each in left if _close(row, each)), None)
            if found is None:
                return f"a row that the peer has not: {key} {row}"
            left.remove(found)
        if left:
            return f"a row of the peer's is missing: {key} {left[0]}"
    return None


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[float, ...]]]:
    """The floats of each row, under everything else of it."""
    found = defaultdict(list)
    for row in rows:
        key = tuple(None if isinstance(each, float) else each for each in row)
        found[key].append(tuple(each for each in row if isinstance(each, float)))
    return {key: sorted(floats) for key, floats in found.items()}


def _close(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (a != a and b != b) for a, b in pairs)


@dataclass
class Cost:
    """What the runs of one query took, on one side."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def turns(sides: Iterable[str], rounds: int, first: int) -> list[list[str]]:
    """The order of the sides in each round: one place further each time, from the one that is to be first."""
    known = list(sides)
    starts = [(first + number) % len(known) for number in range(rounds)]
    return [known[start:] + known[:start] for start in starts]


def costs(suite: Suite, query: str, runs: int, *, first: int = 0) -> dict[str, Cost]:
    """Run a query on all sides in turn, once to warm up and compare the rows."""
    found: dict[str, Cost] = {side: Cost() for side in suite.catalogs}
    warming, *rounds = turns(suite.catalogs, 1 + runs, first)
    answers = {side: suite.rows(side, query) for side in warming}
    for side in suite.catalogs:
        difference = differing(answers[OURS], answers[side]) if OURS in answers else None
        assert difference is None, f"{query}: {side}: {difference}"
    for side in (side for sides in rounds for side in sides):
        used, start = cpu_seconds(), time.perf_counter()
        suite.frame(side, query).collect()
        found[side].wall.append(time.perf_counter() - start)
        found[side].cpu.append(cpu_seconds() - used)
    return found


def compare(suite: Suite, report: Report, chosen: Sequence[str], *, scale: float, runs: int = RUNS) -> None:
    """Time queries; what fails on a side, or has other rows, is noted and left out of the means."""
    speeds = defaultdict(list)
    for number, query in enumerate(chosen):
        try:
            found = costs(suite, query, runs, first=number)
        except Exception as error:
            report.note(f"{query} is left out: {str(error).strip().splitlines()[0][:200]}")
            continue
        if OURS not in found:
            continue
        ours = found[OURS]
        for peer in (side for side in suite.catalogs if side != OURS):
            theirs = found[peer]
            values = (timing([min(each.wall)], min(each.cpu)) for each in (ours, theirs))
            report.add(query, *values, peer=peer, unit="s")
            cpu = min(theirs.cpu) / min(ours.cpu)
            print(f"{'':<18}CPU {min(ours.cpu):.2f} {min(theirs.cpu):.2f} s {cpu:.2f} of {peer}", flush=True)
            speeds["speed", peer].append(min(theirs.wall) / min(ours.wall))
            speeds["speed by CPU seconds", peer].append(cpu)
    for (what, peer), values in speeds.items():
        title = f"{suite.name} at scale {scale:g}, {what}, geometric mean of {len(values)} queries"
        mean = statistics.geometric_mean(values)
        report.add(title, mean, 1.0, peer=peer, unit="relative", better="higher", headline=what == "speed")


def opened(spark: Any, name: str, folder: Path, scale: float) -> Suite | None:
    """A suite over the data of a folder, generated if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = generate(folder, scale, name)
    short = name.removeprefix("tpc")
    return texts and Suite(spark, name, folder, {f"{short}{number}": text for number, text in texts.items()})


def run(report: Report) -> None:
    measured(report, scale=SCALE, chosen=CHOSEN)


def measured(
    report: Report,
    *,
    scale: float,
    chosen: Sequence[str] = (),
    sides: Sequence[str] = (OURS, *PEERS),
    data: Path | None = None,
    runs: int = RUNS,
) -> None:
    """Both suites, or the queries that are chosen by name, in one session each."""
    place = Path(data or tempfile.mkdtemp())
    try:
        for name in (H, DS):
            short = name.removeprefix("tpc")
            wanted = [each for each in chosen if each.rstrip("0123456789") == short]
            if chosen and not wanted:
                continue
            spark = lp.spark.session("local[2]", **CONF, **{"spark.sql.warehouse.dir": str(place / "spark")})
            try:
                suite = opened(spark, name, place / f"{name}-{scale:g}", scale)
                if suite is None:
                    report.note(f"{GENERATOR} can't be installed: left out")
                    return
                suite.prepare(sides)
                queries = [each for each in wanted if each != short] or list(suite.queries)
                compare(suite, report, queries, scale=scale, runs=runs)
            finally:
                spark.stop()
    finally:
        if data is None:
            shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpc", description=__doc__)
    parser.add_argument("queries", nargs="*", help="such as h1 or ds64; h or ds for all of one suite; all unless named")
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--data", type=Path, help="keep the tables there, and use those that are there")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--side", action="append", choices=(OURS, *PEERS), help="run on these only")
    given = parser.parse_args()
    sides = given.side or (OURS, *PEERS)
    measured(Report("tpc"), scale=given.scale, chosen=given.queries, sides=sides, data=given.data, runs=given.runs)


if __name__ == "__main__":
    main()
