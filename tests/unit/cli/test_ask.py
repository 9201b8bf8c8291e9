"""Searches and joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lancepart as lp

pytestmark = pytest.mark.usefixtures("table")


def test_the_nearest_vectors_are_found(ask: Any, run: Any) -> None:
    found = ask("search", "t", "[3.2, 0]", "-k", "2", "-c", "id", "-w", "country = 'US'")
    assert [row["id"] for row in found] == [3, 4]
    assert "t" in ask("search", "t", "[3.2, 0]", "--explain")["plan"]
    assert "JSON list" in run("search", "t", "[3.2, x]", code=2).stderr


def test_a_table_is_joined_with_another(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    other = lp.create_table("u", table.schema, ["country"])
    other.append([{"id": 5, "country": "FR"}])
    found = ask("join", "t", "u", "--on", "country", "-c", "id", "-c", "id_right")
    assert found == [{"id": 20, "id_right": 5}]
    assert ask("join", "t", "u", "--on", "country=country", "--how", "left", "-n", "3", "-c", "id") != []
    assert "plan" in ask("join", "t", "u", "--on", "country", "--explain")
    assert ask("join", "t", "u", "--on", "id", "-c", "id", "-c", "country_right") == [{"id": 5, "country_right": "FR"}]


def test_sql_is_asked_over_tables_by_name_and_over_a_warehouse(ask: Any, run: Any) -> None:
    query = "SELECT country, count(*) AS n FROM events GROUP BY country ORDER BY n DESC LIMIT 1"
    assert ask("sql", query, "events=t") == [{"country": "US", "n": 20}]
    assert "events" in ask("sql", query, "events=t", "--explain")["plan"]

    ask("create", "w:db.sales", "--schema", "id int64, country string", "--by", "country")
    (Path("rows.csv")).write_text("id,country\n1,US\n2,FR\n")
    ask("load", "w:db.sales", "rows.csv")
    joined = "SELECT count(*) AS n FROM db.sales s JOIN events e ON s.country = e.country"
    assert ask("sql", joined, "w", "events=t") == [{"n": 21}]
    assert ask("ns", "list", "w", "-r") == [
        {"name": "db", "kind": "namespace"},
        {"name": "db.sales", "kind": "partitioned table"},
    ]
    assert ask("info", "w:db.sales")["rows"] == 2
    assert ask("ns", "drop", "w:db.sales", "--yes")["kind"] == "table"
    assert "db.sales" in run("info", "w:db.sales", code=3).stderr.replace("$", ".")
    assert "eventz" in run("sql", "SELECT * FROM eventz", "events=t", code=1).stderr
