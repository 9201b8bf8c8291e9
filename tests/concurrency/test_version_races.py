"""Versions of one table, committed by eight processes at the same moment."""

from __future__ import annotations

import lance
import pytest
from lance_namespace import ListTableVersionsRequest

from tests.concurrency import actions, audit
from tests.support.catalogs import Place
from tests.support.processes import CREW, TORTURE, Crew, rounds
from tests.support.tiers import slow

pytestmark = pytest.mark.torture

VARIANTS = pytest.mark.parametrize(
    ("place", "managed"),
    [("local", False), ("local", True), slow("s3", True), *([("s3", False)] if TORTURE else [])],
    indirect=["place"],
)


def prepare(place: Place, managed: bool) -> None:
    actions.set_root_properties(place, {"table_version_management": str(managed).lower()})
    actions.create_table(place, ["t"], 999)


def versions(place: Place) -> list[int]:
    found = place.catalog().list_table_versions(ListTableVersionsRequest(id=["t"])).versions
    return [item.version for item in found]


@VARIANTS
def test_one_of_eight_makes_the_next_version_and_its_row_is_the_one_there(
    crew: Crew, place: Place, managed: bool
) -> None:
    prepare(place, managed)
    expected = [999]
    for turn in range(rounds(1, 10)):
        requests = [actions.stage_version(place, ["t"], turn * 100 + number) for number in range(CREW)]

        outcomes = crew.race(actions.create_version, *((place, request) for request in requests))

        winners = [number for number, outcome in enumerate(outcomes) if outcome.won]
        assert len(winners) == 1, outcomes
        assert {outcome.code for outcome in outcomes if not outcome.won} <= {12, 14}, outcomes
        expected.append(turn * 100 + winners[0])
        table = lance.dataset(
            namespace_client=place.catalog(), table_id=["t"], storage_options=place.storage_options
        ).to_table()
        assert table["id"].to_pylist() == expected
    assert versions(place) == list(range(1, len(expected) + 1))
    audit.whole(place)


@pytest.mark.slow
@VARIANTS
def test_eight_append_through_pylance_and_no_row_is_lost_or_doubled(crew: Crew, place: Place, managed: bool) -> None:
    prepare(place, managed)
    times = rounds(1 if place.options else 3, 12)
    writers = rounds(2, 4) if place.options else CREW  # pylance gives up after 30 s, and moto serves one at a time

    outcomes = crew.race(actions.append_often, *((place, ["t"], times, number) for number in range(writers)))

    assert all(outcome.won for outcome in outcomes), outcomes
    table = lance.dataset(namespace_client=place.catalog(), table_id=["t"], storage_options=place.storage_options)
    written = [number * 1000 + turn for number in range(writers) for turn in range(times)]
    assert sorted(table.to_table()["id"].to_pylist()) == sorted([999, *written])
    assert versions(place) == list(range(1, writers * times + 2))
    audit.whole(place)


@pytest.mark.slow
def test_the_losers_of_a_version_leave_no_staged_manifest(crew: Crew, local: Place) -> None:
    prepare(local, managed=True)

    crew.everyone(actions.append_often, local, ["t"], rounds(2, 10))

    names = [info.path.rsplit("/", 1)[-1] for info in audit.files(local).walk("t.lance/_versions")]
    assert [name for name in names if ".manifest-" in name] == []
