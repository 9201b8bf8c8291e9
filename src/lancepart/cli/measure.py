"""``bench``: how long the usual calls take here, on a table of one's own or on one that is made for it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from lancepart.cli.command import Where, command
from lancepart.cli.output import show_rows
from lancepart.cli.shell import Answer, Shell
from lancepart.model.values import logical_type
from lancepart.table import PartitionedTable, create_table, open_table

_SIDE = 32
_TENANTS = 20
_SHOWN = ["call", "runs", "best_ms", "median_ms", "rows"]
Call = Callable[[], int | None]
"""What is measured; it answers how many rows it gives, or None if it gives none."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(bench)


def bench(
    shell: Shell,
    root: Annotated[
        str | None, typer.Argument(help="A table, which is only read; a temporary one unless given.", metavar="[TABLE]")
    ] = None,
    where: Where = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="How often each call is measured.")] = 5,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of the temporary table.")] = 100_000,
) -> Answer:
    """Measure how long opening, planning, counting, reading and searching take; nothing is written to TABLE."""
    if root is not None:
        table = shell.table(root)
        found = [_measured(name, call, runs) for name, call in calls(table, where, lambda: shell.table(root)).items()]
    else:
        with tempfile.TemporaryDirectory(prefix="lancepart-bench-") as place:
            data = _events(rows)
            table = create_table(f"{place}/events", data.schema, ["tenant"])
            append = _measured("append", lambda: _appended(table, data), 1)
            reads = calls(table, where or "tenant = 'tenant-03'", lambda: open_table(table.root))
            found = [append, *(_measured(name, call, runs) for name, call in reads.items())]
    return Answer(payload=found, show=lambda console: show_rows(console, found, _SHOWN))


def calls(table: PartitionedTable, where: str | None, reopen: Callable[[], PartitionedTable]) -> dict[str, Call]:
    """The calls that are measured, each with how many rows it gives."""
    found: dict[str, Call] = {
        "open": lambda: _nothing(reopen()),
        "plan": lambda: _nothing(table.scan(where).plan()),
        "count": table.count_rows,
        "head": lambda: table.head(10).num_rows,
        "scan": lambda: sum(batch.num_rows for batch in table.scan().to_batches()),
    }
    if where is not None:
        found["filter"] = lambda: table.scan(where).to_arrow().num_rows
    vectors = [field for field in table.schema if _is_vector(field.type)]
    if vectors:
        name, length = vectors[0].name, logical_type(vectors[0].type).list_size
        query = [1.0] * length
        found[f"search {name}"] = lambda: table.search(query, name, 10, where).to_arrow().num_rows
    return found


def _is_vector(kind: pa.DataType) -> bool:
    plain = logical_type(kind)
    return bool(pa.types.is_fixed_size_list(plain) and pa.types.is_floating(plain.value_type))


def _measured(name: str, call: Call, runs: int) -> dict[str, object]:
    spent: list[float] = []
    rows: int | None = None
    for _ in range(runs):
        start = time.perf_counter()
        rows = call()
        spent.append((time.perf_counter() - start) * 1000)
    times = {"best_ms": round(min(spent), 2), "median_ms": round(median(spent), 2)}
    return {"call": name, "runs": runs, **times, "rows": rows}


def _nothing(_made: object) -> None:
    """Something was made, and no rows of it read."""


def _appended(table: PartitionedTable, data: pa.Table) -> int:
    table.append(data)
    return int(data.num_rows)


def _events(count: int) -> pa.Table:
    rng = np.random.default_rng(7)
    vectors = pa.array(rng.random(count * _SIDE, dtype=np.float32))
    return pa.table(
        {
            "id": np.arange(count),
            "tenant": [f"tenant-{number:02d}" for number in rng.integers(0, _TENANTS, count)],
            "amount": rng.random(count),
            "embedding": pa.FixedSizeListArray.from_arrays(vectors, _SIDE),
        }
    )
