"""002, "Partition Spec": its schema, that of its fields, and the six requirements of an expression."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.model.transforms import Bucket, Month, Year
from tests.support.catalogs import Place

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("ts", pa.timestamp("us", "America/New_York")),
    ]
)

Make = Callable[..., lp.PartitionedTable]


@pytest.fixture
def make(local: Place) -> Make:
    return lambda *partition_by: lp.create_table(local.root, SCHEMA, list(partition_by))


def _field(table: lp.PartitionedTable, number: int = 1) -> dict[str, Any]:
    stored = lance.dataset(f"{table.root}/__manifest").metadata[f"partition_spec_v{number}"]
    return json.loads(stored)["fields"][0]


def _values(table: lp.PartitionedTable) -> list[Any]:
    return sorted((leaf.values for leaf in table.scan().plan().leaves), key=str)


def test_a_transform_is_written_as_a_transform_and_an_expression_as_an_expression(make: Make) -> None:
    table = make("bucket(id, 16)")
    table.update_spec(["expr(n % 10) AS last_digit"])

    assert _field(table) == {
        "field_id": "id_bucket",
        "source_ids": [0],
        "transform": {"type": "bucket", "num_buckets": 16},
        "result_type": {"type": "int32"},
    }
    assert _field(table, 2) == {
        "field_id": "last_digit",
        "source_ids": [1],
        "expression": "col0 % 10",
        "result_type": {"type": "int64"},
    }


def test_placeholders_follow_the_order_of_the_source_ids(make: Make) -> None:
    table = make("expr(concat(b, '-', a)) AS pair")

    field = _field(table)
    table.append([{"id": 1, "a": "x", "b": "y"}])

    assert (field["source_ids"], field["expression"]) == ([3, 2], "concat(col0, '-', col1)")
    assert _values(table) == [("y-x",)]


def test_the_same_source_and_transform_keep_their_field_id_and_others_get_a_new_one(make: Make) -> None:
    table = make("year(ts) AS when")

    table.update_spec(["year(ts)", "month(ts) AS when"])

    assert [(f.field_id, f.transform) for f in table.spec.fields] == [("when", Year()), ("when_2", Month())]


def test_a_field_id_is_not_taken_up_again_after_its_field_left(make: Make) -> None:
    table = make("bucket(id, 4) AS part")
    table.update_spec(["a"])

    table.update_spec(["bucket(id, 8) AS part"])
    table.update_spec(["bucket(id, 4)"])

    assert [(f.field_id, f.transform) for f in table.specs[2].fields] == [("part_2", Bucket(8))]
    assert [(f.field_id, f.transform) for f in table.specs[3].fields] == [("part", Bucket(4))]


def test_an_expression_is_the_same_field_when_its_text_and_sources_are(make: Make) -> None:
    table = make("expr(n % 10) AS digit")
    table.update_spec(["a"])

    table.update_spec(["expr(n % 10) AS other_name"])
    table.update_spec(["expr(id % 10) AS digit"])

    assert [spec.fields[0].field_id for spec in table.specs[2:]] == ["digit", "digit_2"]


def test_sources_are_held_by_id_so_that_a_rename_changes_nothing(make: Make) -> None:
    table = make("expr(upper(a)) AS shout")
    before = _field(table)

    table.rename_column("a", "word")
    table.append([{"id": 1, "word": "hey"}])

    assert _field(table) == before
    assert _values(table) == [("HEY",)]


@pytest.mark.parametrize(
    "expression",
    [
        "now()",
        "current_date()",
        "current_timestamp",
        "random()",
        "uuid()",
        "concat(a, cast(random() AS varchar))",
        "n IN (SELECT 1)",
        "sum(n)",
        "row_number() OVER ()",
        "@@version",
        "version()",
    ],
)
def test_1_and_2_what_is_not_deterministic_and_stateless_is_refused_at_creation(make: Make, expression: str) -> None:
    with pytest.raises(InvalidInputError):
        make(f"expr({expression}) AS p")


@pytest.mark.parametrize("expression", ["col1", "col0 + nope", "other.a", "1"])
def test_columns_other_than_the_sources_are_refused(make: Make, expression: str) -> None:
    with pytest.raises(InvalidInputError):
        make(f"expr({expression}) AS p")


def test_3_the_same_value_of_another_width_is_the_same_partition(make: Make) -> None:
    table = make("expr(n % 7) AS p", "bucket(n, 8)")
    table.append([{"id": 1, "n": 5}])
    table.widen_column("n", pa.int64())

    table.append([{"id": 2, "n": 5}])

    assert len(_values(table)) == 1
    assert table.scan("n = 5").count() == 2


def test_3_an_expression_that_tells_widths_apart_is_refused(make: Make) -> None:
    with pytest.raises(InvalidInputError, match="widened"):
        make("expr(arrow_typeof(n)) AS p")


def test_4_a_removed_column_counts_as_null(make: Make) -> None:
    table = make("bucket(a, 4)", "multi_bucket(4, a, b)", "expr(coalesce(a, b, 'none')) AS any")
    table.append([{"id": 1, "a": "x", "b": "y"}])

    table.drop_column("a")
    table.append([{"id": 2, "b": "y"}, {"id": 3, "b": None}])

    kept = {leaf.values for leaf in table.scan().plan().leaves}
    of_b = next(values[1] for values in kept if values[2] == "y")
    assert len(kept) == 3
    assert of_b is not None
    assert {(None, of_b, "y"), (None, None, "none")} <= kept


def test_5_a_multi_column_field_is_null_only_when_all_its_columns_are(make: Make) -> None:
    table = make("multi_bucket(4, a, b)")

    table.append([{"id": 1, "a": "x"}, {"id": 2, "b": "x"}, {"id": 3}])

    values = {leaf.values[0] for leaf in table.scan().plan().leaves}
    assert len(values) == 2, "'x' with a NULL beside it hashes like 'x' alone"
    assert None in values


@pytest.mark.parametrize(
    ("partition_by", "column"),
    [
        ("a", "a"),
        ("n", "n"),
        ("year(ts)", "ts"),
        ("month(ts)", "ts"),
        ("day(ts)", "ts"),
        ("hour(ts)", "ts"),
        ("bucket(a, 2)", "a"),
        ("multi_bucket(2, a)", "a"),
        ("truncate(a, 3)", "a"),
        ("truncate(n, 10)", "n"),
    ],
)
def test_5_null_is_a_partition_of_its_own_for_every_transform(make: Make, partition_by: str, column: str) -> None:
    table = make(partition_by)
    moment = datetime(2025, 12, 10, 5, tzinfo=UTC)

    table.append([{"id": 1}, {"id": 2, "a": "null", "ts": moment, "n": 0}, {"id": 3, "a": "", "ts": moment, "n": 1}])

    null = [leaf for leaf in table.scan().plan().leaves if leaf.values == (None,)]
    assert len(null) == 1
    asked = table.scan(f"{column} IS NULL", columns=["id"])
    assert asked.plan().leaves == tuple(null)
    assert asked.to_arrow().to_pylist() == [{"id": 1}]
    rest = table.scan(f"{column} IS NOT NULL", columns=["id"])
    assert null[0] not in rest.plan().leaves
    assert rest.count() == 2


def test_5_an_expression_decides_what_null_gives(make: Make) -> None:
    table = make("expr(coalesce(a, 'none')) AS p", "expr(lower(b)) AS q")

    table.append([{"id": 1}, {"id": 2, "a": "none", "b": "NULL"}])

    assert {leaf.values for leaf in table.scan().plan().leaves} == {("none", None), ("none", "null")}
    assert table.scan("a IS NULL").to_arrow().column("id").to_pylist() == [1]
    assert table.scan("b IS NOT NULL").to_arrow().column("id").to_pylist() == [2]


def test_5_null_the_word_null_and_nothing_are_three_partitions(make: Make) -> None:
    table = make("a")

    table.append([{"id": 1, "a": None}, {"id": 2, "a": "null"}, {"id": 3, "a": ""}, {"id": 4, "a": "NULL"}])

    assert {leaf.values[0] for leaf in table.scan().plan().leaves} == {None, "null", "", "NULL"}
    assert table.scan("a = ''").to_arrow().column("id").to_pylist() == [3]


@pytest.mark.parametrize(
    ("expression", "declared"),
    [("col0", pa.string()), ("col0 > 5", pa.int32()), ("cast(col0 AS varchar)", pa.date32())],
)
def test_6_a_result_of_another_type_than_declared_is_refused(make: Make, expression: str, declared: Any) -> None:
    field = lp.PartitionField(field_id="p", source_ids=(1,), expression=expression, result_type=declared)

    with pytest.raises(InvalidInputError, match=r"'p'.*declared"):
        make(field)


def test_6_a_result_of_the_declared_kind_is_cast_to_the_declared_type(make: Make) -> None:
    table = make(lp.PartitionField(field_id="p", source_ids=(1,), expression="col0 % 10", result_type=pa.int16()))

    table.append([{"id": 1, "n": 17}])

    assert lance.dataset(f"{table.root}/__manifest").schema.field("partition_field_p").type == pa.int16()
    assert _values(table) == [("7",)]


def test_6_a_value_that_does_not_fit_the_declared_type_stops_the_write(make: Make) -> None:
    table = make(lp.PartitionField(field_id="p", source_ids=(1,), expression="col0", result_type=pa.int8()))

    with pytest.raises(InvalidInputError, match="1000 not in range"):
        table.append([{"id": 1, "n": 1000}])

    assert table.scan().count() == 0


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        ("n % 10", {"n": 17}, "7"),
        ("upper(left(a, 1))", {"a": "été"}, "É"),
        ("CASE WHEN n < 10 THEN 'few' ELSE 'many' END", {"n": 3}, "few"),
        ("date_trunc('month', ts)", {"ts": datetime(2025, 12, 10, tzinfo=UTC)}, "2025-12-01 00:00:00"),
        ("abs(murmur3(a)) % 16", {"a": "iceberg"}, str(1210000089 % 16)),
        ("coalesce(n, 0) > 5 AND a IS NOT NULL", {"n": 7, "a": "x"}, "true"),
        ("coalesce(a, b)", {"b": "x"}, "x"),
        ("date_part('hour', ts)", {"ts": datetime(2025, 12, 10, 3, tzinfo=UTC)}, "3"),
    ],
)
def test_free_expressions_partition_and_prune(
    make: Make, expression: str, value: dict[str, Any], expected: str
) -> None:
    table = make(f"expr({expression}) AS p")

    table.append([{"id": 1, **value}, {"id": 2}])

    shown = {leaf.values[0] for leaf in table.scan().plan().leaves}
    assert any(text is not None and text.startswith(expected) for text in shown)
    assert table.scan("id = 1").count() == 1


def test_equality_prunes_an_expression(make: Make) -> None:
    table = make("expr(n % 10) AS digit")
    table.append([{"id": i, "n": i} for i in range(30)])

    scan = table.scan("n = 17")

    assert [leaf.values for leaf in scan.plan().leaves] == [("7",)]
    assert scan.to_arrow().column("id").to_pylist() == [17]


def test_requirement_5_an_expression_over_several_columns_passes_over_those_that_are_null(local: Place) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string())])

    with pytest.raises(InvalidInputError, match="gives NULL when only col0 has a value"):
        lp.create_table(local.root, schema, ["expr(a + b) AS total"])

    table = lp.create_table(local.root, schema, ["expr(coalesce(a, 0) + coalesce(b, 0)) AS total"])
    with pytest.raises(InvalidInputError, match="must pass over"):
        table.update_spec(["expr(upper(c) || CAST(a AS VARCHAR)) AS both"])
