"""Many small partitions, such as a tenant each: reading over all, appending to some, and upkeep, beside deltalake."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lancepart as lp
from benchmarks.report import Report, Timing, measure, sized, together

ROUNDS = sized(3, 1)
TENANTS = sized(3_000, 500, "LANCEPART_TENANTS", large=10_000)
ROWS_EACH = 20
WRITTEN = max(1, TENANTS // 10)


def rows(tenants: int, each: int) -> pa.Table:
    """So many rows of each tenant."""
    count = tenants * each
    tenant = np.arange(count) % tenants
    return pa.table({"tenant": tenant, "id": np.arange(count), "x": np.random.default_rng(3).random(count)})


class Ours:
    """A partitioned table."""

    def __init__(self, folder: Path) -> None:
        self.table = lp.create_table_from(folder, rows(TENANTS, ROWS_EACH), ["tenant"])

    def column(self) -> None:
        self.table.scan(columns=["x"]).to_arrow()

    def append(self) -> None:
        self.table.append(rows(WRITTEN, 2))

    def orphans(self) -> None:
        self.table.maintenance.remove_orphans(timedelta(days=7), dry_run=True)

    def compact(self) -> None:
        self.table.maintenance.compact()


class Delta:
    """A table of deltalake."""

    def __init__(self, folder: Path) -> None:
        from deltalake import DeltaTable, write_deltalake

        self.folder, self.kind, self.write = str(folder), DeltaTable, write_deltalake
        write_deltalake(self.folder, rows(TENANTS, ROWS_EACH), partition_by=["tenant"])

    def column(self) -> None:
        self.kind(self.folder).to_pyarrow_dataset().to_table(columns=["x"])

    def append(self) -> None:
        self.write(self.folder, rows(WRITTEN, 2), mode="append")

    def orphans(self) -> None:
        self.kind(self.folder).vacuum(dry_run=True)

    def compact(self) -> None:
        self.kind(self.folder).optimize.compact()


STEPS: dict[str, tuple[Callable[[Any], object], int, int]] = {
    "a column of all tenants, first": (lambda table: table.column(), 1, 0),
    "a column of all tenants, again": (lambda table: table.column(), 3, 0),
    "append to a tenth of the tenants": (lambda table: table.append(), 2, 1),
    "files that nobody needs, dry": (lambda table: table.orphans(), 1, 0),
    "compaction of the tenants with several files": (lambda table: table.compact(), 1, 0),
}
"""What is done, how often, and how often before that without measuring."""


def run(report: Report) -> None:
    """Every step beside deltalake, where it is installed."""
    report.note(f"{TENANTS:,} tenants of {ROWS_EACH} rows; appends go to {WRITTEN:,} of them")
    folder = Path(tempfile.mkdtemp())
    kinds: dict[str, Callable[[Path], Any]] = {"ours": Ours}
    if importlib.util.find_spec("deltalake") is None:
        report.note("deltalake is not installed: left out")
    else:
        kinds["deltalake"] = Delta
    made: dict[str, Any] = {}

    def ingest(name: str) -> None:
        made[name] = kinds[name](folder / name)

    rounds: dict[str, list[dict[str, Timing]]] = {}
    try:
        for _ in range(ROUNDS):
            found = measure({name: partial(ingest, name) for name in kinds}, runs=1, warm=0)
            rounds.setdefault("ingest", []).append(found)
            for what, (action, runs, warm) in STEPS.items():
                steps = {name: partial(action, table) for name, table in made.items()}
                rounds.setdefault(what, []).append(measure(steps, runs=runs, warm=warm))
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for what, each in rounds.items():
        _beside(report, what, {name: together([one[name] for one in each]) for name in kinds})


def _beside(report: Report, what: str, found: dict[str, Timing]) -> None:
    ours, theirs = found["ours"], found.get("deltalake")
    if theirs is None:
        report.note(f"{what}: {ours.median:.2f} s, {ours.cpu or 0:.2f} s of CPU, no peer")
    else:
        report.add(what, ours, theirs, peer="deltalake", unit="s")
