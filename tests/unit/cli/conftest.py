"""The command, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import lancepart as lp
from lancepart.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in an empty folder, and expect its exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 0, text: str | None = None) -> Result:
        done = CliRunner().invoke(app, [str(each) for each in arguments], input=text, catch_exceptions=True)
        assert done.exit_code == code, f"{arguments}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        return done

    return call


@pytest.fixture
def ask(run: Run) -> Callable[..., Any]:
    """Run a command with ``--json``; its answer."""

    def call(*arguments: str, code: int = 0) -> Any:
        return json.loads(run(*arguments, "--json", code=code).stdout)

    return call


@pytest.fixture
def table(run: Run) -> lp.PartitionedTable:
    """A table ``t`` with two commits, a partition that is much larger, and one for NULL."""
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    made = lp.create_table("t", schema, ["country"])
    made.append([{"id": n, "country": "US", "v": [n, 0]} for n in range(20)])
    made.append([{"id": 20, "country": "FR", "v": [20, 0]}, {"id": 21, "country": None, "v": None}])
    return made
