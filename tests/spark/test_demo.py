"""`make demo` runs to its end with few rows, and leaves a report that needs nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from examples.demo.screen import verdict
from examples.demo.steps import Step

ROOT = Path(__file__).parents[2]


INDEX = """
import sys
from examples.demo.screen import quiet_lance
quiet_lance()
import numpy as np, pyarrow as pa, lancepart as lp
vectors = pa.FixedSizeListArray.from_arrays(np.repeat(np.arange(5, dtype="float32"), 16 * 1000), 16)
table = lp.create_table_from(sys.argv[1], pa.table({"k": ["a"] * 5000, "v": vectors}), partition_by=["k"])
table.maintenance.create_index("v", progress=False)
assert table.inspect.indices().num_rows
"""


@pytest.mark.slow
def test_the_screen_is_kept_free_of_what_lance_logs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INDEX, str(tmp_path / "t")]
    environment = {name: value for name, value in os.environ.items() if name != "LANCE_LOG"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("ours", "parquet", "said"),
    [
        (1.0, 2.0, "2.0 times as fast"),
        (2.0, 1.0, "2.0 times as slow"),
        (1.97, 2.0, "about as fast"),
        (1.0, None, "none"),
    ],
)
def test_times_are_compared_in_words(ours: float, parquet: float | None, said: str) -> None:
    assert verdict(Step("a step", ours=ours, parquet=parquet, without="none")) == said


@pytest.mark.slow
def test_the_demo_runs_and_writes_its_report(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    command = [sys.executable, "-m", "examples.demo", "--rows", "5000", "--report", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "exchanges below the join: 0; with Parquet 2" in done.stdout
    assert "1 of 72 leaves are read: tenant-03/2026/2" in done.stdout
    assert str(page) in done.stdout.replace("\n", "")
    text = page.read_text()
    assert text.count("<svg") == 6
    assert not re.search(r"(src|href)=", text)
    assert "Compact small files" in text
