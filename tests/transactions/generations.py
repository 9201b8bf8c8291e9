"""What the processes of a race of searches do: every commit moves all rows to the next generation and adds some."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lancepart as lp
from lancepart.errors import ConcurrentModificationError, TableIndexNotFoundError
from lancepart.read import search_vectors
from tests.support.catalogs import Place
from tests.transactions.tables import opened

WIDTH, FIRST, MORE, LAST = 4, 120, 5, 8
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("generation", pa.int32()),
        ("body", pa.string()),
        ("v", pa.list_(pa.float32(), WIDTH)),
    ]
)


def rows(start: int, count: int, generation: int) -> pa.Table:
    draw = np.random.default_rng(start)
    made = [
        {"id": at, "k": "abcd"[at % 4], "generation": generation, "body": f"w{at % 5}", "v": draw.random(WIDTH)}
        for at in range(start, start + count)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def generation(table: Any) -> int:
    return int(table.scan(columns=["generation"], limit=1).to_arrow()["generation"][0].as_py())


def write(place: Place, _: int) -> int:
    """Go on to the last generation; the losses to others are tried again."""
    table, done = opened(place), 0
    while (now := generation(table)) < LAST:
        try:
            with table.transaction() as tx:
                tx.update({"generation": str(now + 1)}, "true")
                tx.append(rows(FIRST + MORE * now, MORE, now + 1))
            done += 1
        except ConcurrentModificationError:
            continue
    return done


def keep_up(place: Place, number: int) -> int:
    """Index, compact, publish and expire until the last generation is there, and once more."""
    table, draw, done, over = opened(place), random.Random(number), 0, False
    keep = table.maintenance
    steps: list[Callable[[], Any]] = [
        lambda: keep.compact(progress=False),
        lambda: keep.optimize_indices(progress=False),
        lambda: keep.create_index("v", scope=draw.choice(("leaf", "table")), num_partitions=2, progress=False),
        lambda: keep.create_index("body", "FTS", scope="table", progress=False),
        lambda: keep.create_index("id", scope=draw.choice(("leaf", "table")), progress=False),
        lambda: keep.drop_index(draw.choice(("v_idx", "body_idx", "id_idx")), progress=False),
        lambda: keep.expire(timedelta(0), progress=False),
        table.publish_lance,
    ]
    while not over:
        over = generation(table) == LAST
        try:
            draw.choice(steps)()
            done += 1
        except (ConcurrentModificationError, TableIndexNotFoundError):
            continue
    return done


def read(place: Place, number: int) -> int:
    """Search until the last generation is there; each answer is that of one snapshot. Every second one reads."""
    if number % 2:
        search_vectors.LEAF_BYTES = search_vectors.UNION_BYTES = search_vectors._INDEX_BYTES = 0
    table, done, seen = opened(place), 0, 0
    query, columns = [0.0] * WIDTH, ["id", "generation"]
    while seen < LAST:
        at = done % FIRST
        near = table.search(query, "v", k=1_000, columns=columns, minimum_nprobes=10).to_arrow()
        seen = whole(near)
        whole(table.search("w0 w1 w2 w3 w4", "body", k=1_000, columns=columns).to_arrow())
        whole(table.to_lance().to_table(columns=columns))
        some = table.search(query, "v", k=1_000, where=f"k = 'b' OR id = {at}", columns=columns).to_arrow()
        whole(some, at)
        assert table.scan(f"id = {at}").to_arrow()["id"].to_pylist() == [at]
        done += 1
    return done


def whole(found: pa.Table, at: int | None = None) -> int:
    """Check that rows are those of one generation, each once; which one that is.

    All of it, or with a number those of the second partition and the one with that number.
    """
    now = set(found["generation"].to_pylist())
    assert len(now) == 1, now
    there = [each for each in range(FIRST + MORE * min(now)) if at is None or each % 4 == 1 or each == at]
    assert sorted(found["id"].to_pylist()) == there
    return int(min(now))


def check_published(place: Place) -> None:
    table = opened(place)
    assert whole(lance.dataset(table.publish_lance().uri).to_table()) == LAST
    assert lp.open_table(place.root).inspect.broken_indices().num_rows == 0
