"""Commits beside deltalake and PyIceberg (with its SQLite catalog), on the same rows, in one run."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

import lancepart as lp
from benchmarks.report import Report

SCHEMA = pa.schema([("id", pa.int64()), ("tenant", pa.int32()), ("text", pa.string())])
ROWS = 100
ALONE = 60
WRITERS = 4
SECONDS = 10.0
AGES = (10, 1_000, 5_000)
SAMPLE = 50
MANY = 1_000


class Peer(Protocol):
    """A table that takes appends."""

    def append(self, rows: pa.Table) -> None: ...


def run(report: Report) -> None:
    """All figures; LANCEPART_BENCH_SHORT leaves out the longest history."""
    os.environ.setdefault("LANCE_LOG", "error")
    alone = {name: _alone(name) for name in PEERS}
    contended = {name: _contended(name) for name in PEERS}
    for name in ("deltalake", "pyiceberg"):
        report.add(f"one writer, ms a commit, against {name}", alone["lancepart"], alone[name], better="lower")
        ours, theirs = contended["lancepart"], contended[name]
        label = f"{WRITERS} writers on disjoint partitions, commits/s, against {name}"
        report.add(label, ours[0], theirs[0], better="higher")
        report.add(f"{WRITERS} writers, ms a commit, against {name}", ours[1], theirs[1], better="lower")
        report.add(f"{WRITERS} writers, failed commits, against {name}", ours[2], theirs[2], better="lower")
    _many_partitions(report)
    _history(report)


def rows(tenant: int, count: int = ROWS) -> pa.Table:
    """A small batch of one partition."""
    return pa.table(
        [
            pa.array(range(count), pa.int64()),
            pa.array([tenant] * count, pa.int32()),
            pa.array([f"row {i}" for i in range(count)]),
        ],
        schema=SCHEMA,
    )


class Ours:
    """A table of ours."""

    def __init__(self, folder: str) -> None:
        root = f"{folder}/lancepart"
        made = os.path.exists(root)
        self.table = lp.open_table(root) if made else lp.create_table(root, SCHEMA, ["tenant"])

    def append(self, rows: pa.Table) -> None:
        self.table.append(rows)


class Delta:
    """A Delta table."""

    def __init__(self, folder: str) -> None:
        import deltalake

        self.write, self.root = deltalake.write_deltalake, f"{folder}/delta"
        if not os.path.exists(self.root):
            deltalake.DeltaTable.create(self.root, deltalake.Schema.from_arrow(SCHEMA), partition_by=["tenant"])
        self.table = deltalake.DeltaTable(self.root)

    def append(self, rows: pa.Table) -> None:
        self.write(self.table, rows, mode="append")


class Iceberg:
    """An Iceberg table in a SQLite catalog."""

    def __init__(self, folder: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import CommitFailedException

        self.conflict = CommitFailedException
        catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace_if_not_exists("ns")
        if not catalog.table_exists("ns.t"):
            empty = catalog.create_table("ns.t", SCHEMA)
            with empty.update_spec() as change:
                change.add_identity("tenant")
        self.table = catalog.load_table("ns.t")

    def append(self, rows: pa.Table) -> None:
        for _ in range(100):
            try:
                self.table.append(rows)
                return
            except self.conflict:
                self.table.refresh()
        raise RuntimeError("a hundred conflicts")


PEERS: dict[str, Callable[[str], Peer]] = {"lancepart": Ours, "deltalake": Delta, "pyiceberg": Iceberg}


def _alone(name: str) -> float:
    """The median milliseconds of a commit to one of eight partitions."""
    with tempfile.TemporaryDirectory() as folder:
        table = PEERS[name](folder)
        spent = [_timed(table, rows(i % 8)) for i in range(ALONE)]
        return statistics.median(spent[10:])


def _timed(table: Peer, data: pa.Table) -> float:
    start = time.perf_counter()
    table.append(data)
    return (time.perf_counter() - start) * 1000


def _contended(name: str) -> tuple[float, float, float]:
    """Commits a second of several processes together, the median milliseconds of one, and how many failed."""
    with tempfile.TemporaryDirectory() as folder:
        first = PEERS[name](folder)
        for tenant in range(WRITERS):
            first.append(rows(tenant))
        context = multiprocessing.get_context("spawn")
        barrier, results = context.Barrier(WRITERS), context.SimpleQueue()
        workers = [
            context.Process(target=_writer, args=(name, folder, tenant, barrier, results)) for tenant in range(WRITERS)
        ]
        for worker in workers:
            worker.start()
        found = [results.get() for _ in workers]
        for worker in workers:
            worker.join()
    spent = [each for times, _ in found for each in times]
    return len(spent) / SECONDS, statistics.median(spent), sum(failed for _, failed in found)


def _writer(name: str, folder: str, tenant: int, barrier: Any, results: Any) -> None:
    table, data = PEERS[name](folder), rows(tenant)
    barrier.wait()
    spent, failed = [], 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            spent.append(_timed(table, data))
        except Exception:
            failed += 1
    results.put((spent, failed))


def _many_partitions(report: Report) -> None:
    """One commit to a thousand partitions that exist, first made by one commit."""
    data = pa.table(
        [
            pa.array(range(MANY), pa.int64()),
            pa.array(range(MANY), pa.int32()),
            pa.array(["x"] * MANY),
        ],
        schema=SCHEMA,
    )
    spent: dict[str, tuple[float, float]] = {}
    for name, make in PEERS.items():
        with tempfile.TemporaryDirectory() as folder:
            table = make(folder)
            spent[name] = (_timed(table, data) / 1000, _timed(table, data) / 1000)
    for name in ("deltalake", "pyiceberg"):
        label = f"one commit that makes {MANY} partitions, s, against {name}"
        report.add(label, spent["lancepart"][0], spent[name][0], better="lower")
        label = f"one commit to {MANY} partitions that exist, s, against {name}"
        report.add(label, spent["lancepart"][1], spent[name][1], better="lower")


def _history(report: Report) -> None:
    """The latency of a commit after more and more of them."""
    ages = AGES[:2] if os.environ.get("LANCEPART_BENCH_SHORT") else AGES
    figures: dict[str, list[float]] = {}
    for name, make in PEERS.items():
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = _latencies(make(folder), ages if name == "lancepart" else ages[:2])
    for name in ("deltalake", "pyiceberg"):
        for age, ours, theirs in zip(ages[:2], figures["lancepart"], figures[name], strict=False):
            report.add(f"ms a commit after {age} commits, against {name}", ours, theirs, better="lower")
    for age, ours in zip(ages[1:], figures["lancepart"][1:], strict=True):
        report.add(f"ms a commit after {age} commits, against after {ages[0]}", ours, figures["lancepart"][0])


def _latencies(table: Peer, ages: tuple[int, ...]) -> list[float]:
    found, done = [], 0
    for age in ages:
        while done < age:
            with contextlib.suppress(RuntimeError):
                table.append(rows(done % 8, 1))
            done += 1
        found.append(statistics.median(_timed(table, rows(i % 8, 1)) for i in range(SAMPLE)))
        done += SAMPLE
    return found
