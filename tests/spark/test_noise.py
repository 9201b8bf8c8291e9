"""What a program on Spark prints, as its user sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import lancepart as lp

spark = lp.spark.session("local[1]", **{"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})
root = sys.argv[1]
rows = spark.range(20).selectExpr("id", "id % 4 AS k")
rows.write.format("lancepart").option("partition_by", "k").save(root)
found = spark.read.format("lancepart").load(root)
print(found.count(), len(found.limit(3).collect()))
try:
    spark.read.format("lancepart").load(root + "/none")
except Exception as error:
    print(error)
other = spark.newSession()
assert other.read.format("lancepart").load(root).where("k = 1").count() == 5
other.sql(f"DELETE FROM lancepart.`{root}` WHERE k = 1")
if sys.argv[2] == "stop":
    spark.stop()
"""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("end", ["stop", "exit"])
def test_a_program_prints_its_own_words_alone(tmp_path: Path, end: str) -> None:
    root = str(tmp_path / "t")
    command = [sys.executable, "-c", PROGRAM, root, end]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    counted, *error = done.stdout.splitlines()
    assert counted == "20 3"
    assert len(error) <= 2
    assert f"there is no partitioned table at '{root}/none'" in error[0]
    unwanted = ("Traceback", "BrokenPipe", "No existing dataset", "fork-safe", "lance::", "planning service", "ERROR")
    assert not [line for line in done.stderr.splitlines() if any(word in line for word in unwanted)]
