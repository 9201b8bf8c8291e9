"""Random writers and collectors on one table whose files grow old, against a model of what must be readable."""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.commit import distributed_write
from lancepart.errors import CommitConflictError, TableVersionNotFoundError
from lancepart.maintain import collect
from lancepart.storage import history
from lancepart.storage.removal import UNION_DIRECTORY
from lancepart.storage.root import Root
from tests.support.catalogs import Place
from tests.support.interleave import DONE, PLANNED, Stepper
from tests.support.processes import TORTURE
from tests.support.tiers import one_in
from tests.transactions.tables import assert_whole, opened

BANKS = "ABCDE"
SEEDS = range(400) if TORTURE else one_in(8, range(8))
STEPS = 60 if TORTURE else 30
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("bank", pa.string()),
        pa.field("x", pa.int64()),
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    ]
)

Rows = dict[int, tuple[str, int]]


def blob(number: int) -> bytes | None:
    """A value that its id decides: none, one in the data file, or one beside it."""
    sizes: tuple[int | None, ...] = (None, 10, 70_000)
    size = sizes[number % 3]
    return None if size is None else hashlib.sha256(str(number).encode()).digest() * (size // 32 + 1)


def data(rows: Rows) -> pa.Table:
    found = [{"id": key, "bank": bank, "x": x, "b": blob(key)} for key, (bank, x) in rows.items()]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def content(table: Any, where: str | None = None) -> Rows:
    """The rows that a table holds; each must be whole and stand there once."""
    found = table.scan(where).to_arrow().to_pylist()
    assert all(row["b"] == blob(row["id"]) for row in found)
    assert max(Counter(row["id"] for row in found).values(), default=0) <= 1
    return {row["id"]: (row["bank"], row["x"]) for row in found}


@dataclass
class Paused:
    """A writer that has staged all it writes, and what the table is to hold when it has committed."""

    commit: Callable[[], Any]
    effect: Callable[[Rows], Rows]
    snapshot: Any = None


@dataclass
class World:
    """A table, and what must be readable of it."""

    place: Place
    chance: random.Random
    rows: Rows = field(default_factory=dict)
    past: dict[int, Rows] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    paused: list[Paused] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)
    next_id: int = 0
    published: Rows | None = None

    def __post_init__(self) -> None:
        self.table = lp.create_table(self.place.root, SCHEMA, ["bank"])
        self.append(self.table)
        self.note()

    def note(self) -> None:
        """Remember what the latest snapshot holds."""
        self.past[self.table.version] = dict(self.rows)

    def step(self) -> None:
        """Do one thing, chosen at random."""
        name, weight = zip(*ACTIONS.items(), strict=True)
        (chosen,) = self.chance.choices(name, weight)
        self.did[chosen] += 1
        getattr(self, chosen)()

    def fresh(self, bank: str | None = None) -> Rows:
        count = self.chance.randint(1, 4)
        numbers = range(self.next_id, self.next_id + count)
        self.next_id += count
        return {number: (bank or self.chance.choice(BANKS), 0) for number in numbers}

    def change(self, target: Any, known: Rows) -> Callable[[Rows], Rows]:
        """Let a table or a transaction change some rows; what it then holds is the effect on what it held."""
        kind = self.chance.choice(["append", "append", "delete", "update", "upsert", "overwrite", "clear"])
        some = self.chance.sample(sorted(known), min(len(known), self.chance.randint(1, 3)))
        listed = ", ".join(map(str, some)) or "-1"
        bank = self.chance.choice(BANKS)
        if kind == "delete":
            target.delete(f"id IN ({listed})")
            return lambda rows: {key: row for key, row in rows.items() if key not in some}
        if kind == "update":
            target.update({"x": "x + 1"}, f"id IN ({listed})")
            moved = {key: (known[key][0], known[key][1] + 1) for key in some}
            return lambda rows: {**rows, **moved}
        if kind == "clear":
            target.delete(f"bank = '{bank}'")
            gone = {key for key, row in known.items() if row[0] == bank}
            return lambda rows: {key: row for key, row in rows.items() if key not in gone}
        fresh = self.fresh(bank if kind == "overwrite" else None)
        if kind == "upsert":
            fresh |= {key: (self.chance.choice(BANKS), 100) for key in some}
            target.upsert(data(fresh), ["id"])
        elif kind == "overwrite":
            target.overwrite(data(fresh))
            return lambda rows: {**{key: row for key, row in rows.items() if row[0] != bank}, **fresh}
        else:
            target.append(data(fresh))
        return lambda rows: {**rows, **fresh}

    def append(self, target: Any) -> None:
        fresh = self.fresh()
        target.append(data(fresh))
        self.rows |= fresh

    def verb(self) -> None:
        self.rows = self.change(self.table, self.rows)(self.rows)
        self.note()

    def begin(self) -> None:
        """A transaction of one change, or a job, that stops before it commits."""
        if self.chance.random() < 0.6:
            tx = self.table.transaction()
            effect = self.change(tx, dict(self.rows))
            self.paused.append(Paused(commit=tx.commit, effect=effect, snapshot=tx.snapshot))
            return
        fresh = self.fresh()
        job = distributed_write.plan(self.table._manifest)
        reports = [distributed_write.write(job, data({key: row})) for key, row in fresh.items()]

        def commit() -> Any:
            return distributed_write.commit(opened(self.place)._manifest, job, reports)

        self.paused.append(Paused(commit=commit, effect=lambda rows: {**rows, **fresh}))

    def finish(self) -> None:
        """Let a writer that was paused commit: it is there as a whole, or not at all."""
        if not self.paused:
            return
        writer = self.paused.pop(self.chance.randrange(len(self.paused)))
        try:
            writer.commit()
        except CommitConflictError as error:
            self.did[f"refused: {type(error).__name__}"] += 1
            assert content(self.table) == self.rows
            return
        self.did["late commits"] += 1
        self.rows = writer.effect(self.rows)
        self.note()

    def compact(self) -> None:
        self.table.maintenance.compact(progress=False)
        self.note()

    def index(self) -> None:
        self.table.maintenance.create_index("id", self.chance.choice(["BTREE", "BITMAP"]), progress=False)
        self.note()

    def tag(self) -> None:
        name, version = f"t{len(self.tags)}", self.chance.choice(sorted(self.past))
        if name not in self.tags:
            try:
                self.table.tags.create(name, version)
                self.tags[name] = version
            except TableVersionNotFoundError:
                self.did["tags refused"] += 1

    def publish(self) -> None:
        self.table.publish_lance()
        self.published = dict(self.rows)

    def untag(self) -> None:
        if self.tags:
            name = self.chance.choice(sorted(self.tags))
            del self.tags[name]
            self.table.tags.delete(name)

    def rollback(self) -> None:
        version = self.chance.choice(sorted(self.past))
        try:
            self.table.maintenance.rollback(version)
            self.rows = dict(self.past[version])
            self.note()
        except (TableVersionNotFoundError, CommitConflictError):
            self.did["rollbacks refused"] += 1

    def age(self) -> None:
        """Let all files look some hours older, and so what writers have opened."""
        seconds = 3600 * self.chance.randint(1, 6)
        for known in {
            id(each): each for each in (self.table._manifest._latest, *(p.snapshot for p in self.paused))
        }.values():
            if known is not None:
                known.opened -= seconds
        for folder, _, names in os.walk(self.place.root):
            for name in names:
                path = Path(folder) / name
                then = path.stat().st_mtime - seconds
                os.utime(path, (then, then))

    def collector(self) -> Callable[[Any], Any]:
        hours = timedelta(hours=self.chance.choice([0, 1, 2, 4, 12]))
        if self.chance.random() < 0.5:
            return lambda manifest: collect.expire(manifest, hours, progress=False)
        return lambda manifest: collect.remove_orphans(manifest, hours, progress=False)

    def collect(self) -> None:
        report = self.collector()(self.table._manifest)
        self.did["files removed"] += report.removed_files
        assert report.kept == ()
        self.check()

    def race(self) -> None:
        """A collector that waits with its floors or its mark, while a writer commits or another collector runs."""
        waiting = Stepper(Root.parse(self.place.root), self.collector())
        waiting.until(PLANNED)
        if self.chance.random() < 0.5:
            self.collector()(opened(self.place)._manifest)
        else:
            self.chance.choice([self.verb, self.finish])()
        waiting.until(DONE)
        if waiting.error is not None:
            raise waiting.error
        self.check()

    def check_published(self) -> None:
        """What other clients see of the table is what it was when it was published."""
        if self.published is not None:
            dataset = lance.dataset(f"{self.place.root}/{UNION_DIRECTORY}")
            found = dataset.to_table(blob_handling="all_binary").to_pylist()
            assert all(row["b"] == blob(row["id"]) for row in found)
            assert {row["id"]: (row["bank"], row["x"]) for row in found} == self.published

    def check(self) -> None:
        """All that must be readable reads just so."""
        self.check_published()
        latest = opened(self.place)
        self.note()
        assert content(latest) == self.rows
        assert_whole(latest)
        for key in self.chance.sample(sorted(self.rows), min(2, len(self.rows))):
            assert content(latest, f"id = {key}") == {key: self.rows[key]}
        now = latest._manifest.snapshot()
        mark = history.oldest(now)
        there = [version for version in history.versions(latest._manifest) if version in self.past]
        kept = [version for version in there if version >= mark]
        self.past = {version: self.past[version] for version in {*kept, *self.tags.values()}}
        for version in {*self.chance.sample(kept, min(3, len(kept))), *self.tags.values(), min(kept, default=0)}:
            if version:
                assert content(opened(self.place, version)) == self.past[version], version


ACTIONS = {
    "verb": 8,
    "begin": 6,
    "finish": 4,
    "age": 5,
    "collect": 4,
    "race": 3,
    "compact": 1,
    "index": 1,
    "tag": 1,
    "publish": 1,
    "untag": 0.5,
    "rollback": 0.5,
}


@pytest.mark.parametrize("seed", SEEDS)
def test_collectors_and_writers_at_random(tmp_path: Path, seed: int) -> None:
    world = World(Place(str(tmp_path / "t")), random.Random(seed))
    for _ in range(STEPS):
        world.step()
    for _ in range(len(world.paused)):
        world.finish()
    world.age()
    world.collect()
    print(seed, dict(world.did))
