"""A storage-partitioned join of 8 M orders with 800 k customers, 16 buckets with 8, beside DataFusion over Parquet.

The peer shuffles as it sees fit on all cores; both hand over every joined row, batch by batch.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import lancepart as lp
from benchmarks.report import Report

ORDERS, CUSTOMERS = 8_000_000, 800_000
RUNS = 5
COLUMNS = ["order_id", "customer_id", "amount", "name"]
SQL = "SELECT order_id, customer_id, amount, name FROM orders JOIN customers ON customer_id = id"


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        orders, customers = _make(folder)
        join = orders.join(customers, on=[("customer_id", "id")], columns=COLUMNS)
        ours, theirs = _medians(join.to_batches, lambda: _parquet(folder, SQL))
        report.add("join of 8 M with 800 k rows, median ms (DataFusion, Parquet)", ours, theirs)
        some = "customer_id < 1000"
        few = orders.join(customers, on=[("customer_id", "id")], columns=COLUMNS, where=some)
        ours, theirs = _medians(few.to_batches, lambda: _parquet(folder, f"{SQL} WHERE {some}"))
        report.add("the same, 1000 customers of 800 k, median ms", ours, theirs)
        semi = orders.join(customers, on=[("customer_id", "id")], how="semi", columns=["order_id"])
        text = "SELECT order_id FROM orders LEFT SEMI JOIN customers ON customer_id = id"
        ours, theirs = _medians(semi.to_batches, lambda: _parquet(folder, text))
        report.add("semi join of the same, median ms", ours, theirs)
        report.note(f"groups: {len(join.plan().groups)}")


def _make(folder: str) -> tuple[lp.PartitionedTable, lp.PartitionedTable]:
    rng = np.random.default_rng(0)
    orders = pa.table(
        {
            "order_id": np.arange(ORDERS),
            "customer_id": rng.integers(0, CUSTOMERS, ORDERS),
            "amount": rng.random(ORDERS),
        }
    )
    customers = pa.table({"id": np.arange(CUSTOMERS), "name": [f"customer-{n}" for n in range(CUSTOMERS)]})
    made = []
    for name, rows, by in (("orders", orders, "bucket(customer_id, 16)"), ("customers", customers, "bucket(id, 8)")):
        pq.write_table(rows, f"{folder}/{name}.parquet")
        made.append(lp.create_table(f"{folder}/{name}", rows.schema, [by]))
        made[-1].append(rows)
    return made[0], made[1]


def _parquet(folder: str, sql: str) -> Iterator[Any]:
    context = SessionContext()
    for name in ("orders", "customers"):
        context.register_parquet(name, f"{folder}/{name}.parquet")
    for batch in context.sql(sql).execute_stream():
        yield batch.to_pyarrow()


def _medians(ours: Callable[[], Iterator[Any]], theirs: Callable[[], Iterator[Any]]) -> tuple[float, float]:
    """Both in turn, so that whatever else the machine does hits both; they must agree on the number of rows."""
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(RUNS):
        counts = []
        for call, times in zip((ours, theirs), spent, strict=True):
            start = time.perf_counter()
            counts.append(sum(batch.num_rows for batch in call()))
            times.append((time.perf_counter() - start) * 1000)
        assert counts[0] == counts[1], counts
    return statistics.median(spent[0]), statistics.median(spent[1])
