"""Drops, renames and deregistrations against each other and against what is being made."""

from __future__ import annotations

import lance
import pytest
from lance_namespace import DescribeTableRequest, ListTablesRequest, NamespaceExistsRequest

from lancepart.errors import NamespaceNotFoundError, TableNotFoundError
from tests.concurrency import actions, audit
from tests.concurrency.conftest import Spot
from tests.support.catalogs import Place
from tests.support.processes import CREW, TORTURE, Crew, rounds
from tests.support.tiers import slow

pytestmark = pytest.mark.torture

ROOT_AND_CHILD = pytest.mark.parametrize("parent", [[], ["ns"]], ids=["root", "child"])
MANAGED = pytest.mark.parametrize("managed", [False, True], ids=["files", "managed"])


def prepare(place: Place, parent: list[str], managed: bool = False) -> None:
    actions.set_root_properties(place, {"table_version_management": str(managed).lower()})
    if parent:
        actions.create_namespace(place, parent)


def ids_in(place: Place, path: list[str]) -> list[int] | None:
    """The rows of a table that exists, or nothing."""
    catalog = place.catalog()
    try:
        catalog.describe_table(DescribeTableRequest(id=path))
    except TableNotFoundError:
        return None
    table = lance.dataset(namespace_client=catalog, table_id=path, storage_options=place.storage_options)
    return table.to_table()["id"].to_pylist()


@pytest.mark.parametrize(
    ("place", "managed"),
    [("local", False), ("local", True), slow("s3", False), *([("s3", True)] if TORTURE else [])],
    indirect=["place"],
)
@pytest.mark.parametrize("behavior", ["restrict", "cascade"])
def test_a_namespace_dropped_while_its_children_come_leaves_no_orphan(
    crew: Crew, place: Place, behavior: str, managed: bool
) -> None:
    prepare(place, [], managed)
    for turn in range(rounds(1 if place.options else 3, 40)):
        ns = f"n{turn}"
        actions.create_namespace(place, [ns])

        dropped, *created = crew.meet(
            (actions.drop_namespace, (place, [ns], behavior)),
            (actions.create_namespace, (place, [ns, "a"])),
            (actions.create_namespace, (place, [ns, "b"])),
            (actions.declare_table, (place, [ns, "c"])),
            (actions.declare_table, (place, [ns, "d"])),
            (actions.create_table, (place, [ns, "e"])),
            (actions.create_table, (place, [ns, "f"])),
        )

        assert {outcome.code for outcome in created} <= ({None, 1, 4, 14} if managed else {None, 1}), created
        if behavior == "restrict" and not dropped.won:
            assert dropped.code == 3
            assert all(outcome.won for outcome in created), created
        else:
            assert dropped.won, dropped
            with pytest.raises(NamespaceNotFoundError):
                place.catalog().namespace_exists(NamespaceExistsRequest(id=[ns]))
        if behavior == "restrict" and dropped.won:
            assert not any(outcome.won for outcome in created), created
        audit.whole(place, garbage=None if managed else ())


def test_a_rename_and_a_creation_of_its_target_have_one_winner(crew: Crew, spot: Spot) -> None:
    place, parent = spot
    prepare(place, parent)
    for turn in range(rounds(1 if place.options else 3, 40)):
        source, target = [*parent, f"t{turn}"], [*parent, f"u{turn}"]
        actions.create_table(place, source, 1)

        renamed, created, declared = crew.meet(
            (actions.rename_table, (place, source, target)),
            (actions.create_table, (place, target, 2)),
            (actions.declare_table, (place, target)),
        )

        assert {renamed.code, created.code, declared.code} <= {None, 5, 14}
        if renamed.won:
            assert not created.won
            assert not declared.won
            assert (ids_in(place, source), ids_in(place, target)) == (None, [1])
        else:
            assert created.won or declared.won
            assert ids_in(place, source) == [1]
            if created.won:
                assert ids_in(place, target) == [2]
        audit.whole(place)


@MANAGED
@ROOT_AND_CHILD
def test_a_rename_and_a_drop_have_one_winner(crew: Crew, local: Place, parent: list[str], managed: bool) -> None:
    prepare(local, parent, managed)
    for turn in range(rounds(3, 40)):
        source, target = [*parent, f"t{turn}"], [*parent, f"u{turn}"]
        actions.create_table(local, source, 1)

        renamed, dropped = crew.meet(
            (actions.rename_table, (local, source, target)), (actions.drop_table, (local, source))
        )

        assert renamed.won != dropped.won, (renamed, dropped)
        assert {renamed.code, dropped.code} == {None, 4}
        assert ids_in(local, source) is None
        assert ids_in(local, target) == ([1] if renamed.won else None)
        audit.whole(local)


def test_one_of_eight_renames_of_one_table_wins(crew: Crew, spot: Spot) -> None:
    place, parent = spot
    prepare(place, parent)
    for turn in range(rounds(1 if place.options else 3, 40)):
        source = [*parent, f"t{turn}"]
        targets = [[*parent, f"u{turn}_{number}"] for number in range(CREW)]
        actions.create_table(place, source, 1)

        outcomes = crew.race(actions.rename_table, *((place, source, target) for target in targets))

        assert sum(outcome.won for outcome in outcomes) == 1, outcomes
        assert {outcome.code for outcome in outcomes if not outcome.won} == {4}, outcomes
        assert ids_in(place, source) is None
        assert [ids_in(place, target) for target in targets].count([1]) == 1
        audit.whole(place)


def test_one_of_eight_drops_of_one_table_wins(crew: Crew, spot: Spot) -> None:
    place, parent = spot
    prepare(place, parent)
    for turn in range(rounds(1 if place.options else 3, 40)):
        path = [*parent, f"t{turn}"]
        actions.create_table(place, path, 1)

        outcomes = crew.race(actions.drop_table, *[(place, path)] * CREW)

        assert sum(outcome.won for outcome in outcomes) == 1, outcomes
        assert {outcome.code for outcome in outcomes if not outcome.won} == {4}, outcomes
        audit.whole(place)


@ROOT_AND_CHILD
@pytest.mark.parametrize("rival", ["drop", "rename"])
def test_a_table_that_was_deregistered_in_a_race_keeps_its_data(
    crew: Crew, local: Place, parent: list[str], rival: str
) -> None:
    prepare(local, parent)
    for turn in range(rounds(3, 40)):
        source, target = [*parent, f"t{turn}"], [*parent, f"u{turn}"]
        location = actions.create_table(local, source, 1).rsplit("/", 1)[-1]
        other = (
            (actions.drop_table, (local, source))
            if rival == "drop"
            else (actions.rename_table, (local, source, target))
        )

        deregistered, beaten = crew.meet((actions.deregister_table, (local, source)), other)

        assert {deregistered.code, beaten.code} <= {None, 4}
        assert deregistered.won or beaten.won
        if not beaten.won:
            actions.create_table(local, ["sweeper"], 2)
            actions.drop_table(local, ["sweeper"])
            actions.register_table(local, source, location)
            assert ids_in(local, source) == [1]
        audit.whole(local)


@MANAGED
def test_a_deregistration_and_a_new_version_leave_no_orphan(crew: Crew, place: Place, managed: bool) -> None:
    prepare(place, ["ns"], managed)
    for turn in range(rounds(1 if place.options else 3, 40)):
        path = ["ns", f"t{turn}"]
        location = actions.create_table(place, path, 1).rsplit("/", 1)[-1]
        request = actions.stage_version(place, path, 2)

        deregistered, committed = crew.meet(
            (actions.deregister_table, (place, path)), (actions.create_version, (place, request))
        )

        assert deregistered.won, deregistered
        assert committed.code in (None, 4, 14), committed
        audit.whole(place, garbage=None)
        table = lance.dataset(place.uri(location), storage_options=place.storage_options)
        if committed.won:
            assert sorted(table.to_table()["id"].to_pylist()) == [1, 2]


@pytest.mark.slow
def test_rows_that_were_appended_through_the_catalog_outlive_a_rename(crew: Crew, local: Place) -> None:
    prepare(local, [], managed=True)
    for turn in range(rounds(3, 60)):
        source, target = [f"t{turn}"], [f"u{turn}"]
        actions.create_table(local, source, 999)

        renamed, *writers = crew.meet(
            (actions.rename_table, (local, source, target)),
            *((actions.append_while_it_lasts, (local, source, 4, number)) for number in range(4)),
        )

        assert renamed.won, renamed
        assert all(writer.won for writer in writers), writers
        assert ids_in(local, source) is None
        kept = ids_in(local, target)
        assert len(kept) == len(set(kept))
        assert {999, *(number for writer in writers for number in writer.value)} <= set(kept)
        audit.whole(local, garbage=None)


@pytest.mark.slow
def test_a_drop_while_others_append_leaves_no_table(crew: Crew, local: Place) -> None:
    prepare(local, [], managed=True)
    for turn in range(rounds(3, 60)):
        path = [f"t{turn}"]
        actions.create_table(local, path, 999)

        dropped, *writers = crew.meet(
            (actions.drop_table, (local, path)),
            *((actions.append_while_it_lasts, (local, path, 4, number)) for number in range(4)),
        )

        assert dropped.won, dropped
        assert all(writer.won for writer in writers), writers
        assert local.catalog().list_tables(ListTablesRequest(id=[])).tables == []
        audit.whole(local, garbage=None)


def test_eight_live_in_one_catalog_and_leave_it_whole(crew: Crew, local: Place) -> None:
    names = ["a", "b", "c", "d"]

    outcomes = crew.everyone(actions.live, local, names, rounds(12, 300))

    assert all(outcome.won for outcome in outcomes), outcomes
    refused = [item for outcome in outcomes for item in outcome.value]
    assert [item for item in refused if item[1] not in (4, 5, 14)] == []
    known = audit.whole(local, garbage=None)
    listed = local.catalog().list_tables(ListTablesRequest(id=[])).tables
    assert set(known) <= set(listed) <= set(names)
    for name in listed:
        described = local.catalog().describe_table(DescribeTableRequest(id=[name], check_declared=True))
        if not described.is_only_declared:
            assert ids_in(local, [name]) is not None
