"""Upkeep on Spark that is killed leaves the table with the rows that it had, and is simply run again."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark import keeping, programs
from tests.support.catalogs import Place
from tests.support.processes import Kill, rounds
from tests.transactions.aged import make_aged
from tests.transactions.tables import assert_whole, content, data

pytestmark = [
    pytest.mark.torture,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

STEPS, MOMENTS, LATEST = rounds(1, 4), rounds(1, 2), 3.0


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table with a history, and one of an older layout with the same rows."""
    aged, tree = tmp_path_factory.mktemp("aged") / "t", tmp_path_factory.mktemp("tree") / "t"
    table = make_aged(Place(str(aged)))
    rows = table.scan().to_arrow()
    lp.create_table(tree, pa.schema(list(rows.schema)), ["bank", "bucket(id, 2)"], layout="hive").append(rows)
    return {name: tree if name == "upgrade" else aged for name in keeping.ACTIONS}


def steps_of(action: str, root: Path, place: Path) -> int:
    """How many steps the driver takes when nobody kills it."""
    shutil.copytree(root, place)
    program = programs.start("keeping", action, str(place), f"{place}.sign", "")
    output, _ = program.communicate(timeout=programs.PATIENCE)
    assert program.returncode == 0, output[-4000:]
    return int([line for line in output.splitlines() if line.strip().isdigit()][-1])


def kill_at(action: str, root: Path, kill: Kill | None, moment: float) -> bool:
    """Let it die at a step, or kill it at a moment; whether it came to its end before."""
    sign = Path(f"{root}.sign")
    program = programs.start("keeping", action, str(root), str(sign), json.dumps(asdict(kill)) if kill else "")
    if kill is None:
        assert programs.wait(program, sign.exists), program.communicate()[0][-4000:]
        time.sleep(moment)
        programs.kill(program)
    output, _ = program.communicate(timeout=programs.PATIENCE)
    programs.end_group(program)
    assert program.returncode in (0, -signal.SIGKILL), output[-4000:]
    assert kill is None or program.returncode, "it came to its end before the step"
    return program.returncode == 0


@pytest.mark.parametrize("action", keeping.ACTIONS)
def test_upkeep_that_was_killed_is_run_again(
    spark: Any, templates: dict[str, Path], action: str, tmp_path: Path
) -> None:
    template = templates[action]
    expected = content(lp.open_table(template))
    steps = steps_of(action, template, tmp_path / "whole")
    assert content(lp.open_table(tmp_path / "whole")) == expected
    chance = random.Random(action)
    all_kills = [Kill(step, after) for step in range(steps) for after in (False, True)]
    kills: list[Kill | None] = [*chance.sample(all_kills, min(STEPS, len(all_kills))), *[None] * MOMENTS]
    early = 0
    for number, kill in enumerate(kills):
        root = tmp_path / str(number)
        shutil.copytree(template, root)
        early += kill_at(action, root, kill, chance.uniform(0, LATEST))
        assert content(lp.open_table(root)) == expected, kill

        keeping.ACTIONS[action](str(root), spark)

        table = lp.open_table(root)
        assert content(table) == expected, kill
        assert_whole(table)
        table.append(data([(100, "A", 0)]))
        assert table.scan().count() == expected.total() + 1
    print(f"\n{action}: {steps} steps of the driver, {len(kills)} kills, {early} of them after its end")
