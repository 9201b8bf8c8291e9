"""Jobs from the command line: every one does its work, can be run again, and says how it went."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancepart as lp
from lancepart.queries.warehouse import Warehouse
from lancepart.spark import jobs

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32())])


@pytest.fixture(autouse=True)
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_session", lambda master, conf: spark)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str, code: int = 0) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            jobs.main(arguments)
        printed = capsys.readouterr()
        assert ended.value.code == code, printed
        return json.loads(printed.out.strip().splitlines()[-1]) if code < 2 else {"error": printed.err}

    return call


@pytest.fixture
def table(root: str) -> lp.PartitionedTable:
    made = lp.create_table(root, SCHEMA, ["k"])
    for start in (0, 10, 20):
        made.append([{"id": number, "k": number % 2} for number in range(start, start + 10)])
    return made


@pytest.fixture
def files(tmp_path: Path) -> str:
    (tmp_path / "files").mkdir()
    for number in range(2):
        data = pa.table({"id": [number * 10 + at for at in range(10)], "k": [at % 2 for at in range(10)]})
        pq.write_table(data.cast(SCHEMA), tmp_path / "files" / f"{number}.parquet")
    return str(tmp_path / "files")


def ids(root: str) -> Counter[int]:
    return Counter(lp.open_table(root).scan(columns=["id"]).to_arrow().column("id").to_pylist())


def test_ingest(run: Any, root: str, files: str, tmp_path: Path) -> None:
    first = run("ingest", "--root", root, "--source", files, "--key", "monday", "--partition-by", "bucket(id, 2)")
    assert (first["ok"], first["changed"]) == (True, True)
    again = run("ingest", "--root", root, "--source", files, "--key", "monday")
    assert again["changed"] is False
    assert ids(root) == Counter(range(20))
    (tmp_path / "more.csv").write_text("id,k\n3,9\n40,9\n")
    more = (
        "ingest",
        "--root",
        root,
        "--source",
        str(tmp_path / "more.csv"),
        "--format",
        "csv",
        "--option",
        "header=true",
    )
    run(*more, "--columns", "id long, k int", "--mode", "upsert", "--on", "id")
    assert ids(root) == Counter([*range(20), 40])
    run(*more, "--columns", "id long, k int", "--mode", "overwrite", "--where", "id = 3 OR id = 40")
    assert ids(root) == Counter([*range(20), 40])
    assert "--key" in run("ingest", "--root", root, "--source", files, code=1)["error"]


def test_ingest_in_no_known_mode_makes_no_table(run: Any, root: str, files: str) -> None:
    found = run("ingest", "--root", root, "--source", files, "--mode", "add", "--partition-by", "k", code=1)

    assert "mode is 'add': use append, overwrite or upsert" in found["error"]
    assert not Path(root).exists()


@pytest.mark.slow
def test_import(run: Any, root: str, files: str) -> None:
    for rows, before in ((20, 0), (0, 2)):
        told = run("import", "--root", root, "--source", files, "--partition-by", "k", "--files-per-commit", "1")
        assert (told["rows"], told["parts"], told["parts_before"]) == (rows, 2, before)
    assert ids(root) == Counter(range(20))


@pytest.mark.slow
def test_upkeep(run: Any, table: lp.PartitionedTable) -> None:
    root, before = table.root, ids(table.root)
    assert run("compact", "--root", root)["changed"] == 2
    assert run("compact", "--root", root)["changed"] == 0
    assert run("index", "--root", root, "--column", "id", "--kind", "btree", "--name", "by_id")["changed"] == 2
    table.update_spec(["bucket(id, 2)"])
    assert run("rewrite", "--root", root)["changed"] == 2
    assert run("rewrite", "--root", root)["changed"] == 0
    assert run("expire", "--root", root, "--older-than", "7d")["removed_files"] == 0
    assert run("orphans", "--root", root, "--older-than", "3d", "--dry-run")["dry_run"] is True
    assert ids(root) == before


@pytest.mark.slow
def test_orphans_of_a_warehouse(run: Any, tmp_path: Path) -> None:
    made = Warehouse.at(tmp_path)
    made.create_namespace(["ns"], {})
    place, _ = made.place(["ns", "t"])
    lp.create_table(tmp_path / place, SCHEMA, ["k"])
    sweep = ("orphans", "--root", str(tmp_path), "--warehouse", "--older-than")
    assert run(*sweep, "3d")["changed"] == 0
    assert run(*sweep, "0s", "--dry-run")["locations"] == [place]
    assert run(*sweep, "0s")["locations"] == [place]
    assert not (tmp_path / place).exists()


@pytest.mark.slow
def test_upgrade(run: Any, root: str) -> None:
    lp.create_table(root, SCHEMA, ["k"], layout="hive").append([{"id": 1, "k": 1}])
    assert run("upgrade", "--root", root)["rows"] == 1
    assert run("upgrade", "--root", root)["rows"] == 1


@pytest.mark.slow
def test_a_file_says_what_to_do(run: Any, table: lp.PartitionedTable, tmp_path: Path) -> None:
    config = tmp_path / "job.toml"
    config.write_text(
        f'job = "compact"\nroot = "{table.root}"\nconf = {{"spark.x" = "y"}}\n[compact]\ntarget_rows = 1000\n'
        '[orphans]\nolder-than = "3d"\ndry_run = true\n'
    )
    assert run("--config", str(config))["job"] == "compact"
    assert run("orphans", f"--config={config}")["dry_run"] is True
    assert run("orphans", "--config", str(config), "--no-dry-run")["dry_run"] is False
    assert "nowhere" in run("compact", "--config", str(tmp_path / "nowhere.toml"), code=2)["error"]


@pytest.mark.slow
def test_what_goes_wrong_is_told(run: Any, tmp_path: Path) -> None:
    told = run("compact", "--root", str(tmp_path / "none"), code=1)
    assert (told["ok"], "TableNotFoundError" in told["error"]) == (False, True)
    assert "older" in run("expire", "--root", "x", code=2)["error"]
    assert "no age" in run("expire", "--root", "x", "--older-than", "soon", code=1)["error"]


@pytest.mark.slow
def test_as_a_process(table: lp.PartitionedTable) -> None:
    command = [sys.executable, "-m", "lancepart.spark", "compact", "--root", table.root, "--master", "local[1]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.strip().splitlines()[-1])["changed"] == 2
