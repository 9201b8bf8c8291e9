"""The directory catalog beside pylance's native one, on the same contents, in one run."""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import lance
import lance.namespace
import pyarrow as pa
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeTableRequest,
    LanceNamespace,
    ListTablesRequest,
)

import lancepart
from benchmarks.report import LARGE, QUICK, Report, Timing, cpu_seconds, sized, timing, together
from lancepart.storage import manifest_maintenance
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import PRIMARY_KEY_POSITION, SCHEMA
from lancepart.storage.root import Root

SIZES = (1_000,) if QUICK else (1_000, 10_000, 100_000) if LARGE else (1_000, 100_000)
PROCESSES = sized(8, 4)
SECONDS = float(sized(4, 2))
ROUNDS = sized(3, 1)
COMMITS = sized(1_000, 200, large=5_000)
KINDS: dict[str, Callable[..., LanceNamespace]] = {
    "native": lance.namespace.DirectoryNamespace,
    "lancepart": lancepart.DirectoryNamespace,
}


def run(report: Report) -> None:
    for size in SIZES:
        figures = _measure(size)
        for name in figures["native"]:
            ours, theirs = figures["lancepart"][name], figures["native"][name]
            better, unit = ("higher", "commits/s") if name == "commits" else ("lower", "ms")
            if name == "failed writers":
                report.note(
                    f"{size:,} objects: {ours:.0f} failed commits of lancepart, {theirs:.0f} of pylance's catalog"
                )
                continue
            shown = f"{size:,} objects, {name}" + (f" by {PROCESSES} writers" if name == "commits" else "")
            report.add(
                shown,
                ours,
                theirs,
                peer="pylance's catalog",
                unit=unit,
                better=better,
                headline=_is_headline(size, name),
            )
    _flatness(report)


def _is_headline(size: int, name: str) -> bool:
    return size == SIZES[-1] and name == "commits"


def _measure(size: int) -> dict[str, dict[str, Timing | float]]:
    """Both catalogs in turn, call by call, so that whatever else the machine does hits both."""
    with tempfile.TemporaryDirectory() as folder:
        catalogs = {}
        for kind, make in KINDS.items():
            _fill(kind, f"{folder}/{kind}", size)
            catalogs[kind] = make(root=f"{folder}/{kind}")
        rng = random.Random(size)

        def create(catalog: LanceNamespace, i: int) -> None:
            catalog.create_namespace(CreateNamespaceRequest(id=[f"new{i}"]))

        def describe(catalog: LanceNamespace, _: int) -> None:
            catalog.describe_table(DescribeTableRequest(id=["ns", f"t{rng.randrange(size):07d}"]))

        def listed(catalog: LanceNamespace, _: int) -> None:
            catalog.list_tables(ListTablesRequest(id=["ns"]))

        figures: dict[str, dict[str, Timing | float]] = {kind: {} for kind in KINDS}
        calls = ("create a namespace", create, 40), ("describe a table", describe, 100), ("list all tables", listed, 15)
        for name, call, times in calls:
            for kind, spent in _timings(catalogs, call, times).items():
                figures[kind][name] = spent
        rounds: dict[str, list[tuple[Timing, int]]] = {kind: [] for kind in KINDS}
        for number in range(ROUNDS):
            for kind in KINDS:
                rounds[kind].append(_contended(kind, f"{folder}/{kind}", number))
        for kind, found in rounds.items():
            figures[kind]["commits"] = together([spent for spent, _ in found])
            figures[kind]["failed writers"] = sum(failed for _, failed in found)
        return figures


def _fill(kind: str, root: str, size: int) -> None:
    """Put a namespace with many tables into a fresh catalog, as its own client would have left it."""
    ids = ["ns", *(f"ns$t{i:07d}" for i in range(size))]
    types = ["namespace", *(["table"] * size)]
    places = [None, *(f"{i * 2654435761 % 2**32:08x}_ns$t{i:07d}" for i in range(size))]
    empty = pa.nulls(len(ids))
    table = pa.table(
        [ids, types, places, empty, empty, pa.array([datetime.now(UTC)] * len(ids), SCHEMA.field("created_at").type)],
        schema=SCHEMA,
    )
    assert table.schema.field("object_id").metadata == {PRIMARY_KEY_POSITION.encode(): b"0"}
    if kind == "native":
        table = table.drop_columns(["created_at"])
    dataset = lance.write_dataset(table, f"{root}/__manifest")
    if kind == "lancepart":
        manifest_maintenance.create_indices(dataset)


def _timings(
    catalogs: dict[str, LanceNamespace], call: Callable[[LanceNamespace, int], None], times: int
) -> dict[str, Timing]:
    spent: dict[str, list[float]] = {kind: [] for kind in catalogs}
    burnt = dict.fromkeys(catalogs, 0.0)
    for i in range(-1, times):
        for kind, catalog in catalogs.items():
            used, start = cpu_seconds(), time.perf_counter()
            call(catalog, i)
            if i >= 0:
                spent[kind].append((time.perf_counter() - start) * 1000)
                burnt[kind] += cpu_seconds() - used
    return {kind: timing(values, burnt[kind] / times) for kind, values in spent.items()}


def _contended(kind: str, root: str, turn: int) -> tuple[Timing, int]:
    """Commits a second of some processes together, the CPU seconds of one, and how many calls failed."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    results = context.SimpleQueue()
    workers = [
        context.Process(target=_writer, args=(kind, root, f"{turn}-{n}", barrier, results)) for n in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    counts = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    done, failed, used = (sum(each) for each in zip(*counts, strict=True))
    return timing([done / SECONDS], used / max(1, done)), failed


def _writer(kind: str, root: str, name: str, barrier: Any, results: Any) -> None:
    catalog = KINDS[kind](root=root)
    catalog.list_tables(ListTablesRequest(id=["ns"], limit=1))
    barrier.wait()
    done, failed, used = 0, 0, cpu_seconds()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            catalog.create_namespace(CreateNamespaceRequest(id=[f"w{name}-{done + failed}"]))
            done += 1
        except Exception:
            failed += 1
    results.put((done, failed, cpu_seconds() - used))


def _flatness(report: Report) -> None:
    """A commit after many commits beside the first ones, in one catalog."""
    with tempfile.TemporaryDirectory() as root:
        catalog = lancepart.DirectoryNamespace(root=root)
        catalog.create_namespace(CreateNamespaceRequest(id=["ns"]))
        spent = []
        for i in range(COMMITS):
            start = time.perf_counter()
            catalog.create_namespace(CreateNamespaceRequest(id=["ns", f"n{i}"]))
            spent.append((time.perf_counter() - start) * 1000)
        handle = Manifest(Root.parse(root)).snapshot().handle
        fragments = len(handle.get_fragments()) if handle else 0
        name = f"last 100 of {COMMITS:,} commits"
        report.add(name, timing(spent[-100:]), timing(spent[:100]), peer="its first 100", unit="ms")
        report.note(f"fragments of `__manifest` after {COMMITS:,} commits: {fragments}")
