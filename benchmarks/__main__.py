"""Run the suites beside their peers and write the report: ``python -m benchmarks [--quick] [--out FILE] [suite …]``."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.document import Outcome, Run, write_document
from benchmarks.report import LARGE, Record, Report

ROOT = Path(__file__).parent.parent
SUITES = (
    "catalog", "embedded", "hashing", "join", "pruning", "search", "spark", "startup", "tenants", "tpc", "tpch",
    "transactions", "upkeep",
)  # fmt: skip
MOST_SECONDS = 3_600


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"all unless named: {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, about five minutes for all suites")
    parser.add_argument("--out", type=Path, help="write the report there, and its plots beside it")
    parser.add_argument("--again", type=Path, metavar="FILE", help="write the report of an earlier run, run nothing")
    parser.add_argument("--records", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.suites) - set(SUITES))
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES)}")
    if options.records:
        return run_one(options.suites[0], options.records)
    if options.again:
        options.out = options.out or ROOT / "docs" / "benchmarks.md"
        run = Run.from_json(json.loads(options.again.read_text()))
        write_document(options.out, run)
    else:
        run = run_all(options.suites or SUITES, quick=options.quick, out=options.out)
    if options.out:
        print(f"\nThe report is in {options.out}")
    failed = [each.suite for each in run.outcomes if each.failure]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def run_all(suites: Sequence[str], *, quick: bool, out: Path | None) -> Run:
    """Run the suites one by one; what is measured so far is written after each, so that a stopped run keeps it."""
    run = Run(quick=quick, large=LARGE and not quick)
    for name in suites:
        outcome = run_apart(name, quick=quick)
        run = replace(run, outcomes=(*run.outcomes, outcome))
        if out:
            write_document(out, run)
            (ROOT / "build").mkdir(exist_ok=True)
            (ROOT / "build" / "benchmarks.json").write_text(json.dumps(run.to_json()))
    return run


def run_one(name: str, records: Path) -> int:
    """Run a suite in this process; what it measured is kept also if it fails later on."""
    report = Report(name)
    try:
        importlib.import_module(f"benchmarks.{name}").run(report)
    finally:
        records.write_text(json.dumps(report.to_json()))
    return 0


def run_apart(name: str, *, quick: bool) -> Outcome:
    """Run a suite in a process of its own, so that one that fails or is killed does not stop the others."""
    print(f"\n== {name}: ours, peer", flush=True)
    environment = {"LANCE_LOG": "error", **os.environ, **({"LANCEPART_BENCH_QUICK": "1"} if quick else {})}
    start, load = time.perf_counter(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.json"
        command = [sys.executable, "-m", "benchmarks", name, "--records", str(records)]
        failure = None
        try:
            done = subprocess.run(
                command, check=False, env=environment, timeout=MOST_SECONDS, cwd=ROOT, stderr=subprocess.PIPE, text=True
            )
            sys.stderr.write(done.stderr)
            if done.returncode:
                failure = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            failure = f"not done after {MOST_SECONDS} s"
        found = json.loads(records.read_text()) if records.exists() else {"records": [], "notes": []}
    if failure:
        print(f"{name} failed: {failure}", flush=True)
    return Outcome(
        suite=name,
        summary=_summary(name),
        records=tuple(Record.from_json(each) for each in found["records"]),
        notes=tuple(found["notes"]),
        failure=failure,
        seconds=time.perf_counter() - start,
        loads=(load, os.getloadavg()[0]),
    )


def _summary(name: str) -> str:
    """The first paragraph of a suite's docstring, without importing it: its peers may be missing."""
    text = ast.get_docstring(ast.parse((Path(__file__).parent / f"{name}.py").read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    sys.exit(main())
