"""Days, months and hours of time in PARTITIONED BY, and those of the calendar that come round again."""

from __future__ import annotations

import pytest

from .warehouse import Sql

COLUMNS = "(id BIGINT, ts TIMESTAMP)"


def test_days_are_days_of_time(sql: Sql) -> None:
    sql(f"CREATE TABLE @.ns.t {COLUMNS} PARTITIONED BY (days(ts), bucket(4, id))")
    sql("INSERT INTO @.ns.t VALUES (1, TIMESTAMP '1999-03-05 12:00:00Z'), (2, TIMESTAMP '2025-07-05 12:00:00Z')")
    table = sql.table("ns", "t")

    assert [field.field_id for field in table.spec.fields] == ["ts_year", "ts_month", "ts_day", "id_bucket"]
    assert len(table.scan().plan().leaves) == 2
    (made,) = sql("SHOW CREATE TABLE @.ns.t")[0]
    assert "days(ts)" in made
    sql(made.replace(".ns.t ", ".ns.again "))
    assert sql.table("ns", "again").spec == table.spec
    assert sql("SELECT id FROM @.ns.t WHERE ts >= TIMESTAMP '2025-07-05 00:00:00Z'") == [(2,)]
    assert sql("SELECT @.days(TIMESTAMP '1970-01-03 12:00:00Z')") == [(2,)]


def test_a_day_without_its_month_has_to_be_confirmed(sql: Sql) -> None:
    for part in ("day", "month", "hour"):
        with pytest.raises(Exception, match=rf"{part}s\(ts\).*{part}\(ts\).*cyclic_partitions"):
            sql(f"CREATE TABLE @.ns.bad {COLUMNS} PARTITIONED BY ({part}(ts))")
    sql(f"CREATE TABLE @.ns.t {COLUMNS} PARTITIONED BY (day(ts)) TBLPROPERTIES (cyclic_partitions = 'true')")
    assert [field.field_id for field in sql.table("ns", "t").spec.fields] == ["ts_day"]
    (made,) = sql("SHOW CREATE TABLE @.ns.t")[0]
    sql(made.replace(".ns.t ", ".ns.again "))
    assert sql.table("ns", "again").spec == sql.table("ns", "t").spec

    sql(f"CREATE TABLE @.ns.u {COLUMNS} PARTITIONED BY (year(ts))")
    with pytest.raises(Exception, match=r"days\(ts\)"):
        sql("CALL @.system.add_partition_field(table => 'ns.u', field => 'day(ts)')")
    sql("CALL @.system.add_partition_field(table => 'ns.u', field => 'month(ts)')")
    sql("CALL @.system.replace_partition_field(table => 'ns.u', field => 'months(ts)', by => 'hours(ts)')")
    assert [field.field_id for field in sql.table("ns", "u").spec.fields] == [
        "ts_year",
        "ts_month",
        "ts_day",
        "ts_hour",
    ]
