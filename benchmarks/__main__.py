"""Run the benchmarks, all or those named: ``python -m benchmarks catalog``."""

from __future__ import annotations

import importlib
import sys

from benchmarks.report import Report

ALL = ("catalog", "embedded", "hashing", "join", "pruning", "search", "spark", "tpch", "transactions", "upkeep")


def main() -> None:
    for name in sys.argv[1:] or ALL:
        print(f"\n== {name}: ours, peer, ratio", flush=True)
        importlib.import_module(f"benchmarks.{name}").run(Report(name))


if __name__ == "__main__":
    main()
