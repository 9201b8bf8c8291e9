"""Reads and writes in one process beside deltalake, and pyarrow and DuckDB on Hive-partitioned Parquet."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import lancepart as lp
from benchmarks.report import Report

ROWS = int(os.environ.get("LANCEPART_ROWS", "2000000"))
PARTITIONS = 64
_RUNS = 3


def rows(count: int = ROWS) -> pa.Table:
    """Rows with an id, a partition, numbers and a text, in a random order."""
    generator = np.random.default_rng(7)
    ids = generator.permutation(count)
    return pa.table(
        {
            "id": ids,
            "part": (ids % PARTITIONS).astype(np.int32),
            "x": generator.random(count),
            "n": generator.integers(0, 1_000, count),
            "text": pa.array([f"text {number % 10_000}" for number in ids]),
        }
    )


class Ours:
    """A partitioned table."""

    def __init__(self, folder: Path, data: pa.Table) -> None:
        self.table = lp.create_table_from(folder, data, ["part"])

    def read(self, columns: list[str] | None = None, where: str | None = None) -> int:
        return int(self.table.scan(where, columns).to_arrow().num_rows)

    def count(self, where: str) -> int:
        return self.table.count_rows(where)

    def update(self) -> None:
        self.table.update({"n": "n + 1"}, "part = 3")

    def upsert(self, data: pa.Table) -> None:
        self.table.upsert(data, on=["id"])

    def delete(self) -> None:
        self.table.delete("n = 5")


class Delta:
    """A table of deltalake."""

    def __init__(self, folder: Path, data: pa.Table) -> None:
        from deltalake import DeltaTable, write_deltalake

        write_deltalake(str(folder), data, partition_by=["part"])
        self.folder, self.kind = str(folder), DeltaTable

    def read(self, columns: list[str] | None = None, where: str | None = None) -> int:
        return int(self._dataset().to_table(columns=columns, filter=_expression(where)).num_rows)

    def count(self, where: str) -> int:
        return int(self._dataset().count_rows(filter=_expression(where)))

    def _dataset(self) -> Any:
        return self.kind(self.folder).to_pyarrow_dataset()

    def update(self) -> None:
        self.kind(self.folder).update({"n": "n + 1"}, predicate="part = 3")

    def upsert(self, data: pa.Table) -> None:
        merge = self.kind(self.folder).merge(data, "s.id = t.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self) -> None:
        self.kind(self.folder).delete("n = 5")


class Parquet:
    """Hive-partitioned Parquet, read by pyarrow."""

    def __init__(self, folder: Path, data: pa.Table) -> None:
        self.partitioning = ds.partitioning(pa.schema([("part", pa.int32())]), flavor="hive")
        ds.write_dataset(data, folder, format="parquet", partitioning=self.partitioning, max_partitions=PARTITIONS * 2)
        self.folder = folder

    def read(self, columns: list[str] | None = None, where: str | None = None) -> int:
        return int(self._dataset().to_table(columns=columns, filter=_expression(where)).num_rows)

    def count(self, where: str) -> int:
        return int(self._dataset().count_rows(filter=_expression(where)))

    def _dataset(self) -> ds.Dataset:
        return ds.dataset(self.folder, format="parquet", partitioning=self.partitioning)


class Duck:
    """The same Parquet, read by DuckDB."""

    def __init__(self, folder: Path) -> None:
        self.source = f"read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"

    def read(self, columns: list[str] | None = None, where: str | None = None) -> int:
        kept = "" if where is None else f"WHERE {where}"
        query = f"SELECT {', '.join(columns or ['*'])} FROM {self.source} {kept}"
        return int(duckdb.sql(query).to_arrow_table().num_rows)

    def count(self, where: str) -> int:
        return int(duckdb.sql(f"SELECT count(*) FROM {self.source} WHERE {where}").fetchall()[0][0])


_EXPRESSIONS: dict[str, pc.Expression] = {
    "part = 3": pc.field("part") == 3,
    "n < 100": pc.field("n") < 100,
    "n = 7": pc.field("n") == 7,
    "id = 12345": pc.field("id") == 12345,
}


def _expression(where: str | None) -> pc.Expression | None:
    return None if where is None else _EXPRESSIONS[where]


def _timed(action: Callable[[], object], runs: int = _RUNS) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times) * 1_000


READS: dict[str, Callable[[Any], object]] = {
    "one column": lambda table: table.read(["x"]),
    "all columns": lambda table: table.read(),
    "one partition": lambda table: table.read(None, "part = 3"),
    "rows that match": lambda table: table.read(["id", "n"], "n < 100"),
    "count with a filter": lambda table: table.count("n = 7"),
    "point look-up": lambda table: table.read(None, "id = 12345"),
}


def run(report: Report) -> None:
    """Every figure beside the best of the peers that can do it."""
    data = rows()
    folder = Path(tempfile.mkdtemp())
    try:
        kinds: dict[str, Callable[[Path, pa.Table], Any]] = {"ours": Ours, "pyarrow": Parquet}
        try:
            import deltalake

            kinds["deltalake"] = Delta
            report.note(f"deltalake {deltalake.__version__}, {ROWS:,} rows in {PARTITIONS} partitions, milliseconds")
        except ImportError:
            report.note("deltalake is not installed: left out")
        made: dict[str, Any] = {}
        times: dict[str, float] = {}
        for name, kind in kinds.items():
            times[name] = _timed(lambda name=name, kind=kind: made.update({name: kind(folder / name, data)}), 1)
        _beside(report, "ingest", times)
        made["duckdb"] = Duck(folder / "pyarrow")
        for what, action in READS.items():
            _beside(report, what, {name: _timed(lambda t=table, a=action: a(t)) for name, table in made.items()})
        changed = data.slice(0, max(1, ROWS // 100)).set_column(3, "n", pa.array([1] * max(1, ROWS // 100)))
        writers = {name: table for name, table in made.items() if hasattr(table, "update")}
        _beside(report, "update", {name: _timed(table.update, 1) for name, table in writers.items()})
        upserts = {name: _timed(lambda t=table: t.upsert(changed), 1) for name, table in writers.items()}
        _beside(report, "upsert of 1 %", upserts)
        _beside(report, "delete", {name: _timed(table.delete, 1) for name, table in writers.items()})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _beside(report: Report, what: str, times: dict[str, float]) -> None:
    peers = {name: value for name, value in times.items() if name != "ours"}
    if not peers:
        report.note(f"{what}: {times['ours']:.1f}, no peer")
        return
    best = min(peers, key=lambda name: peers[name])
    report.add(f"{what}, beside {best}", times["ours"], peers[best])
