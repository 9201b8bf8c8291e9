"""A table followed through everything that is done to it gives exactly its changes."""

from __future__ import annotations

import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import lancepart as lp
from lancepart.maintain import collect
from tests.spark import changing
from tests.support.dying import forking
from tests.support.processes import rounds

pytestmark = [
    pytest.mark.torture,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

PHASES, STEPS, UPKEEP, PAUSE = rounds(2, 6), rounds(10, 40), rounds(3, 10), 0.3
ALL_CHANGES = {"readChangeFeed": "true"}
WHAT_IS_NEW = {"ignoreChanges": "true", "maxVersionsPerTrigger": "5"}


class Follower:
    """A query that is stopped anywhere and goes on from its checkpoint; a batch that comes again replaces the first."""

    def __init__(self, spark: Any, root: str, place: Path, options: dict[str, str]) -> None:
        self.spark, self.root, self.place, self.options = spark, root, place, options
        self.seen: dict[int, list[Any]] = {}

    def start(self) -> None:
        frame = self.spark.readStream.format("lancepart").options(**self.options).load(self.root)
        checkpoint = str(self.place)
        self.query = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", checkpoint).start()

    def _take(self, frame: Any, batch: int) -> None:
        self.seen[batch] = frame.collect()

    def catch_up(self) -> None:
        self.query.processAllAvailable()
        self.query.stop()

    @property
    def changes(self) -> Counter[Any]:
        found = (row for batch in self.seen.values() for row in batch)
        if "readChangeFeed" in self.options:
            return Counter(((row.id, row.k, row.x), row._change, row._version) for row in found)
        return Counter((row.id, row.k, row.x) for row in found)


@pytest.fixture
def followers(spark: Any, root: str, tmp_path: Path) -> list[Follower]:
    lp.create_table(root, changing.SCHEMA, ["k"])
    return [
        Follower(spark, root, tmp_path / name, {**options, "startingVersion": "latest"})
        for name, options in (("changes", ALL_CHANGES), ("new", WHAT_IS_NEW))
    ]


def test_what_followers_see_is_what_was_done(followers: list[Follower], root: str) -> None:
    chance = random.Random(7)
    model, consumed = changing.Model(), None
    for each in followers:
        each.start()
        each.catch_up()
    with ProcessPoolExecutor(2, mp_context=forking()) as pool:
        for phase in range(PHASES):
            changed = pool.submit(changing.change, root, phase, model, STEPS, PAUSE)
            kept = pool.submit(changing.keep, root, phase, UPKEEP, PAUSE * STEPS / UPKEEP, consumed)
            for each in followers:
                each.start()
            time.sleep(chance.uniform(0, PAUSE * STEPS / 2))
            for each in followers:
                each.query.stop()
                each.start()
            model = changed.result()
            kept.result()
            for each in followers:
                each.catch_up()
            consumed = datetime.now(UTC)

    told = model.changes
    assert followers[0].changes == told
    assert followers[1].changes == Counter(row for row, kind, _ in told.elements() if kind == "insert")
    assert {kind for _, kind, _ in told} == {"insert", "delete"}
    print(f"\n{told.total()} changes, {model.lost} conflicts, {[len(each.seen) for each in followers]} batches")
    refuse_to_go_on(followers, root)


def refuse_to_go_on(followers: list[Follower], root: str) -> None:
    """What was committed after the last batch expires before it was read."""
    table = lp.open_table(root)
    for number in (-1, -2):
        table.append(changing.dicts([(number, 0, 0)]))
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)
    for each in followers:
        each.start()
        with pytest.raises(Exception, match="begin again with a new checkpoint"):
            each.query.processAllAvailable()
