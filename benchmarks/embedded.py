"""Reads and writes in one process beside deltalake, PyIceberg, and pyarrow and DuckDB on Hive-partitioned Parquet."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import lancepart as lp
from benchmarks.report import Report, measure, sized

ROWS = sized(2_000_000, 300_000, "LANCEPART_ROWS", large=20_000_000)
PARTITIONS = 64
RUNS = sized(7, 3)


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

    def delete(self, where: str) -> None:
        self.table.delete(where)


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

    def delete(self, where: str) -> None:
        self.kind(self.folder).delete(where)


class Iceberg:
    """A table of PyIceberg, whose catalog is a file of SQLite."""

    def __init__(self, folder: Path, data: pa.Table) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        folder.mkdir()
        catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("bench")
        self.table = catalog.create_table("bench.rows", schema=data.schema)
        with self.table.update_spec() as spec:
            spec.add_identity("part")
        self.table.append(data)

    def read(self, columns: list[str] | None = None, where: str | None = None) -> int:
        fields = tuple(columns or ["*"])
        return int(self.table.scan(where or "true", selected_fields=fields).to_arrow().num_rows)

    def count(self, where: str) -> int:
        return int(self.table.scan(where).count())

    def delete(self, where: str) -> None:
        self.table.delete(where)


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


READS: dict[str, Callable[[Any], object]] = {
    "one column": lambda table: table.read(["x"]),
    "all columns": lambda table: table.read(),
    "one partition": lambda table: table.read(None, "part = 3"),
    "rows that match": lambda table: table.read(["id", "n"], "n < 100"),
    "count with a filter": lambda table: table.count("n = 7"),
    "point look-up": lambda table: table.read(None, "id = 12345"),
}


NAMES = {
    "pyarrow": "pyarrow, Parquet", "duckdb": "DuckDB, Parquet", "deltalake": "deltalake", "pyiceberg": "PyIceberg",
}  # fmt: skip


def optional(report: Report) -> dict[str, Callable[[Path, pa.Table], Any]]:
    """The peers that requirements-bench.txt installs, where they are there."""
    found: dict[str, Callable[[Path, pa.Table], Any]] = {}
    for name, kind in (("deltalake", Delta), ("pyiceberg", Iceberg)):
        if importlib.util.find_spec(name) is None:
            report.note(f"{name} is not installed: left out")
        else:
            found[name] = kind
    return found


def run(report: Report) -> None:
    """Every figure beside each peer that can do it."""
    data = rows()
    folder = Path(tempfile.mkdtemp())
    try:
        report.note(f"{ROWS:,} rows in {PARTITIONS} partitions")
        kinds: dict[str, Callable[[Path, pa.Table], Any]] = {"ours": Ours, "pyarrow": Parquet, **optional(report)}
        made: dict[str, Any] = {}

        def ingest(name: str, kind: Callable[[Path, pa.Table], Any]) -> None:
            shutil.rmtree(folder / name, ignore_errors=True)
            made[name] = kind(folder / name, data)

        _beside(report, "ingest", {name: partial(ingest, name, kind) for name, kind in kinds.items()}, runs=3)
        made["duckdb"] = Duck(folder / "pyarrow")
        for what, action in READS.items():
            _beside(report, what, {name: partial(action, table) for name, table in made.items()}, runs=RUNS)
        made["ours"].table.maintenance.create_index("id", "BTREE", scope="table")
        found = {name: partial(READS["point look-up"], table) for name, table in made.items()}
        _beside(report, "point look-up by our index", found, runs=RUNS)
        changed = data.slice(0, max(1, ROWS // 100)).set_column(3, "n", pa.array([1] * max(1, ROWS // 100)))
        writers = {name: table for name, table in made.items() if hasattr(table, "update")}
        _beside(report, "update of one partition", {name: table.update for name, table in writers.items()}, runs=3)
        upserts = {name: partial(table.upsert, changed) for name, table in writers.items()}
        _beside(report, "upsert of 1 % of the rows", upserts, runs=3)
        deletes = {name: _deleting(table) for name, table in made.items() if hasattr(table, "delete")}
        _beside(report, "delete by a filter", deletes, runs=3, warm=0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _deleting(table: Any) -> Callable[[], None]:
    """Delete as many other rows each time."""
    numbers = itertools.count(5)
    return lambda: table.delete(f"n = {next(numbers)}")


HEADLINES = {("ingest", "deltalake"), ("one partition", "pyarrow"), ("upsert of 1 % of the rows", "deltalake")}


def _beside(report: Report, what: str, actions: dict[str, Callable[[], object]], *, runs: int, warm: int = 1) -> None:
    """Ours and all peers in turn."""
    found = {name: each.scaled(1_000) for name, each in measure(actions, runs=runs, warm=warm).items()}
    if len(found) == 1:
        report.note(f"{what}: {found['ours'].median:.1f} ms, no peer")
    for peer, theirs in found.items():
        if peer != "ours":
            headline = (what, peer) in HEADLINES
            report.add(what, found["ours"], theirs, peer=NAMES[peer], unit="ms", headline=headline)
