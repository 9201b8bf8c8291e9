"""What crosses processes: executors of their own, a client of Spark Connect, and Spark without the jar."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spark.data import all_types, store
from tests.support.tiers import slow

SMALL = ["id", "country", "text", "day"]


@pytest.mark.parametrize("kind", [slow("cluster"), slow("connect"), slow("plain")])
def test_the_same_rows_in_a_session_of_another_kind(kind: str, tmp_path: Path) -> None:
    rows = all_types().select(SMALL)
    orders, customers = (
        store(tmp_path, "o", ["bucket(id, 4)"], (rows, None)),
        store(tmp_path, "c", ["bucket(id, 2)"], (rows.slice(30), None)),
    )

    found = run(kind, orders.root, customers.root)

    ids, others = rows.column("id").to_pylist(), rows.slice(30).column("id").to_pylist()
    assert found["filtered"] == sum(each["id"] == 3 and each["country"] is not None for each in rows.to_pylist())
    assert found["joined"] == sum(others.count(each) for each in ids if each is not None)
    assert found["union"] == ids.count(1) + ids.count(2)
    assert found["types"] == [["id", "bigint"], ["country", "string"], ["text", "string"], ["day", "date"]]
    assert ["lancepart's own" in text for text in found["attacked"]] == [True, True, False]
    assert found["left"] == rows.num_rows
    assert found["searched"] == ([] if kind == "plain" else [[3, 4], [2, 7]])
    assert found["services"] == {"cluster": [1], "connect": [1, 2], "plain": [0]}[kind]
    assert ["OPERATION_CANCELED" in text for text in found["interrupted"]] == [kind == "connect"] * 2
    assert not (tmp_path / "touched").exists()
    assert ("Exchange" in found["plan"]) == (kind == "plain")
    expected = [[n, n % 3, f"t{n}"] for n in range(2, 20)]
    expected += [[0, 0, "t0"], [1, 1, "t1"]] if kind == "plain" else [[0, 9, "up"], [1, 9, "up"]]
    assert found["written"] == sorted(expected)
    assert found["sql"] == ([] if kind == "plain" else [[1, 1], [2, 7], [4, 0], [5, 8], [6, 9]])
    assert found["sql_left"] == len(found["sql"])
    sizes = Counter(row[1] for row in expected)
    assert found["joined_tables"] in (None, sum(size * size for size in sizes.values()))


def run(kind: str, *arguments: str) -> dict[str, Any]:
    """Run the program in a process of its own."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.elsewhere", kind, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))
