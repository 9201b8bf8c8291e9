"""Searches and joins."""

from __future__ import annotations

from typing import Any

import pytest

import lancepart as lp

pytestmark = pytest.mark.usefixtures("table")


def test_the_nearest_vectors_are_found(ask: Any, run: Any) -> None:
    found = ask("search", "t", "[3.2, 0]", "-k", "2", "-c", "id", "-w", "country = 'US'")
    assert [row["id"] for row in found] == [3, 4]
    assert "t" in ask("search", "t", "[3.2, 0]", "--explain")["plan"]
    assert "JSON list" in run("search", "t", "[3.2, x]", code=1).stderr


def test_a_table_is_joined_with_another(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    other = lp.create_table("u", table.schema, ["country"])
    other.append([{"id": 5, "country": "FR"}])
    found = ask("join", "t", "u", "--on", "country", "-c", "id", "-c", "id_right")
    assert found == [{"id": 20, "id_right": 5}]
    assert ask("join", "t", "u", "--on", "country=country", "--how", "left", "-n", "3", "-c", "id") != []
    assert "plan" in ask("join", "t", "u", "--on", "country", "--explain")
    assert "partition" in run("join", "t", "u", "--on", "id", code=1).stderr
