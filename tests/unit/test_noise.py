"""What a program that uses tables prints: nothing but its own words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import pyarrow as pa
import lancepart as lp

schema = pa.schema([("k", pa.int64()), ("x", pa.int64())])
table = lp.create_table(sys.argv[1], schema, ["k"], **{options})
for _ in range(2):
    table.append([{{"k": k, "x": 1}} for k in range(3)])
table.overwrite([{{"k": 5, "x": 1}}])
table.delete("k = 2")
{more}
print("own words")
"""
STRONG = """
with table.transaction() as tx:
    tx.append([{"k": 7, "x": 1}])
    tx.append([{"k": 7, "x": 2}, {"k": 8, "x": 2}])
    tx.delete("x = 1")
table.update_spec(["k", "bucket(x, 2)"])
table.maintenance.rewrite()
table.maintenance.compact()
"""
HIVE = """
lp.upgrade(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("options", "more"),
    [("{}", STRONG), ('{"transactions": "weak"}', ""), ('{"layout": "hive"}', HIVE)],
    ids=["strong", "weak", "hive"],
)
def test_nothing_is_printed_where_there_is_no_terminal(tmp_path: Path, options: str, more: str) -> None:
    code = PROGRAM.format(options=options, more=more)
    command = [sys.executable, "-c", code, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "own words\n", "")
