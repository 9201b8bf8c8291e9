"""A caller's script passes mypy in strict mode: what users hold in their hands has types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from collections.abc import Iterator

import lancepart as lp
import pyarrow as pa

schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
table: lp.PartitionedTable = lp.create_table("root", schema, ["country"], exist_ok=True)
done: lp.CommitResult | None = table.append([{"id": 1, "country": "US"}])
added: int = 0 if done is None else done.rows_added
scan: lp.Scan = table.scan("id > $n", ["id"], params={"n": 1}, order_by="id", offset=1, with_row_id=True, batch_size=10)
number: int = scan.count()
text: str = scan.explain()
batches: Iterator[pa.RecordBatch] = scan.to_batches()
join: lp.Join = table.join(table, on=["id"])
query: lp.Query = lp.sql("SELECT 1 FROM t", t=table)
merged: lp.CommitResult | None = table.merge([{"id": 1}], on=["id"]).when_matched_update_all().execute()
db: lp.Connection = lp.connect("warehouse")
names: list[str] = db.list_tables()
plain: int = db.lance_table("t").version
there: bool = lp.exists("root")
rows: int | None = table.describe().rows
changes: lp.Changes = table.changes(1)
loaded: lp.PartitionedTable = lp.load("root", "*.parquet", partition_by=["country"])
version: str = lp.__version__
weak: lp.PartitionedTable = lp.create_table("root", schema, transactions="weak", layout="manifest")
left: lp.Join = table.join(table, on=["id"], how="left")
indexed: lp.MaintenanceResult = table.maintenance.create_index("id", "BTREE", scope="leaf")
back: int | None = table.maintenance.rollback("tag")
with table.transaction("serializable") as tx:
    tx.append([])
"""
WRONG = """
import lancepart as lp

table = lp.open_table("root")
number: str = table.count_rows()
table.scan("id > 1", ofset=3)
lp.exists(3)
lp.upgrade("root", spark="local[*]")
table.join(table, on=["id"], how="sideways")
table.maintenance.create_index("id", "TREE")
lp.create_table("root", table.schema, transactions="none")
table.maintenance.rollback(1.5)
"""


@pytest.mark.slow
def test_a_script_of_a_caller_passes_strict_mypy_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    found = {}
    for name, code in (("right", SCRIPT), ("wrong", WRONG)):
        script = tmp_path / f"{name}.py"
        script.write_text(code)
        checked = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(tmp_path / "none.ini")]
        (tmp_path / "none.ini").write_text("[mypy]\nignore_missing_imports = true\nfollow_imports = silent\n")
        found[name] = subprocess.run(
            [*checked, "--cache-dir", str(tmp_path / "cache"), str(script)], capture_output=True, text=True, check=False
        )

    assert found["right"].returncode == 0, found["right"].stdout
    assert found["wrong"].stdout.count("error:") == 8, found["wrong"].stdout
