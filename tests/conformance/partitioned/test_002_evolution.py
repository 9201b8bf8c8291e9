"""002, "Partition Evolution": its three scenarios, and what stays where."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import lance
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from tests.conformance.partitioned.appendix import DAY, SCHEMA, events, ids
from tests.support.catalogs import Place

Make = Callable[..., lp.PartitionedTable]


@pytest.fixture
def make(local: Place) -> Make:
    def created(*partition_by: str) -> lp.PartitionedTable:
        table = lp.create_table(local.root, SCHEMA, list(partition_by))
        table.append(events((1, DAY, "US"), (2, DAY, "FR"), (3, date(2024, 1, 1), None)))
        return table

    return created


def _kept(table: lp.PartitionedTable, where: str | None = None) -> set[tuple[int, tuple[str | None, ...]]]:
    return {(leaf.spec_id, leaf.values) for leaf in table.scan(where).plan().leaves}


def test_adding_partition_columns(make: Make) -> None:
    table = make("year(event_date)")

    spec = table.update_spec(["year(event_date)", "country"])
    table.append(events((4, DAY, "US")))

    assert (spec.id, [field.field_id for field in spec.fields]) == (2, ["event_date_year", "country"])
    assert _kept(table) == {(1, ("2025",)), (1, ("2024",)), (2, ("2025", "US"))}
    assert ids(table) == [1, 2, 3, 4]


def test_changing_partition_expressions(make: Make) -> None:
    table = make("event_date")

    table.update_spec(["year(event_date)"])
    table.append(events((4, DAY, "US")))

    assert _kept(table, "event_date = '2025-12-10'") == {(1, ("2025-12-10",)), (2, ("2025",))}
    assert ids(table, "event_date = '2025-12-10'") == [1, 2, 4]


def test_removing_partition_columns(make: Make) -> None:
    table = make("year(event_date)", "country")

    table.update_spec(["country"])
    table.append(events((4, DAY, "US")))

    assert _kept(table, "country = 'US'") == {(1, ("2025", "US")), (2, ("US",))}
    assert ids(table, "country = 'US'") == [1, 4]


def test_old_data_stays_where_it_is(make: Make) -> None:
    table = make("country")
    before = {leaf.object_id: leaf.read_version for leaf in table.scan().plan().leaves}

    table.update_spec(["bucket(id, 4)"])
    table.append(events((4, DAY, "US")))

    after = {leaf.object_id: leaf.read_version for leaf in table.scan().plan().leaves if leaf.spec_id == 1}
    assert after == before


def test_data_says_under_which_spec_it_was_written(make: Make) -> None:
    table = make("country")
    table.update_spec(["event_date"])
    table.append(events((4, DAY, "US")))

    for leaf in table.scan().plan().leaves:
        found = set(lance.dataset(f"{table.root}/{leaf.location}").to_table().column("id").to_pylist())
        assert leaf.object_id.startswith(f"v{leaf.spec_id}$")
        assert (4 in found) == (leaf.spec_id == 2)


def test_the_same_spec_again_is_no_new_version(make: Make) -> None:
    table = make("year(event_date)", "country")

    assert table.update_spec(["year(event_date)", "country"]).id == 1
    assert [spec.id for spec in table.specs] == [1]


def test_an_older_spec_again_is_a_new_version_with_the_old_ids(make: Make) -> None:
    table = make("country")
    table.update_spec(["event_date"])

    table.update_spec(["country"])
    table.append(events((4, DAY, "US")))

    assert [(spec.id, spec.fields[0].field_id) for spec in table.specs] == [
        (1, "country"),
        (2, "event_date"),
        (3, "country"),
    ]
    assert _kept(table, "country = 'US'") == {(1, ("US",)), (3, ("US",))}


def test_a_fields_order_is_part_of_the_spec(make: Make) -> None:
    table = make("year(event_date)", "country")

    table.update_spec(["country", "year(event_date)"])
    table.append(events((4, DAY, "US")))

    assert (2, ("US", "2025")) in _kept(table)


@pytest.mark.parametrize("partition_by", [["nope"], ["country", "country"], ["hour(event_date)"], "country"])
def test_a_spec_that_can_not_be_is_refused_and_changes_nothing(make: Make, partition_by: list[str]) -> None:
    table = make("country")
    version = table.version

    with pytest.raises(InvalidInputError):
        table.update_spec(partition_by)

    assert (table.version, len(table.specs)) == (version, 1)


def test_new_spec_versions_have_a_namespace_at_once(make: Make) -> None:
    table = make("country")
    table.update_spec(["event_date"])

    rows = lance.dataset(f"{table.root}/__manifest").to_table(filter="object_id = 'v2'").to_pylist()

    assert [row["object_type"] for row in rows] == ["namespace"]
