"""A storage-partitioned join of orders with customers, 16 buckets with 8, beside DataFusion over Parquet.

The peer shuffles as it sees fit on all cores; both hand over every joined row, batch by batch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import lancepart as lp
from benchmarks.report import Report, sized

ORDERS = sized(4_000_000, 1_000_000, "LANCEPART_BENCH_ORDERS", large=20_000_000)
CUSTOMERS = ORDERS // 10
RUNS = sized(5, 3)
PEER = "DataFusion, Parquet"
COLUMNS = ["order_id", "customer_id", "amount", "name"]
SQL = "SELECT order_id, customer_id, amount, name FROM orders JOIN customers ON customer_id = id"


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        orders, customers = _make(folder)
        join = orders.join(customers, on=[("customer_id", "id")], columns=COLUMNS)
        size = f"join of {ORDERS:,} with {CUSTOMERS:,} rows"
        _compare(report, size, join.to_batches, lambda: _parquet(folder, SQL))
        some = "customer_id < 1000"
        few = orders.join(customers, on=[("customer_id", "id")], columns=COLUMNS, where=some)
        _compare(
            report, "the same, of 1,000 customers", few.to_batches, lambda: _parquet(folder, f"{SQL} WHERE {some}")
        )
        semi = orders.join(customers, on=[("customer_id", "id")], how="semi", columns=["order_id"])
        text = "SELECT order_id FROM orders LEFT SEMI JOIN customers ON customer_id = id"
        _compare(report, "semi join of the same", semi.to_batches, lambda: _parquet(folder, text))
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


def _compare(
    report: Report, name: str, ours: Callable[[], Iterator[Any]], theirs: Callable[[], Iterator[Any]], **more: bool
) -> None:
    """Both in turn; they must agree on the number of rows."""
    counts: dict[str, int] = {}

    def drained(who: str, batches: Callable[[], Iterator[Any]]) -> None:
        counts[who] = sum(batch.num_rows for batch in batches())

    peers = {PEER: lambda: drained("theirs", theirs)}
    report.compare(name, lambda: drained("ours", ours), peers, runs=RUNS, **more)
    assert counts["ours"] == counts["theirs"], counts
