"""`make demo` runs to its end with few rows, and leaves a report that needs nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
