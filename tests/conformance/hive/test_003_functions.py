"""Document 003, sections 3.4 and 4: what each function gives, what it is called, and what it prunes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import mmh3
import pyarrow as pa
import pytest

import lancepart as lp
from tests.conformance.hive import trees
from tests.support.catalogs import Place


def table_of(local: Place, partition_by: list[str], **columns: Any) -> lp.PartitionedTable:
    rows = pa.table({"id": pa.array(range(len(next(iter(columns.values())))), pa.int64()), **columns})
    table = lp.create_table(local.root, rows.schema, partition_by, layout="hive")
    table.append(rows)
    return lp.open_table(local.root)


def test_the_example_of_pruning_scans_the_one_leaf(local: Place) -> None:
    trees.write_events(local.root)
    scan = lp.open_table(local.root).scan("event_date = '2025-12-11' AND country != 'FR'")

    assert [leaf.location for leaf in scan.plan().leaves] == ["event_date=2025-12-11/country=US.lance"]
    assert "1 of 4 leaves" in scan.explain()
    assert scan.to_arrow()["id"].to_pylist() == [4]
    assert scan.count() == 1


@pytest.mark.parametrize(
    ("where", "leaves"),
    [
        ("country = 'US'", 2),
        ("country IN ('US', 'FR')", 3),
        ("country <> 'US'", 2),
        ("event_date > '2025-12-10'", 2),
        ("event_date > '2025-12-10' OR country = 'CN'", 3),
        ("country IS NULL", 0),
        ("country LIKE 'U%'", 2),
        ("id = 5", 4),
    ],
)
def test_identity_prunes_by_equality_lists_and_ranges(local: Place, where: str, leaves: int) -> None:
    trees.write_events(local.root)

    assert len(lp.open_table(local.root).scan(where).plan().leaves) == leaves


def days(local: Place) -> lp.PartitionedTable:
    start = datetime(2025, 12, 9, 12, tzinfo=UTC)
    stamps = pa.array([start + timedelta(hours=9 * step) for step in range(8)], pa.timestamp("us", "UTC"))
    return table_of(local, ["year(ts)", "month(ts)", "day(ts)"], ts=stamps)


def test_the_utc_range_of_the_document_leaves_one_day(local: Place) -> None:
    table = days(local)
    where = "ts >= '2025-12-10T10:00:00Z' AND ts < '2025-12-11T00:00:00Z'"

    assert trees.paths(table, where) == ["ts_year=2025$ts_month=12$ts_day=10"]
    assert trees.paths(table) == [f"ts_year=2025$ts_month=12$ts_day={day:02d}" for day in (9, 10, 11, 12)]


def test_months_days_and_hours_have_two_digits(local: Place) -> None:
    stamps = pa.array([datetime(2025, 1, 5, 7), datetime(987, 11, 30, 23)], pa.timestamp("us"))
    table = table_of(local, ["year(ts)", "month(ts)", "day(ts)", "hour(ts)"], ts=stamps)

    assert trees.paths(table) == [
        "ts_year=0987$ts_month=11$ts_day=30$ts_hour=23",
        "ts_year=2025$ts_month=01$ts_day=05$ts_hour=07",
    ]


def test_one_digit_is_read_as_well(local: Place) -> None:
    schema = {"fields": [trees.EVENTS["fields"][0], trees.EVENTS["fields"][1]]}
    rows = pa.table({"id": [1], "event_date": pa.array([date(2025, 3, 5)])})
    trees.write_tree(local.root, {"event_date_month=3": rows})
    columns = [{"name": "event_date", "function": "month"}]
    trees.write_manifest(local.root, ["event_date_month=3"], trees.properties(columns, schema))
    table = lp.open_table(local.root)

    assert trees.ids(table, "event_date < '2025-04-01'") == [1]
    table.append([{"id": 2, "event_date": date(2024, 3, 9)}])
    assert trees.paths(table) == ["event_date_month=3"]


def test_time_parts_are_in_utc_whatever_the_columns_zone(local: Place) -> None:
    late = datetime(2025, 12, 31, 23, 30, tzinfo=UTC)
    table = table_of(local, ["year(ts)", "hour(ts)"], ts=pa.array([late], pa.timestamp("us", "Asia/Tokyo")))

    assert trees.paths(table) == ["ts_year=2025$ts_hour=23"]
    assert trees.paths(table, "ts < '2026-01-01T00:00:00Z'") == ["ts_year=2025$ts_hour=23"]


def test_a_time_column_has_an_hour_and_nothing_else(local: Place) -> None:
    table = table_of(local, ["hour(t)"], t=pa.array([time(22, 5), time(3), None], pa.time64("us")))

    assert trees.paths(table) == ["t_hour=03", "t_hour=22", "t_hour=__HIVE_DEFAULT_PARTITION__"]
    assert trees.paths(table, "t >= arrow_cast('20:00:00', 'Time64(Microsecond)')") == ["t_hour=22"]
    assert trees.paths(table, "t IS NULL") == ["t_hour=__HIVE_DEFAULT_PARTITION__"]
    for function in ("year", "month", "day"):
        with pytest.raises(lp.errors.InvalidInputError):
            lp.create_table(f"{local.root}2", table.schema, [f"{function}(t)"], layout="hive")


def test_bucket_is_the_floor_mod_of_the_signed_hash(local: Place) -> None:
    users = [f"user{number}" for number in range(50)]
    table = table_of(local, ["bucket(16, user_id)"], user_id=pa.array([*users, None]))

    expected = {f"user_id_bucket={mmh3.hash(user, 0, signed=True) % 16}" for user in users}

    assert any(mmh3.hash(user, 0, signed=True) < 0 for user in users)
    assert set(trees.paths(table)) == {*expected, "user_id_bucket=__HIVE_DEFAULT_PARTITION__"}


def test_bucket_of_a_number_hashes_it_as_a_long(local: Place) -> None:
    table = table_of(local, ["bucket(7, n)"], n=pa.array([34, -5], pa.int32()))

    hashes = [mmh3.hash(number.to_bytes(8, "little", signed=True), 0, signed=True) for number in (34, -5)]

    assert set(trees.paths(table)) == {f"n_bucket={value % 7}" for value in hashes}


def test_bucket_prunes_on_equality_alone(local: Place) -> None:
    table = table_of(local, ["bucket(16, user_id)"], user_id=[f"user{number}" for number in range(200)])

    assert trees.paths(table, "user_id = 'user7'") == [f"user_id_bucket={mmh3.hash('user7', 0, signed=True) % 16}"]
    assert len(trees.paths(table, "user_id IN ('user7', 'user8')")) <= 2
    assert len(trees.paths(table, "user_id > 'user7'")) == 16
    assert trees.ids(table, "user_id = 'user7'") == [7]


def test_truncate_of_text(local: Place) -> None:
    table = table_of(local, ["truncate(s, 3)"], s=["abcdef", "abd", "xyz", "é😀üx", "ab", ""])

    assert trees.paths(table) == ["s_trunc=", "s_trunc=ab", "s_trunc=abc", "s_trunc=abd", "s_trunc=xyz", "s_trunc=é😀ü"]
    assert trees.paths(table, "s = 'abcdef'") == ["s_trunc=abc"]
    assert trees.paths(table, "s LIKE 'abc%'") == ["s_trunc=abc"]
    assert trees.paths(table, "s LIKE 'ab%'") == ["s_trunc=ab", "s_trunc=abc", "s_trunc=abd"]


def test_truncate_of_numbers(local: Place) -> None:
    table = table_of(local, ["truncate(i, 10)"], i=[123, 120, 119, -7, -10, 130, None])

    assert trees.paths(table, "i IS NOT NULL") == sorted(f"i_trunc={value}" for value in (110, 120, 130, -10))
    assert trees.paths(table, "i = 123") == ["i_trunc=120"]


def test_a_range_keeps_the_partition_that_it_cuts(local: Place) -> None:
    """The document would drop 120 for ``i > 125``, and with it 126 to 129: it is kept, and all below it go."""
    table = table_of(local, ["truncate(i, 10)"], i=[105, 115, 123, 127, 135])

    assert trees.paths(table, "i > 125") == ["i_trunc=120", "i_trunc=130"]
    assert trees.ids(table, "i > 125") == [3, 4]
    assert trees.paths(table, "i > 129") == ["i_trunc=130"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint8(), pa.decimal128(5, 0)])
def test_truncate_at_the_ends_of_a_type(local: Place, kind: Any) -> None:
    low, high = {pa.int8(): (-128, 127), pa.int64(): (-(2**63), 2**63 - 1), pa.uint8(): (0, 255)}.get(
        kind, (-99999, 99999)
    )
    table = table_of(local, ["truncate(i, 10)"], i=pa.array([low, high, 5], kind))

    assert trees.ids(table, f"i = arrow_cast('{low}', 'Int64')" if low == -(2**63) else f"i = {low}") == [0]
    assert trees.ids(table, f"i >= {high}") == [1]
    assert trees.ids(table) == [0, 1, 2]


def test_hash_is_eight_digits_of_the_unsigned_hash(local: Place) -> None:
    table = table_of(local, ["hash(x)"], x=["iceberg", "b", None])

    expected = sorted(f"x_hash={mmh3.hash(text, 0, signed=False):08x}" for text in ("iceberg", "b"))

    assert trees.paths(table, "x IS NOT NULL OR x IS NULL") == [*expected, "x_hash=__HIVE_DEFAULT_PARTITION__"]
    assert trees.paths(table, "x = 'b'") == [f"x_hash={mmh3.hash('b', 0, signed=False):08x}"]
    assert len(trees.paths(table, "x > 'b'")) == 3


def test_hash_of_composite_values(local: Place) -> None:
    kind = pa.struct([("a", pa.string()), ("b", pa.list_(pa.int64()))])
    values = [{"a": "ice", "b": [1, 2]}, {"a": "ice", "b": [1, 2]}, {"a": None, "b": None}, None]
    table = table_of(local, ["hash(x)"], x=pa.array(values, kind))

    joined = b"ice" + (1).to_bytes(8, "little") + (2).to_bytes(8, "little")

    assert f"x_hash={mmh3.hash(joined, 0, signed=False):08x}" in trees.paths(table)
    assert len(trees.paths(table)) == 3
    assert table.scan().to_arrow().sort_by("id")["x"].to_pylist() == values


def test_hashes_of_another_kind_never_prune(local: Place) -> None:
    path = "country_hash=00112233445566aa"
    schema = {"fields": [trees.EVENTS["fields"][0], trees.EVENTS["fields"][2]]}
    trees.write_tree(local.root, {path: pa.table({"id": [1], "country": ["US"]})})
    columns = [{"name": "country", "function": "hash"}]
    trees.write_manifest(local.root, [path], trees.properties(columns, schema))

    assert trees.ids(lp.open_table(local.root), "country = 'US'") == [1]


@pytest.mark.parametrize("function", ["identity", "bucket(4, x)", "truncate(x, 2)", "hash(x)"])
def test_null_and_empty_are_partitions_of_their_own(local: Place, function: str) -> None:
    table = table_of(local, ["x" if function == "identity" else function], x=[None, "", "a"])

    assert trees.ids(table, "x IS NULL") == [0]
    assert trees.ids(table, "x = ''") == [1]
    assert table.scan().to_arrow().sort_by("id")["x"].to_pylist() == [None, "", "a"]
    assert len(trees.paths(table, "x IS NULL")) == 1
