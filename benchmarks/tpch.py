"""TPC-H through ``lp.connect(…).sql`` beside DuckDB and DataFusion on the same Parquet; answers are compared too."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import lancepart as lp
from benchmarks.report import Report

GENERATOR = "duckdb==0.10.3"
"""The last release of DuckDB whose wheel holds the generator; it goes into a directory of its own."""

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
_GENERATE = """
import duckdb, json, sys
folder, scale = sys.argv[1:]
connection = duckdb.connect()
connection.execute(f"CALL dbgen(sf={scale})")
for (name,) in connection.execute("SHOW TABLES").fetchall():
    connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
queries = dict(connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
json.dump(queries, open(f"{folder}/queries.json", "w"))
"""


def generator() -> str | None:
    """The directory of the generator, installed if need be; None if it can't be had."""
    folder = Path(__file__).parent.parent / "build" / "tpch"
    if not folder.exists():
        wanted = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), GENERATOR]
        if subprocess.run(wanted, check=False, capture_output=True).returncode:
            return None
    return str(folder)


def generate(folder: Path, scale: float) -> dict[int, str] | None:
    """Write TPC-H's tables as Parquet; the texts of its queries, None if the generator can't be had."""
    found = generator()
    if found is None:
        return None
    environment = {**os.environ, "PYTHONPATH": found}
    subprocess.run([sys.executable, "-c", _GENERATE, str(folder), str(scale)], check=True, env=environment)
    return {
        int(number): text.rstrip().rstrip(";")
        for number, text in json.loads((folder / "queries.json").read_text()).items()
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


def _seconds(action: Callable[[], object]) -> float:
    action()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def run(report: Report, scale: float = float(os.environ.get("LANCEPART_TPCH", "1"))) -> None:
    """Time all queries; the geometric means say how many times the speed of the others ours is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        queries = generate(folder, scale)
        if queries is None:
            report.note(f"{GENERATOR} can't be installed: left out")
            return
        ours, duck, fusion = warehouse(folder), in_duckdb(folder), in_datafusion(folder)
        ratios: dict[str, list[float]] = {"duckdb": [], "datafusion": []}
        for number, text in queries.items():
            assert same(ours.sql(text).to_arrow(), duck.sql(text).to_arrow_table()), f"query {number} differs"
            own = _seconds(lambda text=text: ours.sql(text).to_arrow())
            peers = {
                "duckdb": _seconds(lambda text=text: duck.sql(text).to_arrow_table()),
                "datafusion": _seconds(lambda text=text: fusion.sql(text).to_arrow_table()),
            }
            for peer, seconds in peers.items():
                ratios[peer].append(seconds / own)
            report.add(f"query {number}, ms, beside DuckDB", own * 1_000, peers["duckdb"] * 1_000)
        for peer, found in ratios.items():
            report.note(f"geometric mean, times the speed of {peer}: {statistics.geometric_mean(found):.2f}")
