"""002, "Storage Partitioned Join" and Appendix F."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp

Make = Callable[..., lp.PartitionedTable]
DAYS = [date(2024, 12, 31), date(2025, 1, 31), date(2025, 2, 28), date(2025, 12, 31), None]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A table with a number ``id``, a date ``day`` and a ``name``, one row a day of ``DAYS``."""
    count = iter(range(100))

    def created(*partition_by: str, days: Sequence[date | None] = DAYS) -> lp.PartitionedTable:
        number = next(count)
        schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), (f"name{number}", pa.string())])
        table = lp.create_table(tmp_path / f"t{number}", schema, list(partition_by))
        table.append([{"id": i, "day": day, f"name{number}": f"{number}-{i}"} for i, day in enumerate(days)])
        return table

    return created


@pytest.fixture
def orders(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema([("order_id", pa.int64()), ("customer_id", pa.int64())])
    table = lp.create_table(tmp_path / "orders", schema, ["bucket(customer_id, 16)"])
    table.append([{"order_id": i, "customer_id": i % 200} for i in range(500)])
    return table


@pytest.fixture
def customers(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = lp.create_table(tmp_path / "customers", schema, ["bucket(id, 8)"])
    table.append([{"id": i, "name": f"c{i}"} for i in range(200)])
    return table


def _groups(join: Any) -> list[tuple[list[str], list[str]]]:
    """The partition values of either side, group by group."""
    shown = [
        tuple(sorted("/".join(map(str, leaf.values)) for leaf in side) for side in (group.left, group.right))
        for group in join.plan().groups
    ]
    return sorted(shown)


def _pairs(join: Any) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in join.to_arrow().to_pylist()}


def _why_not(left: lp.PartitionedTable, right: lp.PartitionedTable, key: str = "id") -> str:
    """Why a join that gives all rows is not one partition by partition, as its plan says."""
    join = left.join(right, on=[key])
    rows = [left.scan().to_arrow().column(key).to_pylist(), right.scan().to_arrow().column(key).to_pylist()]

    assert len(join.to_arrow()) == sum(a == b for a in rows[0] for b in rows[1] if a is not None)
    explained = join.explain()
    assert "the partitions do not agree" in explained
    return explained


def test_appendix_f_has_eight_groups_of_one_and_two_leaves(
    orders: lp.PartitionedTable, customers: lp.PartitionedTable
) -> None:
    join = orders.join(customers, on=[("customer_id", "id")])

    assert sorted((group.values[0], [leaf.values[0] for leaf in group.right]) for group in join.plan().groups) == [
        (str(i), [str(i)]) for i in range(8)
    ]
    assert {
        group.values[0]: sorted(int(leaf.values[0] or 0) for leaf in group.left) for group in join.plan().groups
    } == {str(i): [i, i + 8] for i in range(8)}


def test_appendix_f_gives_the_rows_of_the_query(orders: lp.PartitionedTable, customers: lp.PartitionedTable) -> None:
    found = orders.join(customers, on=[("customer_id", "id")], columns=["order_id", "customer_id", "name"]).to_arrow()

    assert found.num_rows == 500
    assert all(row["name"] == f"c{row['customer_id']}" for row in found.to_pylist())


def test_appendix_f_the_manifests_alone_give_the_plan(
    orders: lp.PartitionedTable, customers: lp.PartitionedTable
) -> None:
    tables = [lance.dataset(f"{table.root}/__manifest").to_table() for table in (orders, customers)]
    buckets = [
        {row[name] for row in table.to_pylist() if row["object_type"] == "table"}
        for table, name in zip(tables, ("partition_field_customer_id_bucket", "partition_field_id_bucket"), strict=True)
    ]
    groups = orders.join(customers, on=[("customer_id", "id")]).plan().groups

    assert buckets == [set(range(16)), set(range(8))]
    assert {int(leaf.values[0] or 0) for group in groups for leaf in group.left} == buckets[0]


def test_the_join_key_must_be_partitioned_on_both_sides(make: Make) -> None:
    assert re.search(r"the right table is partitioned by spec v1 by day.*not over", _why_not(make("id"), make("day")))


@pytest.mark.parametrize("field", ["id", "bucket(id, 4)", "truncate(id, 2)"])
def test_same_transform_type_equal_values_are_joined_directly(make: Make, field: str) -> None:
    join = make(field).join(make(field), on=["id"])

    assert all(left == right and len(left) == 1 for left, right in _groups(join))
    assert _pairs(join) == {(i, day, f"0-{i}", day, f"1-{i}") for i, day in enumerate(DAYS)}


@pytest.mark.parametrize("part", ["year", "month", "day"])
def test_same_transform_type_of_a_date(make: Make, part: str) -> None:
    join = make(f"{part}(day)").join(make(f"{part}(day)"), on=["day"], columns=["name0", "name1"])

    assert all(left == right for left, right in _groups(join))
    assert _pairs(join) == {(f"0-{i}", f"1-{i}") for i in range(4)}


def test_different_transform_types_are_not_joined(make: Make) -> None:
    assert "Needed is the same transform" in _why_not(make("bucket(id, 8)"), make("truncate(id, 10)"))


def test_bucket_divisibility_the_finer_side_is_grouped(make: Make) -> None:
    days = [DAYS[0]] * 300
    join = make("bucket(id, 12)", days=days).join(make("bucket(id, 4)", days=days), on=["id"])

    assert [(sorted(int(b) % 4 for b in left), right) for left, right in _groups(join)] == [
        ([i] * 3, [str(i)]) for i in range(4)
    ]


def test_bucket_counts_without_a_common_divisor_are_not_joined(make: Make) -> None:
    found = _why_not(make("bucket(id, 8)"), make("bucket(id, 9)"))

    assert re.search(r"bucket\(8, id\).*bucket\(9, id\).*common divisor", found)


def test_time_hierarchy_finer_partitions_are_grouped_to_coarser_ones(make: Make) -> None:
    fine, coarse = make("year(day)", "month(day)", "day(day)"), make("year(day)", "month(day)")

    join = fine.join(coarse, on=["day"], columns=["name0", "name1"])

    assert _groups(join)[0] == (["2024/12/31"], ["2024/12"])
    assert _pairs(join) == {(f"0-{i}", f"1-{i}") for i in range(4)}


def test_time_hierarchy_a_day_of_the_month_alone_does_not_tell_the_month(make: Make) -> None:
    assert "time fields" in _why_not(make("day(day)"), make("month(day)"), "day")


def test_time_hierarchy_a_date_itself_is_grouped_to_any_part(make: Make) -> None:
    join = make("day").join(make("year(day)"), on=["day"], columns=["name0", "name1"])

    assert _groups(join) == [
        (["2024-12-31"], ["2024"]),
        (["2025-01-31", "2025-02-28", "2025-12-31"], ["2025"]),
    ]
    assert _pairs(join) == {(f"0-{i}", f"1-{i}") for i in range(4)}


def test_several_spec_versions_are_each_reduced_to_what_all_have(make: Make) -> None:
    left, right = make("bucket(id, 16)"), make("bucket(id, 4)")
    left.update_spec(["bucket(id, 8)", "year(day)"])
    left.append([{"id": i, "day": DAYS[0], "name0": "later"} for i in range(5)])
    right.update_spec(["id"])
    right.append([{"id": 3, "day": None, "name1": "by id"}])

    join = left.join(right, on=["id"], columns=["id", "name0", "name1"])

    assert [each.transform.num_buckets for each in join.plan().key_functions] == [4]
    assert len(join.to_arrow()) == 12
    assert (3, "later", "by id") in _pairs(join)
