"""Fragments have numbers that are unique over the table, so that a row's id in unions lasts until it is rewritten."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.format import numbers
from lancepart.format.names import NEXT_NUMBER
from lancepart.format.numbers import END, FIRST, SIZE, Blocks, Counter
from lancepart.format.records import NUMBERS
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, metadata_update
from lancepart.storage.root import Root

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(rows("a", 0, 3))
    made.append(rows("b", 3, 6))
    return made


def rows(key: str, start: int, end: int) -> list[dict[str, Any]]:
    return [{"id": number, "k": key} for number in range(start, end)]


def ids(table: lp.PartitionedTable, **options: Any) -> dict[int, int]:
    """The row ids of all rows in a new union, by the rows' keys."""
    found = table.to_lance(**options).to_table(with_row_id=True)
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def kept(before: dict[int, int], after: dict[int, int]) -> bool:
    return all(after[key] == number for key, number in before.items() if key in after)


def test_rows_keep_their_ids_through_appends_deletes_and_other_partitions(table: lp.PartitionedTable) -> None:
    version, seen = table.version, ids(table)
    assert len(set(seen.values())) == 6
    assert min(seen.values()) >> 32 >= FIRST

    for step in (
        lambda: table.append(rows("a", 10, 12)),
        lambda: table.append([*rows("c", 20, 22), *rows("0", 22, 24)]),
        lambda: table.delete("id = 1"),
        lambda: table.delete("k = 'b'"),
        lambda: table.add_column(pa.field("more", pa.string())),
        lambda: table.append(rows("b", 30, 32)),
    ):
        step()
        now = ids(table)
        assert kept(seen, now)
        assert len(set({**seen, **now}.values())) == len({**seen, **now}), "no number is given again"
        seen |= now

    assert ids(table, version=version) == {key: seen[key] for key in range(6)}, "also in older snapshots"
    lp.config.cache_bytes = lp.config.cache_bytes
    assert ids(lp.open_table(table.root)) == ids(table)
    assert ids(table, where="id >= 20").items() <= seen.items()


def test_rows_that_are_rewritten_get_other_ids_and_the_others_keep_theirs(table: lp.PartitionedTable) -> None:
    table.append(rows("a", 10, 12))
    before = ids(table)

    table.update({"k": "'a'"}, "id = 0")
    after = ids(table)
    assert after[0] not in before.values()
    assert kept({key: before[key] for key in before if key != 0}, after)

    table.maintenance.compact(progress=False)
    compacted = ids(table)
    assert not {compacted[key] for key in (0, 1, 2, 10, 11)} & {*before.values(), *after.values()}
    assert kept({key: before[key] for key in (3, 4, 5)}, compacted)


def test_a_rollback_gives_no_number_to_two_rows(table: lp.PartitionedTable) -> None:
    version = table.version
    table.append(rows("a", 10, 11))
    seen = ids(table)
    table.maintenance.rollback(version)
    table.append(rows("a", 11, 12))

    assert ids(table)[11] not in seen.values()
    assert kept({key: seen[key] for key in (3, 4, 5)}, ids(table)), "the other partition did not change"


def test_a_leaf_that_is_made_again_elsewhere_gets_other_numbers(table: lp.PartitionedTable) -> None:
    table.append(rows("a", 10, 12))
    before = ids(table)
    broken = next(Path(table.root).glob("*/data/*.lance")).parent.parent
    shutil.rmtree(broken / "_versions")

    table.overwrite([*rows("a", 40, 43), *rows("b", 43, 46)])
    after = ids(table)
    assert set(after) == set(range(40, 46))
    assert not set(after.values()) & set(before.values())


def test_a_leaf_with_many_fragments_gets_another_block(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "SIZE", 2)
    for number in range(6):
        table.append(rows("d", 100 + number, 101 + number))
    table.append(rows("e", 200, 201))
    seen = ids(table)
    assert len(set(seen.values())) == len(seen)
    assert min(seen.values()) >> 32 >= FIRST
    table.append(rows("d", 300, 301))
    assert kept(seen, ids(table))


@pytest.mark.parametrize("appends", [1, 3, 4])
def test_an_id_is_never_that_of_another_row_however_far_an_indexed_partition_goes(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch, appends: int
) -> None:
    """Its own numbers of fragments, which are the table's, come to those that another block of it begins with."""
    monkeypatch.setattr(numbers, "SIZE", 2)
    made = lp.create_table(f"{table.root}-small", SCHEMA, ["k"])
    made.append([*rows("a", 0, 3), *rows("b", 3, 6)])
    made.maintenance.create_index("id", progress=False)
    seen: dict[int, int] = {}

    def note() -> None:
        for key, number in ids(made).items():
            assert seen.setdefault(number, key) == key

    for number in range(appends):
        made.append(rows("a", 10 + number, 11 + number))
        note()
    for round_ in range(3):
        made.maintenance.compact(progress=False)
        note()
        made.append(rows("a", 100 + round_, 101 + round_))
        note()
        made.maintenance.optimize_indices(progress=False)
        assert made.to_lance().to_table(filter="id = 10", columns=["id"])["id"].to_pylist() == [10]


@dataclass
class Simulated:
    """A leaf whose fragments are numbers of its own, each with what it holds."""

    own: dict[int, int] = field(default_factory=dict)
    next: int = 0
    blocks: Blocks | None = None

    def after(self, draw: random.Random, held: Iterator[int]) -> Simulated:
        """What a commit makes of it: fragments come, go, are put together, or get their numbers as their own ones."""
        own, following = dict(self.own), self.next
        step = draw.choice([*["append"] * 6, "compact", "drop", "index", "index"])
        if step == "compact" and own:
            for number in draw.sample(sorted(own), draw.randint(1, len(own))):
                del own[number]
        if step in ("append", "compact") or not own:
            for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
                own[following], following = next(held), following + 1
        if step == "drop" and len(own) > 1:
            del own[draw.choice(sorted(own))]
        if step == "index" and self.blocks is not None and following == max(own, default=0) + 1:
            wanted = {each: number for each in own if (number := self.blocks.of(each)) is not None}
            later = self.blocks.renumbered(list(wanted.values()))
            if len(wanted) == len(own) and later.first == later.starts[0] == self.blocks.starts[-1]:
                own = {wanted[each]: value for each, value in own.items()}
                following = max(own) + 1
        return Simulated(own, following, self.blocks)


@pytest.mark.parametrize("seed", range(20, 40))
def test_no_number_is_ever_given_to_two_fragments(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, held = random.Random(seed), iter(range(1 << 20))
    monkeypatch.setattr(numbers, "SIZE", draw.choice((2, 4, 8)))
    monkeypatch.setattr(numbers, "MOST_BLOCKS", draw.choice((2, 4, 32)))
    following, given, leaves = FIRST, {}, [Simulated() for _ in range(draw.randint(1, 5))]
    for _ in range(300):
        at, counter = draw.randrange(len(leaves)), Counter(next=following)
        leaf = leaves[at].after(draw, held)
        leaf.blocks = counter.extended(leaf.blocks, 1, list(leaf.own))
        following, leaves[at] = counter.next, leaf
        for own, value in leaf.own.items() if leaf.blocks is not None else ():
            number = leaf.blocks.of(own)
            assert number is not None
            assert given.setdefault(number, value) == value


@pytest.mark.slow
def test_writers_at_once_never_take_the_same_numbers(tmp_path: Path) -> None:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])

    def write(writer: int) -> None:
        mine = lp.open_table(made.root)
        for step in range(4):
            start = 100 * writer + 10 * step
            mine.append([*rows(f"w{writer}-{step}", start, start + 2), *rows("shared", start + 2, start + 3)])

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    seen = ids(lp.open_table(made.root))
    assert len(seen) == 48
    assert len(set(seen.values())) == 48
    blocks = [start for leaf in made.scan().plan().leaves for start in (leaf.numbers.starts if leaf.numbers else ())]
    assert len(blocks) == 17
    assert len(set(blocks)) == 17
    assert min(seen.values()) >> 32 >= FIRST


def changed(table: lp.PartitionedTable, object_id: str, **values: Any) -> None:
    manifest = Manifest(Root.parse(table.root))
    row = manifest.snapshot().row(object_id)
    assert row is not None
    given = {key: value for key, value in {**(row.metadata or {}), **values}.items() if value is not None}
    change = Change(updates=(metadata_update(object_id, given),))
    manifest.transact(lambda snapshot, retry: (change, None))


def test_leaves_without_numbers_go_on_and_get_them_by_compaction(table: lp.PartitionedTable) -> None:
    """As releases from before leave them, and other clients: without the entry, or with one of an older version."""
    table.append(rows("a", 10, 11))
    bare, older = table.scan().plan().leaves
    changed(table, bare.object_id, **{NUMBERS: None})
    changed(table, older.object_id, **{NUMBERS: [older.numbering[0] + 1, 0, FIRST]})
    table = lp.open_table(table.root)
    assert all(leaf.numbers is None for leaf in table.scan().plan().leaves)
    assert max(ids(table).values()) >> 32 < FIRST

    table.append([*rows("a", 11, 12), *rows("b", 12, 13)])
    assert all(leaf.numbers is None for leaf in table.scan().plan().leaves), "no commit meets others because of it"
    assert len(set(ids(table).values())) == 9

    table.maintenance.compact(progress=False)
    assert all(leaf.numbers is not None for leaf in table.scan().plan().leaves)
    assert min(ids(table).values()) >> 32 >= FIRST


@pytest.mark.parametrize("counter", [END - SIZE + 1, "many", -1])
def test_without_numbers_left_the_table_goes_on(table: lp.PartitionedTable, counter: object) -> None:
    before = ids(table)
    changed(table, "v1", **{NEXT_NUMBER: counter})
    table = lp.open_table(table.root)
    table.append([*rows("new", 50, 52), *rows("a", 52, 53)])

    now = ids(table)
    assert kept(before, now)
    assert len(set(now.values())) == 9
    assert now[50] >> 32 < FIRST


def taken(table: lp.PartitionedTable) -> int:
    """How many rows have ids that each take their own row."""
    found = table.scan(with_row_id=True).to_arrow()
    assert table.take(found["_rowid"], columns=["id"])["id"].equals(found["id"])
    return found.num_rows


def test_rows_of_an_indexed_partition_have_ids_after_a_rollback_to_many_fragments(table: lp.PartitionedTable) -> None:
    """Its fragments have the table's numbers as their own ones, and are too many to be recorded."""
    table.maintenance.create_index("id", progress=False)
    for number in range(33):
        table.append(rows("a", 100 + number, 101 + number))
    version = table.version
    table.append(rows("a", 200, 201))

    table.maintenance.rollback(version)

    assert taken(table) == 39
    table.append(rows("a", 300, 301))
    assert taken(lp.open_table(table.root)) == 40
    table.maintenance.compact(progress=False)
    assert taken(table) == 40
    assert all(leaf.numbers is not None for leaf in table.scan().plan().leaves)


def test_rows_of_an_indexed_partition_have_ids_when_no_numbers_are_left(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "SIZE", 2)
    table.append(rows("c", 10, 12))
    table.maintenance.create_index("id", progress=False)
    changed(table, "v1", **{NEXT_NUMBER: END - SIZE + 1})
    table = lp.open_table(table.root)

    for number in range(4):
        table.append(rows("c", 20 + number, 21 + number))
        assert taken(table) == 9 + number


def test_two_leaves_with_the_same_numbers_are_told_apart(table: lp.PartitionedTable) -> None:
    """Whoever writes such a manifest by hand gets all rows, each with an id of its own."""
    for leaf in table.scan().plan().leaves:
        changed(table, leaf.object_id, **{NUMBERS: [leaf.read_version, 0, FIRST]})

    assert len(set(ids(lp.open_table(table.root)).values())) == 6


def test_blocks_are_spelled_and_understood() -> None:
    blocks = Blocks(version=7, first=0, starts=(FIRST, FIRST + 4 * SIZE))
    assert Blocks.from_json(blocks.to_json(), 7) == blocks
    assert Blocks.from_json(blocks.to_json(), 8) is None
    bare = Blocks.none(7, FIRST + SIZE + 3)
    assert bare == Blocks(version=7, first=FIRST + SIZE, starts=())
    assert Blocks.from_json(bare.to_json(), 7) == bare
    assert Blocks.none(7, FIRST - 1) is None
    for damaged in ([], "x", [7, 0], [7, 1, FIRST], [7, 0, FIRST - 1], [7, 0, 1 << 32], [7, 0, "x"], [7, -SIZE, FIRST]):
        assert Blocks.from_json(damaged, 7) is None
    counter = Counter(next=END - SIZE)
    assert counter.extended(None, 1, [0, SIZE]) is None
    assert counter.extended(None, 1, [3 * SIZE + 1]) == Blocks(version=1, first=3 * SIZE, starts=(END - SIZE,))
    assert counter.extended(None, 1, [0]) is None
