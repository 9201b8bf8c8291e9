"""TPC-H through ``lp.connect(…).sql`` beside DuckDB and DataFusion on the same Parquet; answers are compared too.

The queries run as any later ones do, with columns in memory, and once more with a cache that keeps nothing.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import lancepart as lp
from benchmarks.report import QUICK, Report, measure
from benchmarks.tpc_data import GENERATOR, generate

PARTITIONS = {
    "lineitem": ["years(l_shipdate)"],
    "orders": ["years(o_orderdate)"],
    "customer": ["bucket(4, c_custkey)"],
    "part": ["bucket(4, p_partkey)"],
    "partsupp": ["bucket(4, ps_partkey)"],
    "supplier": ["bucket(2, s_suppkey)"],
    "nation": ["n_regionkey"],
    "region": ["r_regionkey"],
}


def warehouse(folder: Path) -> lp.Connection:
    """The tables of a folder as partitioned tables of a warehouse beside it."""
    made = lp.connect(folder / "warehouse")
    for name, partition_by in PARTITIONS.items():
        rows = pq.read_table(folder / f"{name}.parquet")
        made.create_table(name, rows.schema.remove_metadata(), partition_by).append(rows)
    return made


def in_duckdb(folder: Path) -> duckdb.DuckDBPyConnection:
    """The same tables as views of DuckDB."""
    connection = duckdb.connect()
    for name in PARTITIONS:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    return connection


def in_datafusion(folder: Path) -> SessionContext:
    """The same tables as DataFusion reads Parquet itself."""
    context = SessionContext()
    for name in PARTITIONS:
        context.register_parquet(name, str(folder / f"{name}.parquet"))
    return context


def same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether two answers have the same rows, numbers compared to nine digits."""
    one, other = (sorted(tuple(map(_plain, row.values())) for row in table.to_pylist()) for table in (ours, theirs))
    if len(one) != len(other):
        return False
    pairs = [pair for a, b in zip(one, other, strict=True) for pair in zip(a, b, strict=True)]
    return all(_equal(a, b) for a, b in pairs)


def _plain(value: Any) -> tuple[str, Any]:
    try:
        return "number", round(float(value), 2)
    except (TypeError, ValueError):
        return "text", str(value)


def _equal(one: Any, other: Any) -> bool:
    if one[0] == other[0] == "number":
        return math.isclose(one[1], other[1], rel_tol=1e-6, abs_tol=0.011)
    return bool(one == other)


def run(report: Report, scale: float = float(os.environ.get("LANCEPART_TPCH", "0.05" if QUICK else "0.5"))) -> None:
    """Time all queries; the geometric means say how many times the speed of the others ours is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        queries = generate(folder, scale)
        if queries is None:
            report.note(f"{GENERATOR} can't be installed: left out")
            return
        ours, duck, fusion = warehouse(folder), in_duckdb(folder), in_datafusion(folder)
        _time(report, scale, queries, ours, {"DuckDB": duck, "DataFusion": fusion})
        size, lp.config.cache_bytes = lp.config.cache_bytes, 0
        try:
            _time(report, scale, queries, ours, {"DuckDB": duck, "DataFusion": fusion}, how=", nothing kept in memory")
        finally:
            lp.config.cache_bytes = size


def _time(
    report: Report, scale: float, queries: dict[int, str], ours: lp.Connection, peers: dict[str, Any], how: str = ""
) -> None:
    """Each query beside the peers, and the means."""
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    for number, text in queries.items():
        theirs = peers["DuckDB"].sql(text).to_arrow_table()
        assert same(ours.sql(text).to_arrow(), theirs), f"query {number} differs"
        actions: dict[str, Callable[[], object]] = {"lancepart": lambda text=text: ours.sql(text).to_arrow()}
        for name, peer in peers.items():
            actions[name] = lambda text=text, peer=peer: peer.sql(text).to_arrow_table()
        found = {name: each.scaled(1_000) for name, each in measure(actions, runs=3).items()}
        for name, speeds in ratios.items():
            speeds.append(found[name].median / found["lancepart"].median)
            report.add(f"query {number}{how}", found["lancepart"], found[name], peer=f"{name}, Parquet", unit="ms")
    for name, speeds in ratios.items():
        title = f"TPC-H at scale {scale:g}, geometric mean of {len(speeds)} queries{how}"
        report.add(title, 1.0, statistics.geometric_mean(speeds), peer=name, unit="relative", headline=True)
