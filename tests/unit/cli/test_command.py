"""What all commands have in common: help, JSON, exit codes, errors in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.main

import lancepart as lp
from lancepart.cli import make
from lancepart.cli.app import MODULES, app, commands_of
from lancepart.errors import CommitConflictError, InvalidInputError

COMMANDS = (
    "create load upsert info tree partitions head sample plan sql search join delete evolve columns snapshots changes "
    "tag rollback compact rewrite expire orphans index upgrade check health bench ui ns"
)
PROGRAM = [sys.executable, "-m", "lancepart.cli"]


def commands(found: Mapping[str, Any]) -> dict[str, Any]:
    """All commands, those of groups too."""
    named = {}
    for name, each in found.items():
        inside = commands(each.commands) if hasattr(each, "commands") else None
        named |= {name: each} if inside is None else {f"{name} {key}": one for key, one in inside.items()}
    return named


def test_every_command_explains_itself_and_has_json(run: Any) -> None:
    listed = typer.main.get_command(app).commands
    found = {name: each for module in MODULES for name, each in commands_of(module).items()}
    assert set(COMMANDS.split()) <= set(listed)
    assert {name: each.help for name, each in listed.items()} == {
        name: each.help.splitlines()[0] for name, each in found.items()
    }
    for name, each in commands(found).items():
        options = {option for parameter in each.params for option in parameter.opts}
        assert {"--json", "--debug", "--storage"} <= options, name
        assert each.help
        assert all(getattr(parameter, "help", None) for parameter in each.params if parameter.name != "help"), name
    shown = run("--help").stdout
    assert not [word for word in COMMANDS.split() if word not in shown]


def test_help_and_wrong_usage_import_no_table() -> None:
    for arguments in (["--help"], ["--version"], ["inf"]):
        program = f"""
import sys
from lancepart.cli.app import main
sys.argv = ["lancepart", *{arguments}]
try:
    main()
except SystemExit:
    print([name for name in ("pyarrow", "lance", "lancepart.table", "datafusion") if name in sys.modules])
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"


def test_a_missing_table_is_an_error_in_one_line_and_its_own_exit_code(run: Any) -> None:
    done = run("info", "nothing", code=3)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("Error: there is no partitioned table at")

    told = json.loads(run("info", "nothing", "--json", code=3).stderr)
    assert (told["error"], told["code"]) == ("TableNotFoundError", 4)


def test_a_conflict_has_an_exit_code_of_its_own(
    run: Any, table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflicting(*_: Any, **__: Any) -> None:
        raise CommitConflictError("partition 'x' was changed by another writer")

    monkeypatch.setattr(lp.PartitionedTable, "delete", conflicting)
    assert "another writer" in run("delete", "t", "id = 1", "--yes", code=4).stderr


def test_what_nobody_expected_is_one_line_too_and_debug_shows_where(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(make, "parse_columns", failing)
    done = run("create", "t", "--schema", "id int64", code=1)
    assert done.stderr == "Error: RuntimeError: first line second line; --debug shows where\n"
    assert isinstance(run("create", "t", "--schema", "id int64", "--debug", code=1).exception, RuntimeError)


def test_storage_options_are_pairs(run: Any) -> None:
    assert "key=value" in run("info", "t", "--storage", "region", code=2).stderr


@pytest.mark.parametrize("arguments", [["inf", "t"], ["info"], ["info", "t", "--jsn"], ["head", "t", "-n", "x"]])
def test_wrong_usage_has_exit_code_two(run: Any, arguments: list[str]) -> None:
    done = run(*arguments, code=2)
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1

    answer = json.loads(run(*arguments, "--json", code=2).stderr)
    assert (answer["error"], answer["code"]) == ("UsageError", int(InvalidInputError.code))
    assert "-h" in answer["message"]


def test_without_a_command_the_help_is_shown(run: Any) -> None:
    assert "partitions" in run(code=2).output
    assert "migrate" in run("ns", code=2).output


def test_the_program_runs_in_a_process_of_its_own(table: lp.PartitionedTable, tmp_path: Path) -> None:
    done = subprocess.run([*PROGRAM, "info", "t", "--json"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["rows"] == 22
    assert done.stderr == ""


@pytest.mark.slow
def test_processes_end_with_their_exit_codes(table: lp.PartitionedTable, tmp_path: Path) -> None:
    def code(*arguments: str) -> int:
        return subprocess.run([*PROGRAM, *arguments], capture_output=True, cwd=tmp_path, check=False).returncode

    assert code("--version") == 0
    assert code("info", "nothing") == 3
    assert code("inf") == 2
    assert code("delete", "t", "id = 1") == 2
    assert code("delete", "t", "id = 1", "--yes") == 0
    assert table.scan().count() == 21


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(table: lp.PartitionedTable, tmp_path: Path) -> None:
    line = f"{' '.join(PROGRAM)} head t -n 20 --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_completion_is_offered(tmp_path: Path) -> None:
    setting = {**os.environ, "_LANCEPART_COMPLETE": "complete_bash", "COMP_WORDS": "lancepart par", "COMP_CWORD": "1"}
    program = [sys.executable, "-c", "from lancepart.cli.app import main; main()"]
    done = subprocess.run(program, capture_output=True, text=True, env=setting, cwd=tmp_path, check=False)
    assert "partitions" in done.stdout


@pytest.mark.slow
def test_a_table_on_an_object_store_needs_its_options(ask: Any, run: Any, s3_server: Any, tmp_path: Path) -> None:
    place = s3_server.place()
    options = [word for key, value in place.options.items() for word in ("--storage", f"{key}={value}")]
    (tmp_path / "rows.csv").write_text("id,day\n1,a\n2,b\n")

    assert ask("load", place.root, "rows.csv", "--by", "day", *options)["rows"] == 2
    assert ask("plan", place.root, "day = 'a'", *options)["kept"] == 1
    assert ask("delete", place.root, "id = 1", "--yes", *options)["rows"] == 1
    shown = run("info", place.root, *options).output
    assert not [value for key, value in place.options.items() if "secret" in key and value in shown]


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path) -> None:
    made = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), ["id"])
    made.append([{"id": n} for n in range(3)])
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*PROGRAM, "tree", made.root], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
