"""What a table suffers from, and what to run for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.report import health
from lancepart.report.leaf_frame import LeafFrame, SpecFrame


def leaf(name: str, *, rows: int | None = 10, held: int = 1 << 20, fragments: int = 1) -> dict[str, object]:
    return {"object_id": name, "p0": name, "rows": rows, "bytes": held, "fragments": fragments}


def frame(*leaves: dict[str, object]) -> LeafFrame:
    spec = SpecFrame(spec_id=1, fields=("k",), leaves=pa.Table.from_pylist(list(leaves)))
    return LeafFrame(version=1, specs=(spec,))


def kinds(found: Any) -> list[str]:
    return [each.kind for each in found]


def test_a_table_without_faults_has_no_findings(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    assert ask("health", "t") == []
    assert "nothing to do" in run("health", "t").stdout


@pytest.mark.slow
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


def test_unindexed_rows_are_looked_for_in_the_largest_partitions(
    ask: Any, run: Any, table: lp.PartitionedTable
) -> None:
    ask("index", "t", "id", "BTREE")
    for country, count in (("XX", 50), ("YY", 40)):
        table.append([{"id": 100 + n, "country": country} for n in range(count)])

    assert "does not cover 50 rows" in ask("health", "t", "--most", "1", code=5)[0]["detail"]
    assert "does not cover 90 rows" in ask("health", "t", code=5)[0]["detail"]
    assert "in the 1 largest partitions" in run("health", "t", "--most", "1", code=5).stdout
    assert "largest" not in run("health", "t", code=5).stdout


def test_skew_and_many_small_partitions_are_found_by_their_sizes() -> None:
    even = [leaf(str(n)) for n in range(9)]
    assert kinds(health.sizes(frame(*even), "t")) == []
    skewed = list(health.sizes(frame(*even, leaf("large", held=1 << 30)), "t"))
    assert kinds(skewed) == ["skew"]
    assert skewed[0].detail.startswith("v1  k=large has 1.1 GB")
    assert kinds(health.sizes(frame(*(leaf(str(n), held=100) for n in range(1000))), "t")) == ["small partitions"]
    assert kinds(health.sizes(frame(*even, leaf("many", fragments=9)), "t")) == ["small files"]
    assert kinds(health.broken(frame(*even, leaf("gone", rows=None)), "t")) == ["broken leaves"]
