"""TPC-H and TPC-DS in Spark SQL beside Parquet files as they come, and tables of them that are partitioned alike.

These are bucketed by the keys that our tables are bucketed by; and, where ours are partitioned by a column's values,
Hive's directories. All rows are compared. All queries run once on each side to warm up, and then in several rounds; the
median of these counts, by wall time and by the CPU seconds of the JVM and the Python processes together. Sides take
turns in being first: half of the CPU of a query's first runs is the JVM compiling, which the first side pays for the
others too. Queries are chosen by name, and the data can be kept:
``python -m benchmarks.tpc h2 h16 ds64 --scale 0.3 --data DIRECTORY``.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lancepart as lp
from benchmarks.report import LARGE, QUICK, Report, Timing, cpu_seconds, timing
from benchmarks.tpc_data import DS, GENERATOR, H
from benchmarks.tpc_tables import BY_KEYS, HIVE_STYLE, OURS, PEER_OF, SIDES, Suite, opened

SCALE = float(os.environ.get("LANCEPART_TPC", "0.01" if QUICK else "1"))
ASKED = os.environ.get("LANCEPART_TPCDS")
DS_SCALE = float(ASKED or ("0.01" if QUICK else "1" if LARGE else "0.1"))
HIVE_SCALE = min(SCALE, 0.1)
SAMPLE = ("ds7", "ds64") if QUICK else tuple(f"ds{n}" for n in range(1, 100, 12))
CHOSEN: Sequence[str] = ("h1", "h3", "h18") if QUICK else ("h",)
DS_CHOSEN: Sequence[str] = ("ds",) if ASKED or LARGE else SAMPLE
"""All of TPC-H, and a sample of TPC-DS; all of that if its scale is given, and in large runs."""
RUNS = 1 if QUICK else 3
"""Rounds of each query; as many as there are sides, so that each is first once."""

CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.ui.showConsoleProgress": "false",
}


def differing(ours: Iterable[tuple[Any, ...]], theirs: Iterable[tuple[Any, ...]]) -> str | None:
    """How two answers differ as multisets, floats compared to nine digits; None where they don't."""
    one, other = _grouped(ours), _grouped(theirs)
    for key in one.keys() | other.keys():
        left = list(other.get(key, ()))
        for row in one.get(key, ()):
            found = next((each for each in left if _close(row, each)), None)
            if found is None:
                return f"a row that the peer has not: {key} {row}"
            left.remove(found)
        if left:
            return f"a row of the peer's is missing: {key} {left[0]}"
    return None


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[float, ...]]]:
    """The floats of each row, under everything else of it."""
    found = defaultdict(list)
    for row in rows:
        key = tuple(None if isinstance(each, float) else each for each in row)
        found[key].append(tuple(each for each in row if isinstance(each, float)))
    return {key: sorted(floats) for key, floats in found.items()}


def _close(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (a != a and b != b) for a, b in pairs)


@dataclass
class Cost:
    """What the runs of one query took, on one side."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def turn(sides: Iterable[str], first: int) -> list[str]:
    """The order of the sides, from the one that is to be first on."""
    known = list(sides)
    start = first % len(known)
    return known[start:] + known[:start]


def warmed(suite: Suite, query: str, sides: Iterable[str]) -> str | None:
    """Run a query on all sides once; why it is left out, if it fails on one or has other rows there."""
    try:
        answers = {side: suite.rows(side, query) for side in sides}
    except Exception as error:
        return str(error).strip().splitlines()[0][:200]
    known = ((ours, peer) for peer, ours in PEER_OF.items() if {peer, ours} <= answers.keys())
    differences = ((ours, peer, differing(answers[ours], answers[peer])) for ours, peer in known)
    return next((f"{ours} beside {peer}: {found}" for ours, peer, found in differences if found), None)


def costs(suite: Suite, queries: Sequence[str], runs: int) -> dict[str, dict[str, Cost]]:
    """Run queries on all sides in turn, all of them in each round, so that all meet a warm JVM."""
    found = {query: {side: Cost() for side in suite.catalogs} for query in queries}
    for number in range(runs):
        start = time.perf_counter()
        for at, query in enumerate(queries):
            for side in turn(suite.catalogs, at + number):
                used, began = cpu_seconds(), time.perf_counter()
                suite.frame(side, query).collect()
                found[query][side].wall.append(time.perf_counter() - began)
                found[query][side].cpu.append(cpu_seconds() - used)
        print(f"round {number + 1} of {runs}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def compare(suite: Suite, report: Report, chosen: Sequence[str], *, scale: float, runs: int = RUNS) -> None:
    """Time queries; what fails on a side, or has other rows, is noted and left out of the means."""
    pairs = {peer: ours for peer, ours in PEER_OF.items() if {peer, ours} <= suite.catalogs.keys()}
    reasons = {query: warmed(suite, query, turn(suite.catalogs, at)) for at, query in enumerate(chosen)}
    for query, reason in reasons.items():
        if reason:
            report.note(f"{query} is left out: {reason}")
    measured: dict[str, list[tuple[Timing, Timing]]] = {peer: [] for peer in pairs}
    for query, found in costs(suite, [each for each in chosen if not reasons[each]], runs).items():
        for peer, ours in pairs.items():
            own, other = (timing(each.wall, statistics.median(each.cpu)) for each in (found[ours], found[peer]))
            report.add(query if ours == OURS else f"{query}, by columns", own, other, peer=peer, unit="s")
            saved = _cpu(other) / _cpu(own)
            print(f"{'':<18}CPU {_cpu(own):.2f} {_cpu(other):.2f} s {saved:.2f} of {peer}", flush=True)
            measured[peer].append((own, other))
    for peer, timings in measured.items():
        if timings:
            _means(report, f"{suite.name} at scale {scale:g}", peer, timings)


def _means(report: Report, suite: str, peer: str, timings: Sequence[tuple[Timing, Timing]]) -> None:
    """How many times the speed of a peer ours is, by the medians, and the CPU seconds of all queries."""
    queries = f"{len(timings)} queries"
    speed = statistics.geometric_mean(theirs.median / ours.median for ours, theirs in timings)
    saved = statistics.geometric_mean(_cpu(theirs) / _cpu(ours) for ours, theirs in timings)
    for what, mean in (("speed", speed), ("speed by CPU seconds", saved)):
        title = f"{suite}, {what}, geometric mean of {queries}"
        report.add(title, mean, 1.0, peer=peer, unit="relative", better="higher", headline=what == "speed")
    ours, theirs = (sum(_cpu(pair[side]) for pair in timings) for side in (0, 1))
    report.note(f"{suite}, CPU seconds of {queries}: {PEER_OF[peer]} {ours:.1f}, {peer} {theirs:.1f}")


def _cpu(found: Timing) -> float:
    """CPU seconds; never none, which no ratio has: the clock ticks a hundred times a second."""
    return max(found.cpu or 0.0, 0.01)


def run(report: Report) -> None:
    """TPC-H and a part of TPC-DS by keys, and TPC-H at a smaller scale by columns."""
    place = Path(tempfile.mkdtemp())
    try:
        measured(report, H, CHOSEN, scale=SCALE, data=place)
        measured(report, H, CHOSEN, scale=HIVE_SCALE, sides=HIVE_STYLE, data=place)
        measured(report, DS, DS_CHOSEN, scale=DS_SCALE, data=place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measured(
    report: Report,
    name: str,
    chosen: Sequence[str],
    *,
    scale: float,
    data: Path,
    sides: Sequence[str] = BY_KEYS,
    runs: int = RUNS,
) -> None:
    """The queries of a suite that are chosen by name, or all of it, in one session."""
    spark = lp.spark.session("local[2]", **CONF, **{"spark.sql.warehouse.dir": str(data / "spark")})
    try:
        suite = opened(spark, name, data / f"{name}-{scale:g}", scale)
        if suite is None:
            report.note(f"{GENERATOR} can't be installed: left out")
            return
        suite.prepare(sides)
        short = name.removeprefix("tpc")
        queries = [each for each in chosen if each != short] or list(suite.queries)
        compare(suite, report, queries, scale=scale, runs=runs)
    finally:
        spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpc", description=__doc__)
    parser.add_argument(
        "queries", nargs="*", help="such as h1 or ds64; h or ds for all of one suite; both unless named"
    )
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--data", type=Path, help="keep the tables there, and use those that are there")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--side", action="append", choices=SIDES, help="run on these only, by keys unless named")
    given = parser.parse_args()
    report, place = Report("tpc"), given.data or Path(tempfile.mkdtemp())
    try:
        for name in (H, DS):
            short = name.removeprefix("tpc")
            chosen = [each for each in given.queries or (short,) if each.rstrip("0123456789") == short]
            if chosen:
                sides = given.side or BY_KEYS
                measured(report, name, chosen, scale=given.scale, sides=sides, data=place, runs=given.runs)
    finally:
        if given.data is None:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
