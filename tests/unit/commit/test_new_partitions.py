"""Partitions that many processes create at once are created once, and all rows are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.storage import leaf_data, leaf_handle
from tests.support.catalogs import Place
from tests.support.processes import CREW, Crew, hire
from tests.unit.commit import actions


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with hire() as members:
        yield members


@pytest.mark.parametrize("transactions", ["strong", "weak"])
def test_eight_processes_that_create_the_same_partitions_share_them(
    crew: Crew, local: Place, transactions: str
) -> None:
    table = lp.create_table(local.root, actions.SCHEMA, ["k", "n"], transactions=transactions)

    outcomes = crew.everyone(actions.append, local, 0)
    again = crew.everyone(actions.append, local, 1000)

    assert [outcome.message for outcome in [*outcomes, *again] if not outcome.won] == []
    leaves = table.scan().plan().leaves
    assert Counter(leaf.key for leaf in leaves) == Counter([(k, "i5") for k in ("sa", "sb", "n", "s")])
    found = sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())
    count = CREW * len(actions.KEYS)
    assert found == [*range(count), *range(1000, 1000 + count)]
    assert table.scan().count() == 2 * count
    for leaf in leaves:
        assert lance.dataset(f"{local.root}/{leaf.location}").count_rows() >= 1


def test_eight_processes_that_create_the_table_make_one(crew: Crew, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "one"), {})

    outcomes = crew.race(actions.create, *((place, "k" if number % 2 else "n", number) for number in range(CREW)))

    (winner,) = [outcome.value for outcome in outcomes if outcome.won]
    assert {outcome.error for outcome in outcomes if not outcome.won} == {"TableAlreadyExistsError"}
    table = lp.open_table(place.root)
    assert table.spec.fields[0].field_id == ("k" if winner % 2 else "n")
    table.append([{"id": 1, "k": "a", "n": 1}])
    assert table.scan("k = 'a' AND n = 1").count() == 1


def test_a_partition_made_while_its_source_is_widened_is_one_partition(crew: Crew, local: Place) -> None:
    table = lp.create_table(local.root, actions.SCHEMA, ["n"])

    outcomes = crew.everyone(actions.widen_or_append, local)
    table.append([{"id": CREW, "k": "a", "n": 5}])

    assert [outcome.message for outcome in outcomes if not outcome.won] == []
    assert [leaf.key for leaf in table.scan().plan().leaves] == [("i5",)]
    assert sorted(table.scan("n = 5").to_arrow().column("id").to_pylist()) == list(range(1, CREW + 1))


def test_changes_of_the_schema_at_once_all_stay_with_ids_of_their_own(crew: Crew, local: Place) -> None:
    table = lp.create_table(local.root, actions.SCHEMA, ["k"])

    outcomes = crew.everyone(actions.evolve, local)

    assert [outcome.message for outcome in outcomes if not outcome.won] == []
    assert set(table.schema.names) == {"id", "k", "n", *(f"x{number}" for number in range(CREW))}
    assert sorted(table.metadata.columns) == list(range(3 + CREW))


TEXTS = pa.dictionary(pa.int32(), pa.string())
ONE, SEVERAL = {"create_with_rows"}, {"stage", "create_leaf"}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (pa.field("data", pa.large_binary()), b"a", ONE),
        (pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"}), b"a", SEVERAL),
        (pa.field("data", TEXTS), "a", SEVERAL),
        (pa.field("data", pa.struct([("x", TEXTS), ("y", pa.int8())])), {"x": "a", "y": 1}, SEVERAL),
        (pa.field("data", pa.list_(pa.struct([("y", pa.int8())]))), [{"y": 1}], ONE),
    ],
    ids=["bytes", "blobs", "dictionary", "struct of a dictionary", "list"],
)
def test_new_partitions_are_made_in_one_step_unless_they_hold_blobs_or_dictionaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: pa.Field, value: object, expected: set[str]
) -> None:
    steps = []
    for name in ("create_with_rows", "stage", "create_leaf"):
        plain = getattr(leaf_data, name)
        monkeypatch.setattr(
            leaf_data,
            name,
            lambda *given, name=name, plain=plain, **more: (steps.append(name), plain(*given, **more))[1],
        )
    table = lp.create_table(tmp_path / "t", pa.schema([pa.field("k", pa.int64()), field]), ["k"])
    table.append([{"k": 1, "data": value}, {"k": 2, "data": value}])
    assert set(steps) == expected
    table.add_column(pa.field("more", pa.int64()))
    table.append([{"k": 1, "data": value, "more": 5}])
    assert sorted((row["k"], row["data"], row["more"] or 0) for row in table.scan().to_list()) == [
        (1, value, 0),
        (1, value, 5),
        (2, value, 0),
    ]


def test_compaction_opens_each_partition_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("k", pa.int64()), ("n", pa.int64())]), ["k"])
    for _ in range(2):
        table.append(pa.table({"k": range(5), "n": range(5)}))
    opened, plain = [], lance.dataset

    def counted(uri: str, *given: object, **more: object) -> lance.LanceDataset:
        if "$dataset" in uri:
            opened.append(uri)
        return plain(uri, *given, **more)

    monkeypatch.setattr(lance, "dataset", counted)
    assert table.maintenance.compact(progress=False).changed == 5
    assert len(opened) == 5
    monkeypatch.undo()

    for leaf in table.scan().plan().leaves:
        handle = leaf_handle.open_leaf(table._manifest.root, leaf.location, leaf.read_version)
        assert (leaf.stats.rows, leaf.stats.bytes, leaf.stats.fragments) == leaf_handle.measure(handle)
