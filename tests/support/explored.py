"""A warehouse for the explorer: partitions of uneven size, vectors, texts, images, a history."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa

import lancepart as lp
from lancepart.ui.explorer import Explorer
from lancepart.ui.server import Server

TENANTS = ("acme", "birch", "cedar", "dune")
WORDS = ["red", "blue", "green", "quick", "slow", "fox", "river", "stone", "paper", "light"]


def png(color: tuple[int, int, int], side: int = 24) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(color) * side for _ in range(side))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def rows(first: int, count: int, names: str = "note") -> pa.Table:
    """Events of tenants, most of the first one."""
    rng = np.random.default_rng(first)
    tenants = rng.choice(TENANTS, count, p=[0.6, 0.2, 0.15, 0.05])
    vectors = rng.normal(size=(count, 8)).astype("float32")
    return pa.table(
        {
            "id": range(first, first + count),
            "tenant": tenants,
            "day": [date(2026, 1, 1) + timedelta(days=int(each)) for each in rng.integers(0, 90, count)],
            names: [" ".join(rng.choice(WORDS, 4)) for _ in range(count)],
            "embedding": pa.array(list(vectors), pa.list_(pa.float32(), 8)),
            "photo": [png((int(n) % 256, 120, 90)) if n % 2 else None for n in range(count)],
        }
    )


def warehouse(root: Path) -> None:
    """``shop.events`` with a history, ``shop.orders``."""
    db = lp.connect(root)
    db.create_namespace("shop")
    table = db.create_table("shop.events", rows(0, 2).schema, ["tenant", "month(day)"])
    table.append(rows(0, 200))
    table.tags.create("first", table.version)
    table.append(rows(200, 100))
    table.delete("tenant = 'dune'")
    table.add_column(pa.field("channel", pa.string()))
    table.rename_column("note", "comment")
    table.update_spec(["tenant", "month(day)", "bucket(id, 2)"])
    table.append(rows(300, 60, "comment"))
    table.maintenance.create_index("id", "BTREE")
    orders = db.create_table("shop.orders", pa.schema([("id", pa.int64()), ("region", pa.string())]), ["region"])
    orders.append(pa.table({"id": range(8), "region": ["eu", "us"] * 4}))


@contextmanager
def serving(explorer: Explorer, **options: str) -> Iterator[Server]:
    """The explorer's server on a free port, ended afterwards."""
    server = Server(explorer, **options)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
