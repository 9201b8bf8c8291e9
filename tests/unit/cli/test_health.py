"""What a table suffers from, and what to run for it."""

from __future__ import annotations

from typing import Any

import lancepart as lp
from lancepart.cli import health
from lancepart.cli.leaves import LeafInfo


def leaf(name: str, *, rows: int | None = 10, held: int = 1 << 20, fragments: int = 1) -> LeafInfo:
    return LeafInfo(spec_id=1, object_id=name, values={"k": name}, rows=rows, bytes=held, fragments=fragments)


def kinds(found: Any) -> list[str]:
    return [each.kind for each in found]


def test_a_table_without_faults_has_no_findings(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    assert ask("health", "t") == []
    assert "nothing to do" in run("health", "t").stdout


def test_each_finding_names_a_command_that_mends_it(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    ask("index", "t", "id", "BTREE")
    for n in range(4):
        table.append([{"id": 100 + n, "country": "US"}])
    table.delete("country = 'FR'")
    table.update_spec(["bucket(id, 2)"])

    found = {each["kind"]: each for each in ask("health", "t", code=5)}

    assert set(found) == {"small files", "unindexed rows", "empty leaves", "older specs"}
    assert "does not cover 4 rows" in found["unindexed rows"]["detail"]
    for kind in ("older specs", "small files", "unindexed rows"):
        run(*found[kind]["run"].split()[1:])
    left = {each["kind"] for each in ask("health", "t", code=5)}
    assert "unindexed rows" not in left
    assert "small files" not in left
    assert "older specs" not in left


def test_skew_and_many_small_partitions_are_found_by_their_sizes() -> None:
    even = [leaf(str(n)) for n in range(9)]
    assert kinds(health.sizes(even, "t")) == []
    assert kinds(health.sizes([*even, leaf("large", held=1 << 30)], "t")) == ["skew"]
    assert kinds(health.sizes([leaf(str(n), held=100) for n in range(1000)], "t")) == ["small partitions"]
    assert kinds(health.broken([*even, leaf("gone", rows=None)], "t")) == ["broken leaves"]
