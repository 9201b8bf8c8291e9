"""The main job, end to end, on Spark: ``make demo`` runs it in a temporary folder and leaves a report behind."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from examples.demo.page import write_page
from examples.demo.screen import Screen, quiet_lance
from examples.demo.steps import Demo, Step


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="how many events to make")
    parser.add_argument("--report", type=Path, default=Path("demo-report.html"), help="where to write the report")
    options = parser.parse_args()
    quiet_lance()
    start = time.perf_counter()
    done: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="lancepart-demo-") as folder, Screen() as screen:
        demo = Demo(Path(folder), options.rows)
        for title, action in demo.steps():
            with screen.running(title):
                done.append(action())
            screen.show(done[-1])
        demo.spark.stop()
    spent = time.perf_counter() - start
    write_page(options.report, done, rows=options.rows, spent=spent)
    screen.end(done, spent, options.report)


if __name__ == "__main__":
    main()
