"""Commits beside deltalake and PyIceberg (with its SQLite catalog), on the same rows, in one run."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

import lancepart as lp
from benchmarks.report import LARGE, QUICK, Report, Timing, cpu_seconds, sized, timing, together

SCHEMA = pa.schema([("id", pa.int64()), ("tenant", pa.int32()), ("text", pa.string())])
ROWS = 100
ALONE = sized(60, 25)
WRITERS = 4
SECONDS = float(sized(4, 2))
ROUNDS = sized(3, 1)
AGES = (10, 60) if QUICK else (10, 1_000, 5_000) if LARGE else (10, 300, 1_500)
SAMPLE = sized(40, 15)
MANY = sized(500, 100, large=1_000)


class Peer(Protocol):
    """A table that takes appends."""

    def append(self, rows: pa.Table) -> None: ...


def run(report: Report) -> None:
    """All figures."""
    os.environ.setdefault("LANCE_LOG", "error")
    alone = {name: _alone(name) for name in PEERS}
    rounds = [{name: _contended(name) for name in PEERS} for _ in range(ROUNDS)]
    contended = {name: _rounded([each[name] for each in rounds]) for name in PEERS}
    for name in ("deltalake", "pyiceberg"):
        report.add("commit of one writer", alone["lancepart"], alone[name], peer=name, unit="ms", headline=True)
        ours, theirs = contended["lancepart"], contended[name]
        label = f"{WRITERS} writers on partitions of their own, together"
        report.add(label, ours[0], theirs[0], peer=name, unit="commits/s", better="higher", headline=True)
        report.add(f"commit of one of {WRITERS} writers", ours[1], theirs[1], peer=name, unit="ms")
        report.note(f"{WRITERS} writers: {ours[2]} commits of lancepart failed, {theirs[2]} of {name}")
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


def _alone(name: str) -> Timing:
    """Milliseconds of a commit to one of eight partitions."""
    with tempfile.TemporaryDirectory() as folder:
        table = PEERS[name](folder)
        for i in range(10):
            table.append(rows(i % 8))
        return _measured(table, [rows(i % 8) for i in range(ALONE - 10)])


def _timed(table: Peer, data: pa.Table) -> float:
    start = time.perf_counter()
    table.append(data)
    return (time.perf_counter() - start) * 1000


def _measured(table: Peer, data: Sequence[pa.Table]) -> Timing:
    """Milliseconds of a commit each, and the CPU seconds of one."""
    used = cpu_seconds()
    spent = [_timed(table, each) for each in data]
    return timing(spent, (cpu_seconds() - used) / len(spent))


def _rounded(rounds: Sequence[tuple[Timing, Timing, int]]) -> tuple[Timing, Timing, int]:
    """Several rounds of writers as one."""
    rates, spent, failed = zip(*rounds, strict=True)
    return together(rates), together(spent), sum(failed)


def _contended(name: str) -> tuple[Timing, Timing, int]:
    """Commits a second of several processes together, the milliseconds of each, and how many failed."""
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
    spent = [each for times, _, _ in found for each in times]
    used = sum(burnt for _, _, burnt in found) / max(1, len(spent))
    return timing([len(spent) / SECONDS], used), timing(spent, used), sum(failed for _, failed, _ in found)


def _writer(name: str, folder: str, tenant: int, barrier: Any, results: Any) -> None:
    table, data = PEERS[name](folder), rows(tenant)
    barrier.wait()
    spent, failed, used = [], 0, cpu_seconds()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            spent.append(_timed(table, data))
        except Exception:
            failed += 1
    results.put((spent, failed, cpu_seconds() - used))


def _many_partitions(report: Report) -> None:
    """One commit to many partitions that exist, first made by one commit."""
    data = pa.table(
        [
            pa.array(range(MANY), pa.int64()),
            pa.array(range(MANY), pa.int32()),
            pa.array(["x"] * MANY),
        ],
        schema=SCHEMA,
    )
    rounds: dict[str, list[list[Timing]]] = {name: [] for name in PEERS}
    for _ in range(ROUNDS):
        for name, make in PEERS.items():
            with tempfile.TemporaryDirectory() as folder:
                table = make(folder)
                rounds[name].append([_measured(table, [data]).scaled(0.001) for _ in range(2)])
    spent = {name: [together(each) for each in zip(*found, strict=True)] for name, found in rounds.items()}
    for name in ("deltalake", "pyiceberg"):
        for at, label in enumerate((f"one commit that makes {MANY:,} partitions", "one commit to as many that exist")):
            report.add(label, spent["lancepart"][at], spent[name][at], peer=name, unit="s")


def _history(report: Report) -> None:
    """The latency of a commit after more and more of them."""
    figures: dict[str, list[Timing]] = {}
    for name, make in PEERS.items():
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = _latencies(make(folder), AGES if name == "lancepart" else AGES[:2])
    for name in ("deltalake", "pyiceberg"):
        for age, ours, theirs in zip(AGES[:2], figures["lancepart"], figures[name], strict=False):
            report.add(f"commit after {age:,} commits", ours, theirs, peer=name, unit="ms")
    for age, ours in zip(AGES[1:], figures["lancepart"][1:], strict=True):
        report.add(f"commit after {age:,} commits", ours, figures["lancepart"][0], peer=f"after {AGES[0]}", unit="ms")


def _latencies(table: Peer, ages: tuple[int, ...]) -> list[Timing]:
    found, done = [], 0
    for age in ages:
        while done < age:
            with contextlib.suppress(RuntimeError):
                table.append(rows(done % 8, 1))
            done += 1
        found.append(_measured(table, [rows(i % 8, 1) for i in range(SAMPLE)]))
        done += SAMPLE
    return found
