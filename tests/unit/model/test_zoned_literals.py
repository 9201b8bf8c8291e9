"""Literals with a zone are instants, whatever zone the column that they are compared with is in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.model.zoned_literals import with_zones
from tests.support.tiers import one_in

HOURS = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(-3, 4)]
LITERALS = [
    "TIMESTAMPTZ '2024-01-01 00:00:00+00'",
    "timestamp with time zone '2024-01-01 01:00:00+01'",
    "TIMESTAMPTZ '2024-01-01 00:00:00'",
    "CAST('2023-12-31 19:00:00-05' AS TIMESTAMPTZ)",
    "'2024-01-01T00:00:00Z'::timestamptz",
    "TIMESTAMPTZ '2024-01-01 00:00:00.000000000+00'",
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "-05:00", None])
@pytest.mark.parametrize("literal", one_in(3, LITERALS))
def test_a_column_is_compared_by_instants(tmp_path: Path, zone: str | None, literal: str) -> None:
    at = pa.array(HOURS, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    table = lp.create_table_from(tmp_path / "t", pa.table({"id": range(7), "at": at}), ["hours(at)"])
    for operator, expected in (("<", [0, 1, 2]), ("=", [3]), (">=", [3, 4, 5, 6])):
        where = f"at {operator} {literal}"
        assert sorted(table.scan(where).to_arrow()["id"].to_pylist()) == expected
        assert lp.sql(f"SELECT id FROM t WHERE {where} ORDER BY id", t=table).to_arrow()["id"].to_pylist() == expected
    assert len(table.scan(f"at = {literal}").plan().leaves) == 1
    table.update({"at": literal}, "id = 0")
    assert table.count_rows(f"at = {literal}") == 2
    done = table.merge([{"id": 1}], on=["id"]).when_matched_update({"at": literal}, f"target.at < {literal}").execute()
    assert done is not None
    assert (done.rows_updated, table.count_rows(f"at = {literal}")) == (1, 3)


def test_nothing_but_such_literals_is_changed() -> None:
    for text in (
        "n = 'timestamptz ''x'''",
        "\"timestamptz\" = 'x'",
        "SELECT 1 -- timestamptz 'x'",
        "SELECT 1 /* timestamptz 'x' */",
        "CAST(n AS TIMESTAMPTZ)",
        "TIMESTAMP '2024-01-01 00:00:00'",
    ):
        assert with_zones(text) == text
