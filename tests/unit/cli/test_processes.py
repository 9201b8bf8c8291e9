"""Every command as a process of its own: its answer as JSON, its exit codes, its errors in one line."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.cli.app import MODULES

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-m", "lancepart.cli"]
DONE = {
    "create new --schema 'id int64, k string' --by k": "version",
    "load t more.csv": "rows",
    "upsert t more.csv --on id": "version",
    "info t": "columns",
    "tree t": "",
    "partitions t": "partitions",
    "head t -n 2": "",
    "sample t -n 2 --seed 1": "",
    "plan t \"k = 'a'\"": "kept",
    "sql 'SELECT count(*) AS n FROM e' e=t": "",
    "search t '[1, 0]' -k 1": "",
    "join t t --on id": "",
    "delete t 'id = 1' --yes": "version",
    "delete t 'id = 1' --dry-run": "rows",
    "evolve t k 'bucket(id, 2)'": "",
    "columns t --add 'note string'": "",
    "snapshots t": "",
    "changes t first": "",
    "tag t second": "",
    "rollback t first --yes": "version",
    "compact t": "",
    "rewrite t": "",
    "expire t --older-than 7d --yes": "",
    "orphans t --older-than 7d --yes": "",
    "index t id BTREE": "",
    "upgrade old --yes": "",
    "check t": "",
    "health t": "",
    "bench t --runs 1": "",
    "ns create w:new": "name",
    "ns list w --recursive": "",
    "ns describe w:db": "properties",
    "ns drop w:db --cascade --yes": "inside",
    "ns migrate w": "migrated",
}
"""What each command is called with, and a key of its answer if that is an object."""
MISSING = {
    "load": "load nowhere more.csv",
    "upsert": "upsert nowhere more.csv --on id",
    "create": "create t --schema 'id int64'",
    "plan": "plan nowhere true",
    "sql": "sql 'SELECT 1 FROM e' e=nowhere",
    "search": "search nowhere '[1, 0]'",
    "join": "join t nowhere --on id",
    "delete": "delete nowhere true --yes",
    "evolve": "evolve nowhere k",
    "changes": "changes nowhere 1",
    "rollback": "rollback nowhere 1 --yes",
    "expire": "expire nowhere --older-than 7d --yes",
    "orphans": "orphans nowhere --older-than 7d --yes",
    "upgrade": "upgrade nowhere --yes",
    "ns": "ns describe w:nowhere",
    "ui": "ui nowhere --no-open",
}
"""What fails of each command, where its name and a table that is not there are not enough."""
DESTROYS = (
    "delete t true",
    "rollback t first",
    "expire t --older-than 7d",
    "columns t --drop v",
    "tag t first --delete",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("processes")
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(found / "t", schema, ["k"])
    table.tags.create("first", table.append([{"id": n, "k": "ab"[n % 2], "v": [n, 0]} for n in range(8)]))
    lp.create_table(found / "old", schema, ["k"], layout="hive").append([{"id": 1, "k": "a", "v": [1, 0]}])
    warehouse = lp.connect(found / "w")
    warehouse.create_namespace("db")
    warehouse.create_table("db.t", schema, ["k"])
    (found / "more.csv").write_text("id,k\n9,a\n10,c\n")
    return found


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *shlex.split(line), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_no_command_is_left_out() -> None:
    known = {name for found in MODULES.values() for name in found}
    assert {line.split()[0] for line in DONE} | {"ui"} == known
    assert set(MISSING) < known


@pytest.mark.parametrize("line", DONE)
def test_a_command_answers_with_one_json_document(line: str, folder: Path) -> None:
    done = run(line, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (DONE[line] in answer) if DONE[line] else isinstance(answer, dict | list)


@pytest.mark.parametrize("name", sorted({name for found in MODULES.values() for name in found}))
def test_a_failure_is_one_line_and_an_exit_code(name: str, folder: Path) -> None:
    done = run(MISSING.get(name, f"{name} nowhere"))

    assert done.stdout == ""
    assert done.returncode == (1 if name == "create" else 3), done.stderr
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert ("already" if name == "create" else "nowhere") in done.stderr


def test_what_lance_logs_of_an_index_is_not_shown(folder: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(n // 16_000) for n in range(80_000)], pa.float32()), 16)
    lp.create_table_from("same", pa.table({"v": vectors}), partition_by=[])
    done = run("index same v", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["changed"]


def test_debug_shows_the_traceback(folder: Path) -> None:
    done = run("info nowhere --debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "TableNotFoundError" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("line", DESTROYS)
def test_nothing_is_destroyed_without_yes_and_nothing_with_dry_run(line: str, folder: Path) -> None:
    before = lp.open_table("t")
    refused, tried = run(line), run(line, "--dry-run", "--json")

    assert (refused.returncode, "--yes" in refused.stderr) == (2, True), refused.stderr
    assert tried.returncode == 0, tried.stderr
    json.loads(tried.stdout)
    after = lp.open_table("t")
    assert (after.version, after.tags.list()) == (before.version, before.tags.list())


def test_the_page_is_served_until_it_is_ended(folder: Path) -> None:
    command = [*PROGRAM, "ui", "t", "--port", "0", "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = json.loads(server.stderr.readline())["url"]
        with urllib.request.urlopen(f"{address}api/table", timeout=20) as answer:
            assert json.load(answer)["rows"] == 8
        server.send_signal(signal.SIGINT)
        shown, _ = server.communicate(timeout=20)
    assert (server.returncode, json.loads(shown)["ended"]) == (0, True)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("par", "partitions"),
        ("ns li", "list"),
        ("info --js", "--json"),
        ("join t t --how se", "semi"),
        ("partitions t --sort fr", "fragments"),
        ("load t --mode ov", "overwrite"),
    ],
)
def test_names_and_options_are_completed(typed: str, found: str, folder: Path) -> None:
    words = f"lancepart {typed}"
    setting = {"_LANCEPART_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    program = [sys.executable, "-c", "from lancepart.cli.app import main; main()"]
    done = subprocess.run(program, capture_output=True, text=True, env={**os.environ, **setting}, check=False)
    assert found in done.stdout.split()


@pytest.mark.parametrize("line", ["info nowhere", "ns list nowhere --json"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("LANCEPART_THREADS", "many"), ("LANCEPART_CACHE_BYTES", "1GB"), ("LANCEPART_PROGRESS", "perhaps")],
)
def test_a_setting_of_the_environment_that_can_not_be_is_one_line(
    tmp_path: Path, line: str, name: str, value: str
) -> None:
    done = subprocess.run(
        [*PROGRAM, *shlex.split(line)],
        cwd=tmp_path,
        env={**os.environ, name: value},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert name in done.stderr
    assert value in done.stderr
