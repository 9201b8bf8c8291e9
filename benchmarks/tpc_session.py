"""A session that lives long: query after query of TPC-DS in one driver, and what it holds of them.

``python -m benchmarks.tpc_session --queries 1000`` prints a line after every fifty: the heap after a collection, the
plans in it, threads, processes, open files and temporary files, and what the planning service takes. The session has
a driver of 4 GB. Spark keeps the plans of the last queries for its UI, a thousand of them unless it is told
otherwise; here a hundred, so that it is full before what is held is compared.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import lancepart as lp
from benchmarks.tpc import CONF
from benchmarks.tpc_data import DS, GENERATOR
from benchmarks.tpc_tables import OURS, Suite, opened

SCALE = 0.01
PLANS = ("LanceScan", "BatchScanExec", "BroadcastHashJoinExec", "KeyedPartition")
KEPT_BY_UI = 100
LONG = {
    **CONF,
    "spark.driver.memory": "4g",
    "spark.sql.ui.retainedExecutions": str(KEPT_BY_UI),
    "spark.ui.retainedJobs": str(KEPT_BY_UI),
    "spark.ui.retainedStages": str(KEPT_BY_UI),
}


@dataclass(frozen=True)
class Held:
    """What a session holds after its garbage was collected; ``resident`` is the memory of its Python processes."""

    heap: int
    plans: int
    own_threads: int
    threads: int
    processes: int
    files: int
    python_files: int
    resident: int
    temporary: int


def children(pid: int) -> list[int]:
    """The processes that a process and those that it started have started."""
    lines = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.splitlines()
    parents = [tuple(map(int, line.split())) for line in lines]
    found, waiting = [], [pid]
    while waiting:
        own = waiting.pop()
        mine = [child for child, parent in parents if parent == own]
        found += mine
        waiting += mine
    return found


def held(spark: Any) -> Held:
    """Collect the garbage of the driver, and measure what is left."""
    gc.collect()
    jvm = spark.sparkContext._jvm
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    text = subprocess.run(["jcmd", str(pid), "GC.class_histogram"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit() and len(line.split()) > 3]
    names = [str(thread.getName()) for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    python = children(pid)
    place = Path(str(jvm.java.lang.System.getProperty("java.io.tmpdir")))
    return Held(
        heap=int(text.strip().splitlines()[-1].split()[2]),
        plans=sum(int(line[1]) for line in lines if line[3].split(".")[-1] in PLANS),
        own_threads=sum(name.startswith("lancepart") for name in names),
        threads=len(names),
        processes=len(python),
        files=_open_files(pid),
        python_files=sum(map(_open_files, python)),
        resident=sum(map(_resident, python)),
        temporary=sum(1 for _ in place.rglob("*") if _.is_file()) if _is_own(place) else len(_ours(place)),
    )


def _is_own(place: Path) -> bool:
    """Whether a directory of temporary files is this program's alone, so that all of them count."""
    return place.name.startswith("lancepart-session-")


def _ours(place: Path) -> list[Path]:
    return list(place.glob("*lancepart*"))


def _open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def settled(spark: Any, test: Callable[[Held], bool], patience: float = 30) -> Held:
    """The first measurement that passes, or the last one: Spark lets go of broadcasts some time after a collection."""
    deadline = time.monotonic() + patience
    while not test(found := held(spark)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def at_rest(spark: Any, patience: float = 30) -> Held:
    """What is held once two measurements agree: Spark removes broadcasts and shuffles one by one, after their plans."""
    deadline = time.monotonic() + patience
    before = held(spark)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        found = held(spark)
        if not is_falling(before, found):
            break
        before = found
    return found


def is_falling(before: Held, found: Held) -> bool:
    """Whether memory, plans or temporary files are still being let go of."""
    return found.heap <= 0.98 * before.heap or found.plans < before.plans or found.temporary < before.temporary


def parsed(suite: Suite) -> list[str]:
    """The queries whose text is Spark's SQL too: some use what only other dialects have."""
    from pyspark.errors import AnalysisException

    found = []
    for query in suite.queries:
        try:
            suite.frame(OURS, query)
        except AnalysisException:
            continue
        found.append(query)
    return found


def lived(suite: Suite, queries: int, every: int) -> Iterator[tuple[int, Held]]:
    """Run queries one after the other; what is held at first and after so many each time."""
    known = parsed(suite)
    for number, query in enumerate(islice(cycle(known), queries), start=1):
        suite.rows(OURS, query)
        if number % every == 0 or number == queries:
            yield number, at_rest(suite.spark)


def run(queries: int, *, scale: float = SCALE, every: int = 50, data: Path | None = None) -> Iterator[dict[str, Any]]:
    """What a session of its own holds after each fifty queries, and the seconds that they took."""
    place = Path(tempfile.mkdtemp(prefix="lancepart-session-"))
    own = {"spark.local.dir": str(place), "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={place}"}
    folder = data or place / "data"
    spark = lp.spark.session("local[2]", **{**LONG, **own, "spark.sql.warehouse.dir": str(folder / "spark")})
    try:
        suite = opened(spark, DS, folder / f"{DS}-{scale:g}", scale)
        if suite is None:
            raise SystemExit(f"{GENERATOR}, which makes the data, can't be installed")
        suite.prepare((OURS,))
        start = time.perf_counter()
        for number, found in lived(suite, queries, every):
            yield {"queries": number, "seconds": round(time.perf_counter() - start, 1), **asdict(found)}
    finally:
        spark.stop()
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpc_session", description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--every", type=int, default=50, help="measure after so many queries")
    parser.add_argument("--data", type=Path, help="keep the tables there, and use those that are there")
    given = parser.parse_args()
    for line in run(given.queries, scale=given.scale, every=given.every, data=given.data):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
