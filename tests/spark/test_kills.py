"""Executors and drivers killed while they write: all rows once, or none."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark import programs
from tests.spark.doomed import ROWS
from tests.support.processes import TORTURE

pytestmark = [pytest.mark.torture, pytest.mark.long]
KILLS = 20 if TORTURE else 1


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string())])
    made = lp.create_table(tmp_path / "table", schema, ["k"])
    made.append([{"id": -1, "k": 0, "t": "first"}])
    return made


def ids(table: lp.PartitionedTable) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("how", ["format", "table"] if TORTURE else ["format"])
def test_an_executor_that_dies_is_made_up_for(table: lp.PartitionedTable, tmp_path: Path, how: str) -> None:
    marker = tmp_path / "killed"

    program = programs.start("doomed", "executor", how, table.root, str(marker))
    output, _ = program.communicate(timeout=programs.PATIENCE)

    assert program.returncode == 0, output[-4000:]
    assert marker.exists()
    assert ids(table) == [-1, *range(ROWS)]
    assert table.inspect.snapshots().num_rows == 3


@pytest.mark.parametrize("number", range(KILLS))
def test_a_driver_that_dies_leaves_all_or_nothing(table: lp.PartitionedTable, tmp_path: Path, number: int) -> None:
    marker = tmp_path / "begun"
    chance = random.Random(number)
    program = programs.start("doomed", "driver", chance.choice(["format", "table"]), table.root, str(marker))
    programs.wait(program, marker.exists)
    time.sleep(chance.uniform(0, 4))
    programs.kill(program)

    assert ids(table) in ([-1], [-1, *range(ROWS)])
    table.append([{"id": -2, "k": 7, "t": "next"}])
    assert ids(table)[0] == -2
