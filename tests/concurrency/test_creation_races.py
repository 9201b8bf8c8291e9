"""Eight processes create the same name, or different ones, at the same moment."""

from __future__ import annotations

import lance
import pytest
from lance_namespace import DescribeNamespaceRequest, DescribeTableRequest, ListNamespacesRequest, ListTablesRequest

from tests.concurrency import actions, audit
from tests.concurrency.conftest import Spot
from tests.support.catalogs import Place
from tests.support.processes import CREW, Crew, Outcome, rounds

pytestmark = pytest.mark.torture

ROOT_AND_CHILD = pytest.mark.parametrize("parent", [[], ["ns"]], ids=["root", "child"])
MANAGED = pytest.mark.parametrize("managed", [False, True], ids=["files", "managed"])


def prepare(place: Place, parent: list[str], managed: bool = False) -> None:
    if managed:
        actions.set_root_properties(place, {"table_version_management": "true"})
    if parent:
        actions.create_namespace(place, parent)


def the_winner(outcomes: list[Outcome], *codes: int) -> int:
    winners = [number for number, outcome in enumerate(outcomes) if outcome.won]
    assert len(winners) == 1, outcomes
    losers = [outcome for outcome in outcomes if not outcome.won]
    assert [outcome for outcome in losers if outcome.code not in codes] == []
    return winners[0]


def test_one_of_eight_makes_a_namespace_and_seven_hear_that_it_exists(crew: Crew, spot: Spot) -> None:
    place, parent = spot
    prepare(place, parent)
    for turn in range(rounds(1, 30)):
        path = [*parent, f"n{turn}"]

        outcomes = crew.everyone(actions.create_namespace, place, path)

        winner = the_winner(outcomes, 2)
        described = place.catalog().describe_namespace(DescribeNamespaceRequest(id=path))
        assert described.properties == {"by": str(winner)}
    audit.whole(place)


def test_eight_make_the_same_namespace_with_exist_ok_and_all_succeed(crew: Crew, place: Place) -> None:
    outcomes = crew.race(actions.create_namespace, *((place, ["n"], number, "exist_ok") for number in range(CREW)))

    assert all(outcome.won for outcome in outcomes), outcomes
    assert len({outcome.value["by"] for outcome in outcomes}) == 1
    assert list(audit.whole(place)) == ["n"]


def test_one_of_eight_declares_a_table(crew: Crew, spot: Spot) -> None:
    place, parent = spot
    prepare(place, parent)
    for turn in range(rounds(1, 30)):
        path = [*parent, f"t{turn}"]

        outcomes = crew.everyone(actions.declare_table, place, path)

        winner = the_winner(outcomes, 5, 14)
        described = place.catalog().describe_table(DescribeTableRequest(id=path, check_declared=True))
        assert (described.properties, described.location) == ({"by": str(winner)}, outcomes[winner].value)
        assert described.is_only_declared
        audit.whole(place)


@MANAGED
def test_one_of_eight_creates_a_table_and_its_rows_are_the_ones_there(crew: Crew, spot: Spot, managed: bool) -> None:
    place, parent = spot
    prepare(place, parent, managed)
    for turn in range(rounds(1, 20)):
        path = [*parent, f"t{turn}"]

        outcomes = crew.everyone(actions.create_table, place, path)

        winner = the_winner(outcomes, 5, 14)
        table = lance.dataset(
            namespace_client=place.catalog(), table_id=path, storage_options=place.storage_options
        ).to_table()
        assert table["id"].to_pylist() == [winner]
        audit.whole(place)


@ROOT_AND_CHILD
def test_a_declaration_and_a_creation_of_one_name_end_as_if_one_came_first(
    crew: Crew, local: Place, parent: list[str]
) -> None:
    prepare(local, parent)
    for turn in range(rounds(3, 40)):
        path = [*parent, f"t{turn}"]

        declared, created = crew.meet((actions.declare_table, (local, path)), (actions.create_table, (local, path, 7)))

        assert declared.won or created.won
        assert {declared.code, created.code} <= {None, 5, 14}
        described = local.catalog().describe_table(DescribeTableRequest(id=path, check_declared=True))
        assert described.is_only_declared is not created.won
        audit.whole(local)


@pytest.mark.quick
def test_eight_create_different_children_of_one_namespace_and_none_is_lost(crew: Crew, place: Place) -> None:
    prepare(place, ["ns"])
    times = rounds(1 if place.options else 6, 12)

    outcomes = crew.everyone(actions.create_many, place, ["ns"], times)

    assert all(outcome.won for outcome in outcomes), outcomes
    catalog = place.catalog()
    namespaces = catalog.list_namespaces(ListNamespacesRequest(id=["ns"])).namespaces
    tables = catalog.list_tables(ListTablesRequest(id=["ns"])).tables
    made = {f"o{number}_{turn}" for number in range(CREW) for turn in range(times)}
    assert sorted([*namespaces, *tables]) == sorted(made)
    audit.whole(place)


def test_eight_make_the_first_write_of_a_catalog_and_all_find_their_place(crew: Crew, place: Place) -> None:
    outcomes = crew.race(actions.create_namespace, *((place, [f"n{number}"]) for number in range(CREW)))

    assert all(outcome.won for outcome in outcomes), outcomes
    assert set(audit.whole(place)) == {f"n{number}" for number in range(CREW)}
    indices = {field for index in audit.manifest(place).describe_indices() for field in index.field_names}
    assert indices == {"object_id", "object_type", "base_objects"}


def test_two_names_for_one_directory_are_never_both_registered_and_dropped(crew: Crew, local: Place) -> None:
    for turn in range(rounds(2, 20)):
        actions.create_table(local, [f"t{turn}"], 7)
        actions.deregister_table(local, [f"t{turn}"])

        crew.race(actions.register_table, *((local, [f"r{turn}_{number}"], f"t{turn}.lance") for number in range(CREW)))

        names = [key for key in audit.rows(local) if key.startswith(f"r{turn}_")]
        assert names
        for name in names[:-1]:
            actions.drop_table(local, [name])
        assert lance.dataset(local.uri(f"t{turn}.lance")).count_rows() == 1
