from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.model.partition_by import cycles, parse_partition_by
from lancepart.model.schema import assign_field_ids
from lancepart.model.spec import PartitionField
from lancepart.model.transforms import Bucket, Day, Hour, Identity, Month, MultiBucket, Truncate, Year

SCHEMA = assign_field_ids(
    pa.schema(
        [
            ("id", pa.int64()),
            ("event date", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ('we"ird, (x).y', pa.string()),
            ("🎉", pa.int32()),
            ("year", pa.int32()),
            ("Amount", pa.decimal128(10, 2)),
            ("name", pa.dictionary(pa.int8(), pa.string())),
            ("col0", pa.int16()),
        ]
    )
)


def parsed(item: str) -> PartitionField:
    return parse_partition_by([item], SCHEMA)[0]


@pytest.mark.parametrize(
    ("item", "field_id", "source_ids", "transform"),
    [
        ("id", "id", (0,), Identity()),
        ("  id ", "id", (0,), Identity()),
        ("identity(id)", "id", (0,), Identity()),
        ("event date", "event_date", (1,), Identity()),
        ("`event date`", "event_date", (1,), Identity()),
        ('we"ird, (x).y', "we_ird_x_y", (3,), Identity()),
        ("year", "year", (5,), Identity()),
        ("amount", "Amount", (6,), Identity()),
        ("🎉", "column", (4,), Identity()),
        ('year("event date")', "event_date_year", (1,), Year()),
        ("year(event date)", "event_date_year", (1,), Year()),
        ("years(ts)", "ts_year", (2,), Year()),
        ("years(ts) AS y", "y", (2,), Year()),
        ("MONTH(ts)", "ts_month", (2,), Month()),
        ("hour(ts)", "ts_hour", (2,), Hour()),
        ("day(ts) AS d", "d", (2,), Day()),
        ("bucket(id, 16)", "id_bucket", (0,), Bucket(16)),
        ("bucket(16, id)", "id_bucket", (0,), Bucket(16)),
        ("bucket(4, 🎉)", "column_bucket", (4,), Bucket(4)),
        ("truncate(name, 3)", "name_trunc", (7,), Truncate(3)),
        ('truncate(2, "we""ird, (x).y")', "we_ird_x_y_trunc", (3,), Truncate(2)),
        ("multi_bucket(16, id, name)", "id_name_multi_bucket", (0, 7), MultiBucket(16)),
        ("multi_bucket(id, `event date`, 16)", "id_event_date_multi_bucket", (0, 1), MultiBucket(16)),
    ],
)
def test_transforms_are_read(item: str, field_id: str, source_ids: tuple[int, ...], transform: Any) -> None:
    field = parsed(item)
    assert (field.field_id, field.source_ids, field.transform) == (field_id, source_ids, transform)
    assert field.result_type == transform.result_type([SCHEMA.field(number).type for number in source_ids])


@pytest.mark.parametrize(
    ("item", "field_id", "source_ids", "expression"),
    [
        ("expr(id % 10) AS tens", "tens", (0,), "col0 % 10"),
        ("expr(id % 10)", "id_expr", (0,), "col0 % 10"),
        ("EXPR(col0 + id) as x", "x", (8, 0), "col0 + col1"),
        ('expr("🎉" % 3) AS "my party"', "my party", (4,), "col0 % 3"),
        ("expr(Amount * 2) AS a", "a", (6,), "col0 * 2"),
        ("expr(upper(name) || '''name''') AS q", "q", (7,), "upper(col0) || '''name'''"),
        ("expr(abs(murmur3(lower(name))) % 8) AS b", "b", (7,), "abs(murmur3(lower(col0))) % 8"),
        ("expr(extract(year FROM ts)) AS y", "y", (2,), "extract(year FROM col0)"),
        ('expr(extract(year FROM "ts") + "year") AS y', "y", (2, 5), "extract(year FROM col0) + col1"),
        ('expr(left("we""ird, (x).y", 1)) AS w', "w", (3,), "left(col0, 1)"),
    ],
)
def test_expressions_are_read_over_real_names(
    item: str, field_id: str, source_ids: tuple[int, ...], expression: str
) -> None:
    field = parsed(item)
    assert (field.field_id, field.source_ids, field.expression) == (field_id, source_ids, expression)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("nope", "no column 'nope'; the columns are 'id'"),
        ("", "no column ''"),
        ("year(name)", "year is not defined for columns of type .*; partition by a column of dates or timestamps"),
        (
            "hours(event date)",
            "hour is not defined for columns of type date32.*; a date has no hours: partition by its",
        ),
        ("hour(event date)", "hour is not defined"),
        ("year()", "year needs a column"),
        ("year(ts, ts)", "exactly one column"),
        ("bucket(id)", "needs a whole number"),
        ("bucket(id, 0)", "between 1 and"),
        ("truncate(id, -1)", "between 1 and"),
        ("multi_bucket(3)", "needs a column"),
        ("weekday(ts)", "unknown transform 'weekday'"),
        ("bucket(id, 16", "not closed"),
        ("bucket(id,, 16)", "argument is missing"),
        ("expr(now()) AS x", "may not use now"),
        ("expr(1) AS x", "it names none"),
        ("expr(id + nope) AS x", "nope"),
        ("id, name", "no column 'id, name'"),
    ],
)
def test_what_cannot_be_read_says_why(item: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        parsed(item)


def test_ids_within_one_call_differ() -> None:
    ready = PartitionField(field_id="ts_year", source_ids=(2,), transform=Year(), result_type=pa.int32())
    fields = parse_partition_by(["bucket(id, 4)", "bucket(id, 8)", ready, "year(ts)"], SCHEMA)
    assert [field.field_id for field in fields] == ["id_bucket", "id_bucket_2", "ts_year", "ts_year_2"]


def test_a_ready_field_is_checked_against_the_schema() -> None:
    for source, reason in ((0, "year is not defined"), (99, "no column has the field id 99")):
        field = PartitionField(field_id="y", source_ids=(source,), transform=Year(), result_type=pa.int32())
        with pytest.raises(InvalidInputError, match=reason):
            parse_partition_by([field], SCHEMA)


def test_a_schema_without_ids_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'a' has no field id"):
        parse_partition_by(["a"], pa.schema([("a", pa.int8())]))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["years(ts)"], ["ts_year"]),
        (["MONTHS(ts)"], ["ts_year", "ts_month"]),
        (["days(ts)", "id"], ["ts_year", "ts_month", "ts_day", "id"]),
        (["id", "hours(`ts`)"], ["id", "ts_year", "ts_month", "ts_day", "ts_hour"]),
        (["years(ts)", "days(ts)"], ["ts_year", "ts_month", "ts_day"]),
        (["year(ts)", "id", "days(ts)"], ["ts_year", "id", "ts_month", "ts_day"]),
        (["days(ts)", "month(ts)"], ["ts_year", "ts_month", "ts_day"]),
    ],
)
def test_a_span_of_time_is_its_parts_from_the_year_down(items: list[str], expected: list[str]) -> None:
    assert [field.field_id for field in parse_partition_by(items, SCHEMA)] == expected


def test_one_name_is_not_enough_for_a_span_of_several_fields() -> None:
    with pytest.raises(InvalidInputError, match=r"year\(ts\), month\(ts\), day\(ts\)"):
        parse_partition_by(["days(ts) AS d"], SCHEMA)


def test_parts_that_come_round_again_are_told_from_spans() -> None:
    fields = parse_partition_by(["years(ts)", "day(ts)", 'month("event date")', "id"], SCHEMA)

    assert [field.field_id for field in cycles(fields)] == ["ts_day", "event_date_month"]
    assert cycles(parse_partition_by(["hours(ts)"], SCHEMA)) == []


def test_the_same_day_of_other_years_is_another_partition(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    table = lp.create_table(tmp_path / "t", schema, ["days(ts)"])
    moments = [datetime(1999, 3, 5), datetime(2025, 7, 5), datetime(2025, 7, 6, 23, 59)]
    table.append(pa.table({"id": [1, 2, 3], "ts": moments}, schema=schema))

    table.overwrite(pa.table({"id": [4], "ts": moments[1:2]}, schema=schema))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert len(table.scan("ts >= TIMESTAMP '2025-07-05T12:00:00Z' AND ts < TIMESTAMP '2025-07-06'").plan().leaves) == 1
    assert len(table.scan("ts >= TIMESTAMP '2025-07-05T00:00:00Z'").plan().leaves) == 2
    assert len(table.scan("ts > TIMESTAMP '2025-07-07'").plan().leaves) == 0


def test_new_specs_and_trees_take_spans(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32())])
    table = lp.create_table(tmp_path / "t", schema, ["years(d)"])
    assert [field.field_id for field in table.update_spec(["days(d)", "id"]).fields] == [
        "d_year",
        "d_month",
        "d_day",
        "id",
    ]
    tree = lp.create_table(tmp_path / "tree", schema, ["months(d)", "years(d)"], layout="hive")
    tree.append(pa.table({"id": [1, 2], "d": [date(1999, 3, 5), date(2025, 3, 5)]}, schema=schema))
    assert len(tree.scan().plan().leaves) == 2
    assert len(tree.scan("d > DATE '2000-01-01'").plan().leaves) == 1
