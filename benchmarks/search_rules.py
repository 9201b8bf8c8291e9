"""Where one way of searching becomes faster than another: the measurements behind the constants of searches.

``python -m benchmarks.search_rules [rule …]`` prints a table for each rule: wall and CPU milliseconds of a search, the
median of queries that take turns. It is no suite of ``make bench``: run it again when Lance or the machine changes, and
set the constants that the tables name by what they show. It takes about four minutes.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import lancepart as lp
from benchmarks.search import _clustered
from lancepart.maintain import indices
from lancepart.read import search_vectors

WIDTH, K, QUERIES = 64, 10, 15
COLUMNS = ["id"]
MEBIBYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Made:
    """A table of leaves of one size, and queries near its rows."""

    table: lp.PartitionedTable
    queries: Any


def _made(folder: str, leaves: int, rows: int, width: int = WIDTH) -> Made:
    draw = np.random.default_rng(leaves * rows)
    vectors = _clustered(draw, leaves * rows, width)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width)
    tenants = np.repeat(np.arange(leaves), rows)
    held = pa.table({"id": np.arange(len(vectors)), "tenant": tenants, "v": column})
    table = lp.create_table(f"{folder}/{leaves}x{rows}x{width}", held.schema, ["tenant"])
    table.append(held)
    near = vectors[draw.integers(0, len(vectors), QUERIES)]
    return Made(table=table, queries=near + draw.normal(scale=0.3, size=near.shape).astype("f4"))


@contextmanager
def _set(module: Any, **values: int) -> Iterator[None]:
    """Other constants for a while."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _rules(**values: int) -> AbstractContextManager[None]:
    return _set(search_vectors, **values)


def _timed(ways: dict[str, Callable[[int], object]]) -> dict[str, str]:
    """Wall and CPU milliseconds of each way, after all queries were made once."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(2):
        for at in range(QUERIES):
            for name, call in ways.items():
                wall, cpu = time.perf_counter(), time.process_time()
                call(at)
                if turn:
                    spent[name].append((1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)))
    return {
        name: " / ".join(f"{each:.1f}" for each in np.median(values, axis=0).tolist()) for name, values in spent.items()
    }


def _table(title: str, rows: list[dict[str, object]]) -> None:
    print(f"\n{title}\n")
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n" + "|" + " --- |" * len(names))
    for row in rows:
        print("| " + " | ".join(str(row[name]) for name in names) + " |", flush=True)


def memory(folder: str) -> None:
    """One leaf: in memory, by its index, row by row."""
    shown = []
    for rows in (1_000, 2_000, 4_000, 8_000, 16_000, 64_000, 128_000, 256_000):
        made = _made(folder, 1, rows)
        with _set(indices, LEAST_VECTORS=1):
            made.table.maintenance.create_index("v", "IVF_FLAT", scope="leaf", progress=False)

        def search(at: int, made: Made = made, **options: Any) -> object:
            return made.table.search(made.queries[at], "v", K, columns=COLUMNS, **options).to_arrow()

        def by_index(at: int, search: Callable[..., object] = search) -> object:
            with _rules(LEAF_BYTES=0, UNION_BYTES=0, _INDEX_BYTES=0):
                return search(at)

        def flat(at: int, search: Callable[..., object] = search) -> object:
            with _rules(LEAF_BYTES=0, UNION_BYTES=0):
                return search(at, exact=True)

        ways = {"in memory": search, "index": by_index, "flat": flat}
        size = f"{rows * WIDTH * 4 / MEBIBYTE:.1f}"
        with _rules(LEAF_BYTES=1 << 40, UNION_BYTES=1 << 40):
            shown.append({"rows": rows, "MiB": size, **_timed(ways)})
    _table(
        "LEAF_BYTES: in memory against index. UNION_BYTES: in memory against flat. LEAST_VECTORS: flat, index", shown
    )


def many(folder: str) -> None:
    """Twenty leaves without a table-wide index: all row by row in one pass, or each by its own index."""
    shown = []
    for rows in (2_000, 4_000, 8_000, 16_000):
        made = _made(folder, 20, rows)
        with _set(indices, LEAST_VECTORS=1):
            made.table.maintenance.create_index("v", "IVF_FLAT", scope="leaf", progress=False)

        def ask(at: int, least: int, made: Made = made) -> object:
            with _rules(LEAF_BYTES=0, UNION_BYTES=0, _INDEX_BYTES=least):
                return made.table.search(made.queries[at], "v", K, columns=COLUMNS).to_arrow()

        ways = {"flat together": lambda at, ask=ask: ask(at, 1 << 40), "index of each": lambda at, ask=ask: ask(at, 0)}
        shown.append({"rows a leaf": rows, "MiB a leaf": f"{rows * WIDTH * 4 / MEBIBYTE:.1f}", **_timed(ways)})
    _table("_INDEX_BYTES: twenty leaves together, flat or by their indices", shown)


def coverage(folder: str) -> None:
    """Twenty leaves with both kinds of index, of which the table-wide one lacks some rows."""
    rows = 16_000
    made = _made(folder, 20, rows)
    made.table.maintenance.create_index("v", "IVF_FLAT", scope="table", name="whole", progress=False)
    shown = []
    added = 0
    for more in (0, 500, 1_000, 1_500, 2_000):
        if more:
            added += more
            made.table.append(_more(20, more, added))
        made.table.maintenance.create_index("v", "IVF_FLAT", scope="leaf", name="own", progress=False)

        def ask(at: int, flat: int) -> object:
            with _rules(LEAF_BYTES=0, UNION_BYTES=0, _INDEX_BYTES=0, _FLAT_BYTES=flat):
                return made.table.search(made.queries[at], "v", K, columns=COLUMNS).to_arrow()

        ways = {"table-wide and flat": lambda at: ask(at, 1 << 40), "index of each": lambda at: ask(at, -1)}
        with _rules(LEAF_BYTES=0, UNION_BYTES=0, _FLAT_BYTES=1 << 40):
            plan = made.table.search(made.queries[0], "v", K, columns=COLUMNS).explain()
        lacking = next((line for line in plan.splitlines() if "searched" in line), "")
        shown.append({"KiB lacking a leaf": added * WIDTH * 4 >> 10, **_timed(ways), "plan": lacking[9:]})
    _table("_FLAT_BYTES: a table-wide index that lacks rows, or the index of each leaf", shown)


def _more(leaves: int, rows: int, start: int) -> pa.Table:
    vectors = _clustered(np.random.default_rng(start), leaves * rows, WIDTH)
    return pa.table(
        {
            "id": np.arange(len(vectors)) + 10_000_000 * start,
            "tenant": np.repeat(np.arange(leaves), rows),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), WIDTH),
        }
    )


def refine(folder: str) -> None:
    """Recall and time of an index that estimates distances, by how many rows are ranked again."""
    made = _made(folder, 1, 64_000)
    made.table.maintenance.create_index("v", "IVF_PQ", scope="leaf", num_sub_vectors=16, progress=False)
    shown = []
    with _rules(LEAF_BYTES=0, UNION_BYTES=0):
        for factor in (1, 2, 5, 10, 20):

            def ask(at: int, factor: int = factor) -> object:
                found = made.table.search(made.queries[at], "v", K, columns=COLUMNS, refine_factor=factor)
                return found.to_arrow()

            recall = made.table.search(made.queries[0], "v", K, refine_factor=factor).recall(50)
            shown.append({"refine_factor": factor, "recall": f"{recall:.3f}", **_timed({"search": ask})})
    _table("REFINED: IVF_PQ of 16 bytes a vector", shown)


RULES = {each.__name__: each for each in (memory, many, coverage, refine)}


def main() -> None:
    os.environ.setdefault("LANCE_LOG", "error")
    for name in sys.argv[1:] or RULES:
        folder = tempfile.mkdtemp()
        try:
            RULES[name](folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
