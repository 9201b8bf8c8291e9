"""A streaming query killed again and again writes exactly the rows that were sent."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark import programs
from tests.support.processes import rounds

pytestmark = [pytest.mark.torture, pytest.mark.long]

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string())])
BACKLOG = 3
KILLS = {"table": rounds(2, 50), "files": rounds(1, 10)}
HOW = BEGINNING, BETWEEN, COMMITTED = "as the query began", "in a batch", "as a batch was committed"
TOO_SLOW = "Python worker failed to connect back"
"""What Spark ends a query with on a machine that has too much to do."""
LATEST = {BEGINNING: 6.0, BETWEEN: 2.0}


@dataclass
class Pipe:
    """A source that rows are sent to, and the table that a query copies them into."""

    kind: str
    place: Path
    sent: int = 0
    deliveries: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    starved: int = 0

    def __post_init__(self) -> None:
        self.source = self.place / "source"
        self.sink = lp.create_table(self.place / "sink", SCHEMA, ["k"])
        if self.kind == "files":
            self.source.mkdir()
        else:
            lp.create_table(self.source, SCHEMA, ["bucket(id, 2)"])

    @property
    def checkpoint(self) -> Path:
        return self.place / "checkpoint"

    def send(self, count: int) -> None:
        """Some rows, as one file or one commit."""
        rows = [{"id": number, "k": number % 5, "t": f"t{number}"} for number in range(self.sent, self.sent + count)]
        self.sent += count
        self.deliveries += 1
        if self.kind == "table":
            lp.open_table(self.source).append(rows)
            return
        unseen = self.place / "unseen"
        unseen.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.replace(unseen, self.source / f"{self.deliveries:05}.json")

    def compact(self) -> None:
        """Put the small fragments together of which each batch makes some."""
        self.sink.maintenance.compact(progress=False)
        if self.kind == "table":
            lp.open_table(self.source).maintenance.compact(progress=False)

    def start(self, sign: str) -> subprocess.Popen[str]:
        return programs.start("endless", self.kind, *map(str, (self.source, self.sink.root, self.checkpoint, sign)))

    @property
    def written(self) -> int:
        """The last batch that the table knows of."""
        found = lp.open_table(self.sink.root)._manifest.snapshot().below("lancepart.once")
        return max((int((row.metadata or {})["sequence"]) for row in found if row.metadata), default=-1)

    @property
    def snapshots(self) -> int:
        """How many snapshots the table has had, looked up quickly."""
        return len(os.listdir(f"{self.sink.root}/__manifest/_versions"))

    @property
    def finished(self) -> int:
        """The last batch that Spark knows to be finished."""
        return max((int(path.name) for path in (self.checkpoint / "commits").glob("[0-9]*")), default=-1)

    @property
    def ids(self) -> Counter[int]:
        return Counter(lp.open_table(self.sink.root).scan(columns=["id"]).to_arrow().column("id").to_pylist())


def kill_somewhere(pipe: Pipe, chance: random.Random) -> None:
    """Kill while the query begins, in the middle of a batch, or as soon as a batch's snapshot shows."""
    sign = pipe.place / f"sign{pipe.kills.total()}_{pipe.starved}"
    program = pipe.start(str(sign))
    assert programs.wait(program, sign.exists), program.communicate()[0][-4000:]
    last = pipe.snapshots
    how = chance.choices(HOW, weights=(1, 2, 2))[0]
    if how != BEGINNING:
        programs.wait(program, lambda: pipe.snapshots > last)
    if how != COMMITTED:
        time.sleep(chance.uniform(0, LATEST[how]))
    output = programs.kill(program)
    if program.returncode != -signal.SIGKILL:
        assert TOO_SLOW in output, output[-4000:]
        pipe.starved += 1
        return
    pipe.kills[how] += 1
    pipe.unknown += pipe.written > pipe.finished


@pytest.mark.parametrize("kind", KILLS)
def test_a_query_killed_again_and_again_writes_the_rows_that_were_sent(kind: str, tmp_path: Path) -> None:
    chance = random.Random(kind)
    pipe = Pipe(kind, tmp_path)
    begun = time.monotonic()
    for _ in range(BACKLOG):
        pipe.send(10)
    while (number := pipe.kills.total()) < KILLS[kind]:
        assert pipe.starved <= KILLS[kind]
        for _ in range(chance.randint(1, 4)):
            pipe.send(chance.randint(1, 40))
        if number % 10 == 9:
            pipe.compact()
        kill_somewhere(pipe, chance)
        found = pipe.ids
        assert set(found) <= set(range(pipe.sent))
        assert set(found.values()) <= {1}, "a row was written twice"

    last = pipe.start("rest")
    output, _ = last.communicate(timeout=programs.PATIENCE)

    assert last.returncode == 0, output[-4000:]
    assert pipe.ids == Counter(range(pipe.sent))
    seconds = time.monotonic() - begun
    print(
        f"\n{kind}: killed {dict(pipe.kills)}, {pipe.unknown} times before Spark knew that its batch was written, "
        f"{pipe.starved} times ended by Spark; {pipe.finished + 1} batches, {pipe.sent} rows, {seconds:.0f} s"
    )
