"""Two commits stepped through chosen orders: how the second ends, and that what is left is what one order leaves."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lancepart.commit.transaction import Transaction
from lancepart.errors import CommitConflictError
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable
from tests.support.catalogs import Place
from tests.support.interleave import ACTED, BEGUN, ORDERS, PLANNED, Stepper, interleave
from tests.support.processes import TORTURE, rounds
from tests.support.tiers import one_in
from tests.transactions import pairs
from tests.transactions.pairs import BOTH, DATA, NAMES, RELATIONS, SAME_ROWS, Kind
from tests.transactions.tables import Row, assert_whole, content, data, make, opened

DOCS = Path(__file__).parents[2] / "docs" / "transactions.md"


@pytest.fixture(scope="module")
def templates(tmp_path_factory: Any) -> tuple[Path, datetime]:
    """Tables to be copied, with rows of one spec and with all rows of an older one, and the moment that they were made.

    Leaf A has two rows in one fragment and a third in another, and something to compact and to expire.
    """
    folder = tmp_path_factory.mktemp("templates")
    for name in ("one", "two"):
        table = make(Place(str(folder / name)), pairs.ROWS[:2])
        table.append(data([*pairs.ROWS[2:], (6, "A", 60)]))
        table.delete("id = 6")
        if name == "two":
            table.update_spec(["truncate(bank, 4)"])
    return folder, datetime.now(UTC)


def cases() -> list[tuple[str, str, str, int]]:
    """Every pair of kinds, in every relation and order; a sample has one relation and one order a pair."""
    found = []
    of_rows = {kind.name for kind in DATA}
    for number, (second, first) in enumerate((a, b) for a in NAMES for b in NAMES):
        relations = RELATIONS if {second, first} <= of_rows else (SAME_ROWS,)
        if not TORTURE:
            relations = (relations[(number + number // len(NAMES)) % len(relations)],)
        found += [(second, first, relation, order) for relation in relations for order in _orders(number)]
    return found


def _orders(number: int) -> range:
    return range(3) if TORTURE else range(number % 3, number % 3 + 1)


@pytest.mark.torture
@pytest.mark.parametrize(("second", "first", "relation", "order"), one_in(4, cases()))
def test_the_second_of_two_commits_ends_as_the_docs_say_and_loses_nothing(
    tmp_path: Path, templates: tuple[Path, datetime], second: str, first: str, relation: str, order: int
) -> None:
    folder, cutoff = templates
    place = Place(str(tmp_path / "t"))
    shutil.copytree(folder / ("two" if "rewrite" in (first, second) else "one"), place.root)
    kinds = {kind.name: kind for kind in (*DATA, *pairs.others(cutoff))}
    one, two = kinds[first], kinds[second]
    gates = pairs.waits(two)

    left, at = meet(place, one, two, relation, gates[order % len(gates)])

    assert left == pairs.expected(second, first, relation)
    table = opened(place)
    assert_whole(table)
    found = Counter(row[:3] for row in content(table).elements())
    alone = one.model(pairs.ROWS, at[0])
    if left == BOTH:
        after = [two.model(alone, at[1]), one.model(two.model(pairs.ROWS, at[1]), at[0])]
        assert found in [Counter(rows) for rows in after]
        for kind, target in zip((one, two), at, strict=True):
            assert_defined(table, kind, target)
    else:
        assert found == Counter(alone)


def meet(place: Place, first: Kind, second: Kind, relation: str, gate: str) -> tuple[str, tuple[Any, Any]]:
    at = pairs.targets(relation)
    root = Root.parse(place.root, None)
    a = Stepper(root, lambda manifest: first.act(manifest, at[0]))
    b = Stepper(root, lambda manifest: second.act(manifest, at[1]))
    interleave(a, b, gate)
    if a.error is not None:
        raise a.error
    return pairs.outcome(b), at


def assert_defined(table: Any, kind: Kind, target: pairs.Target) -> None:
    """What a change of the definition did is there, whatever came in between."""
    if kind.name == "add_column":
        assert f"more{target.mark}" in table.schema.names
    if kind.name == "rename_column":
        assert f"y{target.mark}" in table.schema.names
    if kind.name == "update_spec":
        assert any(str(target.mark) in spec.dumps() for spec in table.specs)


@pytest.mark.parametrize("relation", [pairs.SAME_ROWS, pairs.OTHER_ROWS])
def test_the_docs_show_the_outcomes_that_are_tested(relation: str) -> None:
    assert pairs.as_markdown(relation) in DOCS.read_text()


def race(place: Place, gate: str, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Stepper:
    """Two actions on a table as its users call them."""
    root = Root.parse(place.root, None)
    a, b = (Stepper(root, lambda manifest, act=act: act(PartitionedTable(manifest))) for act in (first, second))
    interleave(a, b, gate)
    if a.error is not None:
        raise a.error
    return b


@pytest.mark.parametrize("gate", ORDERS)
@pytest.mark.parametrize(
    ("on", "banks"),
    [
        (["id"], ("A", "B")),
        (["id"], ("Y", "Z")),
        (["id"], ("A", "Z")),
        (["id", "bank"], ("A", "A")),
        (["id", "bank"], ("Z", "Z")),
    ],
)
def test_two_upserts_of_one_new_key_never_both_win(
    local: Place, gate: str, on: list[str], banks: tuple[str, str]
) -> None:
    make(local, pairs.ROWS)

    late = race(
        local,
        gate,
        lambda table: table.upsert(data([(9, banks[0], 1)]), on),
        lambda table: table.upsert(data([(9, banks[1], 2)]), on),
    )

    assert late.error is None
    assert content(opened(local), "id = 9") == Counter([(9, banks[1], 2)])


@pytest.mark.parametrize("gate", ORDERS)
def test_an_upsert_that_does_not_know_of_a_new_spec_doubles_no_key(local: Place, gate: str) -> None:
    make(local, pairs.ROWS)

    def repartition_and_upsert(table: Any) -> None:
        table.update_spec(["truncate(bank, 4)"])
        table.upsert(data([(9, "A", 1)]), ["id", "bank"])

    late = race(local, gate, repartition_and_upsert, lambda table: table.upsert(data([(9, "A", 2)]), ["id", "bank"]))

    assert late.error is None
    assert content(opened(local), "id = 9") == Counter([(9, "A", 2)])


@pytest.mark.parametrize("gate", ORDERS)
def test_an_overwrite_that_does_not_know_of_a_new_spec_replaces_what_was_written_under_it(
    local: Place, gate: str
) -> None:
    make(local, pairs.ROWS)

    def repartition_and_overwrite(table: Any) -> None:
        table.update_spec(["truncate(bank, 4)"])
        table.overwrite(data([(8, "Z", 1)]))

    late = race(local, gate, repartition_and_overwrite, lambda table: table.overwrite(data([(9, "Z", 2)])))

    assert late.error is None
    assert content(opened(local), "bank = 'Z'") == Counter([(9, "Z", 2)])


@pytest.mark.parametrize("gate", ORDERS)
def test_a_column_that_took_the_name_of_a_dropped_one_gets_none_of_its_values(local: Place, gate: str) -> None:
    make(local, pairs.ROWS)

    def swap(table: Any) -> None:
        table.drop_column("x")
        table.add_column(pa.field("x", pa.int64()))

    late = race(local, gate, swap, lambda table: table.append(data([(9, "A", 2), (9, "Z", 2)])))

    assert late.error is None
    assert set(opened(local).scan().to_arrow()["x"].to_pylist()) == {None}


def add_up(tx: Transaction, where: str, row: Row) -> None:
    """Add a row that depends on what was read."""
    total = sum(value for _, _, value in content(tx, where).elements())
    tx.append(data([(*row[:2], row[2] + total)]))


def test_snapshot_isolation_allows_write_skew_and_serializable_does_not(local: Place) -> None:
    table = make(local, [(1, "A", 1), (2, "B", 1)])
    for isolation, allowed in (("snapshot", True), ("serializable", False)):
        first, second = table.transaction(isolation), table.transaction(isolation)
        for tx, off in ((first, 1), (second, 2)):
            if sum(value for _, _, value in content(tx).elements()) > 1:
                tx.update({"x": "x - 1"}, f"id = {off}")
        first.commit()
        if allowed:
            second.commit()
        else:
            with pytest.raises(CommitConflictError):
                second.commit()
        assert sum(value for _, _, value in content(table).elements()) == (0 if allowed else 1)
        table.update({"x": "1"})


def step(draw: random.Random, mark: int) -> tuple[str, Callable[[Any], None], Callable[[list[Row]], list[Row]]]:
    """Something to do in a transaction, and to rows in memory."""
    source, target = draw.choice("ABZ"), draw.choice("ABZ")
    kind = draw.choice(["add up", "update", "delete", "upsert", "overwrite", "replace"])
    new = (draw.randrange(1, 8), target, mark)
    if kind == "add up":
        return (
            f"{kind} {source} into {new}",
            lambda tx: add_up(tx, f"bank = '{source}'", new),
            lambda rows: [*rows, (*new[:2], mark + sum(row[2] for row in rows if row[1] == source))],
        )
    if kind == "update":
        return (
            f"{kind} {source} to {target}",
            lambda tx: tx.update({"bank": f"'{target}'", "x": f"x + {mark}"}, f"bank = '{source}'"),
            lambda rows: [(row[0], target, row[2] + mark) if row[1] == source else row for row in rows],
        )
    if kind == "delete":
        return (
            f"{kind} {source}",
            lambda tx: tx.delete(f"bank = '{source}' AND id < 3"),
            lambda rows: [row for row in rows if row[1] != source or row[0] >= 3],
        )
    if kind == "upsert":
        return (
            f"{kind} {new}",
            lambda tx: tx.upsert(data([new]), ["id"]),
            lambda rows: [*(row for row in rows if row[0] != new[0]), new],
        )
    if kind == "overwrite":
        return (
            f"{kind} {new}",
            lambda tx: tx.overwrite(data([new])),
            lambda rows: [*(row for row in rows if row[1] != target), new],
        )
    return (
        f"{kind} {new}",
        lambda tx: tx.overwrite(data([new]), f"id = {new[0]}"),
        lambda rows: [*(row for row in rows if row[0] != new[0]), new],
    )


@pytest.mark.torture
@pytest.mark.parametrize("seed", one_in(4, range(rounds(16, 600))))
def test_serializable_transactions_leave_what_one_after_the_other_leaves(
    tmp_path: Path, templates: tuple[Path, datetime], seed: int
) -> None:
    draw = random.Random(seed)
    place = Place(str(tmp_path / "t"))
    shutil.copytree(templates[0] / "one", place.root)
    plans = [[step(draw, 100 * who + n) for n in range(draw.randint(1, 2))] for who in (1, 2)]

    def run(which: int) -> Callable[[Any], None]:
        def act(table: Any) -> None:
            with table.transaction("serializable") as tx:
                for _, do, _ in plans[which]:
                    do(tx)

        return act

    def model(*order: int) -> Counter[Row]:
        rows = list(pairs.ROWS)
        for which in order:
            for _, _, do in plans[which]:
                rows = do(rows)
        return Counter(rows)

    late = race(place, draw.choice([BEGUN, ACTED, PLANNED]), run(0), run(1))

    table = opened(place)
    assert_whole(table)
    if late.error is None:
        assert content(table) in (model(0, 1), model(1, 0)), plans
    else:
        assert isinstance(late.error, CommitConflictError), late.error
        assert content(table) == model(0), plans
