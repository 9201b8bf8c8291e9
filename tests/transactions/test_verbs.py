"""What each verb does to a table's rows, beside the same done to a list in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lancepart.errors import (
    CommitConflictError,
    InvalidInputError,
    LanceNamespaceError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)
from tests.support.catalogs import Place
from tests.support.processes import rounds
from tests.transactions.tables import SCHEMA, Row, assert_whole, content, data, make

BANKS = (None, "A", "B", "it's", "🙂", "", "Ab")
STEPS = 9


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _more(x: Any, bound: int) -> bool | None:
    return None if x is None else x > bound


def _same(x: Any, wanted: Any) -> bool | None:
    return None if x is None else x == wanted


def _or(a: bool | None, b: bool | None) -> bool | None:
    return True if a is True or b is True else None if a is None or b is None else False


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


FILTERS: tuple[tuple[str, Callable[[Row], bool | None]], ...] = (
    ("id < 6", lambda r: r[0] < 6),
    ("bank = 'it''s'", lambda r: _same(r[1], "it's")),
    ("bank IS NULL", lambda r: r[1] is None),
    ("x > 1 OR bank = '🙂'", lambda r: _or(_more(r[2], 1), _same(r[1], "🙂"))),
    ("NOT (x = 1)", lambda r: _not(_same(r[2], 1))),
    ("bank = 'A' AND id % 2 = 0", lambda r: _and(_same(r[1], "A"), r[0] % 2 == 0)),
    ("bank IN ('A', 'B')", lambda r: None if r[1] is None else r[1] in ("A", "B")),
    ("true", lambda r: True),
    ("id > 1000", lambda r: False),
)
SETS: tuple[tuple[dict[str, str], Callable[[Row], Row]], ...] = (
    ({"x": "x + 1"}, lambda r: (r[0], r[1], None if r[2] is None else r[2] + 1)),
    ({"x": "id * 2", "bank": "'B'"}, lambda r: (r[0], "B", r[0] * 2)),
    ({"bank": "CASE WHEN x > 1 THEN '🙂' ELSE bank END"}, lambda r: (r[0], "🙂" if _more(r[2], 1) else r[1], r[2])),
    ({"bank": "NULL"}, lambda r: (r[0], None, r[2])),
    ({"bank": "'it''s'", "x": "NULL"}, lambda r: (r[0], "it's", None)),
)
SPECS: tuple[tuple[list[str], Callable[[Row], Any]], ...] = (
    (["bank"], lambda r: r[1]),
    (["truncate(bank, 1)"], lambda r: None if r[1] is None else r[1][:1]),
    (["bank", "truncate(id, 4)"], lambda r: (r[1], r[0] - r[0] % 4)),
)
KEYS = (["id"], ["id", "bank"], ["bank"], ["id", "x"])


@dataclass
class Model:
    """The same rows in a list."""

    rows: list[Row] = field(default_factory=list)
    partition: Callable[[Row], Any] = SPECS[0][1]

    def append(self, rows: Sequence[Row]) -> None:
        self.rows += rows

    def overwrite(self, rows: Sequence[Row]) -> None:
        touched = {self.partition(row) for row in rows}
        self.rows = [row for row in self.rows if self.partition(row) not in touched] + list(rows)

    def overwrite_where(self, rows: Sequence[Row], matches: Callable[[Row], bool | None]) -> None:
        self.rows = [row for row in self.rows if not matches(row)] + list(rows)

    def delete(self, matches: Callable[[Row], bool | None]) -> None:
        self.rows = [row for row in self.rows if not matches(row)]

    def update(self, change: Callable[[Row], Row], matches: Callable[[Row], bool | None]) -> None:
        self.rows = [change(row) if matches(row) else row for row in self.rows]

    def upsert(self, rows: Sequence[Row], on: Sequence[str]) -> None:
        keys = {key_of(row, on) for row in rows if None not in key_of(row, on)}
        self.rows = [row for row in self.rows if key_of(row, on) not in keys] + list(rows)


def key_of(row: Row, on: Sequence[str]) -> Row:
    return tuple(row[SCHEMA.names.index(name)] for name in on)


class Walk:
    """A random walk of verbs over a table and over the model beside it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model()

    def rows(self, most: int = 6) -> list[Row]:
        draw = self.random
        return [
            (draw.randrange(12), draw.choice(BANKS), draw.choice([None, 0, 1, 2, 3]))
            for _ in range(draw.randint(0, most))
        ]

    def step(self, target: Any, model: Model) -> str:
        """Do one thing to a table or a transaction, and to a model; what it was."""
        verb = self.random.choice(["append", "overwrite", "replace", "delete", "update", "upsert", "upsert"])
        where, matches = self.random.choice(FILTERS)
        rows = self.rows()
        if verb == "append":
            target.append(data(rows))
            model.append(rows)
        elif verb == "overwrite":
            target.overwrite(data(rows[:3]))
            model.overwrite(rows[:3])
        elif verb == "replace":
            rows = [row for row in rows if matches(row)]
            target.overwrite(data(rows), where)
            model.overwrite_where(rows, matches)
        elif verb == "delete":
            target.delete(where)
            model.delete(matches)
        elif verb == "update":
            values, change = self.random.choice(SETS)
            target.update(values, where)
            model.update(change, matches)
        else:
            on = self.random.choice(KEYS)
            chosen = {key_of(row, on): row for row in rows if None not in key_of(row, on)}
            rows = [*chosen.values(), *(row for row in rows if None in key_of(row, on))]
            target.upsert(data(rows), on)
            model.upsert(rows, on)
            where = f"{on}"
        return f"{verb} {rows} {where}"

    def transaction(self, table: Any) -> str:
        """Several steps as one commit, or given up at the end."""
        before = content(table)
        own = Model(list(self.model.rows), self.model.partition)
        done = []
        tx = table.transaction(self.random.choice(["snapshot", "serializable"]))
        for _ in range(self.random.randint(1, 3)):
            done.append(self.step(tx, own))
            assert content(tx) == Counter(own.rows), done
            assert tx.scan().count() == len(own.rows), done
            assert content(table) == before, done
        if self.random.random() < 0.75:
            tx.commit()
            self.model = own
        return f"transaction {done}"

    def update_spec(self, table: Any) -> str:
        by, self.model.partition = self.random.choice(SPECS)
        table.update_spec(by)
        return f"update_spec {by}"


@pytest.mark.torture
@pytest.mark.parametrize("mode", ["strong", "weak"])
@pytest.mark.parametrize("seed", range(rounds(4, 60)))
def test_a_random_walk_of_verbs_leaves_what_the_same_leaves_in_memory(local: Place, mode: str, seed: int) -> None:
    walk = Walk(seed)
    table = make(local, mode=mode)
    done = []
    for _ in range(STEPS):
        dice = walk.random.random()
        if dice < 0.15:
            done.append(walk.update_spec(table))
        elif dice < 0.4 and mode == "strong":
            done.append(walk.transaction(table))
        else:
            done.append(walk.step(table, walk.model))
        assert content(table) == Counter(walk.model.rows), done
    assert_whole(table)


ROWS: tuple[Row, ...] = ((1, "A", 10), (2, "A", 20), (3, "B", 30), (4, None, 40))


@pytest.mark.parametrize("mode", ["strong", "weak"])
@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda t: t.update({"x": "nothing + 1"}), InvalidInputError),
        (lambda t: t.update({"x": "1 / (id - 3)"}), InvalidInputError),
        (lambda t: t.update({"x": "'many'"}), TableSchemaValidationError),
        (lambda t: t.update({"y": "1"}), TableColumnNotFoundError),
        (lambda t: t.update({}), InvalidInputError),
        (lambda t: t.update({"x": "1"}, "y = 1"), LanceNamespaceError),
        (lambda t: t.delete(""), InvalidInputError),
        (lambda t: t.delete("nothing = 1"), LanceNamespaceError),
        (lambda t: t.overwrite(data([(1, "A", 0), (9, "B", 0)]), "bank = 'A'"), InvalidInputError),
        (lambda t: t.overwrite(data([(1, None, 0)]), "bank = 'A'"), InvalidInputError),
        (lambda t: t.upsert(data([(1, "A", 0), (1, "B", 0)]), ["id"]), InvalidInputError),
        (lambda t: t.upsert(data([(1, "A", 0)]), []), InvalidInputError),
        (lambda t: t.upsert(data([(1, "A", 0)]), "id"), InvalidInputError),
        (lambda t: t.upsert(data([(1, "A", 0)]), ["y"]), TableColumnNotFoundError),
        (lambda t: t.append(pa.table({"id": ["one"]})), LanceNamespaceError),
    ],
)
def test_a_verb_that_fails_changes_nothing(
    local: Place, mode: str, act: Callable[[Any], Any], error: type[Exception]
) -> None:
    table = make(local, ROWS, mode=mode)
    version = table.version

    with pytest.raises(error):
        act(table)

    assert content(table) == Counter(ROWS)
    assert table.version == version


def test_a_transaction_goes_on_without_the_verb_that_failed_in_it(local: Place) -> None:
    table = make(local, ROWS)

    with table.transaction() as tx:
        tx.delete("id = 1")
        with pytest.raises(InvalidInputError):
            tx.update({"x": "1 / (id - 3)"})
        assert content(tx) == Counter(ROWS[1:])
        tx.append(data([(5, "C", 50)]))

    assert content(table) == Counter([*ROWS[1:], (5, "C", 50)])
    assert_whole(table)


def test_an_update_of_the_partition_source_moves_the_row(local: Place) -> None:
    table = make(local, ROWS)

    table.update({"bank": "'B'"}, "id = 1")

    assert content(table, "bank = 'B'") == Counter([(1, "B", 10), (3, "B", 30)])
    assert content(table, "bank = 'A'") == Counter([(2, "A", 20)])
    assert_whole(table)


def test_the_size_of_a_partition_stays_what_it_is_however_often_it_is_updated(local: Place) -> None:
    table = make(local, [(n, "A", n) for n in range(100)])
    sizes = set()
    for _ in range(4):
        table.update({"x": "x + 1"}, "bank = 'A'")
        sizes.add(table.inspect.partitions()["bytes"][0].as_py())

    assert len(sizes) == 1
    assert table.inspect.partitions()["fragments"][0].as_py() == 1


def test_an_update_computes_with_partition_functions(local: Place) -> None:
    table = make(local, ROWS)

    table.update({"x": "truncate(20, x) + bucket(1, id)", "bank": "truncate(1, concat(bank, 'X'))"}, "id > 1")

    assert content(table) == Counter([(1, "A", 10), (2, "A", 20), (3, "B", 20), (4, "X", 40)])
    assert_whole(table)


def test_an_upsert_whose_key_is_not_the_partition_moves_the_row(local: Place) -> None:
    table = make(local, ROWS)

    table.upsert(data([(1, "B", 11), (5, None, 50)]), ["id"])

    assert content(table) == Counter([(1, "B", 11), *ROWS[1:], (5, None, 50)])
    assert content(table, "bank = 'A'") == Counter([(2, "A", 20)])


def test_a_key_with_a_null_in_it_is_like_no_other(local: Place) -> None:
    table = make(local, ROWS)

    table.upsert(data([(4, None, 41), (4, None, 42)]), ["id", "bank"])

    assert content(table) == Counter([*ROWS, (4, None, 41), (4, None, 42)])


def test_a_transaction_that_raises_leaves_nothing(local: Place) -> None:
    table = make(local, ROWS)

    def fail() -> None:
        with table.transaction() as tx:
            tx.delete("true")
            raise KeyError("an error of the caller's")

    with pytest.raises(KeyError):
        fail()
    assert content(table) == Counter(ROWS)


def test_a_transaction_is_used_once_and_needs_strong_mode(local: Place, tmp_path: Any) -> None:
    table = make(local, ROWS)
    with table.transaction() as tx:
        tx.delete("id = 1")
    for act in (tx.commit, tx.scan, lambda: tx.delete("true")):
        with pytest.raises(UnsupportedOperationError):
            act()
    weak = make(Place(str(tmp_path / "weak")), mode="weak")
    with pytest.raises(UnsupportedOperationError), weak.transaction():
        pass
    with pytest.raises(InvalidInputError):
        table.transaction("repeatable read")


def test_a_scan_begun_before_a_commit_sees_none_of_it_to_its_last_batch(local: Place) -> None:
    table = make(local, [(n, bank, 0) for n in range(50) for bank in "ABCDEFGH"])
    batches = table.scan().to_batches()
    seen = next(batches).num_rows

    table.update({"x": "1", "bank": "'A'"})
    table.maintenance.compact(progress=False)

    rest = list(batches)
    assert seen + sum(batch.num_rows for batch in rest) == 400
    assert {x for batch in rest for x in batch.column("x").to_pylist()} == {0}


def test_two_weak_updates_of_one_row_do_not_double_it(local: Place) -> None:
    table = make(local, ROWS, mode="weak")
    late = table.transaction()
    item = late.plan(None).leaves[0]
    work = late.work_on(item)
    table.update({"x": "x + 1"}, "bank = 'A'")

    with pytest.raises(LanceNamespaceError, match="deleted by another writer"):
        work.delete(pa.array([0], pa.uint64()).to_numpy())

    assert sum(content(table).values()) == len(ROWS)


def test_a_weak_write_that_fails_halfway_says_what_was_written(local: Place, tmp_path: Any) -> None:
    table = make(local, ROWS, mode="weak")
    broken = {each["partition"][0][1]: each for each in table.inspect.partitions().to_pylist()}["B"]
    written = {each["partition"][0][1]: each for each in table.inspect.partitions().to_pylist()}["A"]
    files = tmp_path / "root" / broken["location"] / "data"
    files.rename(tmp_path / "elsewhere")
    files.write_text("no directory")

    with pytest.raises(LanceNamespaceError, match="written so far") as caught:
        table.append(data([(5, "A", 0), (6, "B", 0)]))

    assert written["object_id"] in str(caught.value)
    files.unlink()
    (tmp_path / "elsewhere").rename(files)
    table.overwrite(data([(5, "A", 0), (6, "B", 0)]))
    assert content(table) == Counter([(4, None, 40), (5, "A", 0), (6, "B", 0)])


def test_a_conflict_names_its_partitions_and_has_code_14(local: Place) -> None:
    table = make(local, ROWS)
    late = table.transaction()
    late.delete("id = 1")
    table.update({"x": "0"}, "id = 1")

    with pytest.raises(CommitConflictError) as caught:
        late.commit()

    leaf = table.scan("bank = 'A'").plan().leaves[0]
    assert int(caught.value.code) == 14
    assert caught.value.partitions == (leaf.object_id,)
