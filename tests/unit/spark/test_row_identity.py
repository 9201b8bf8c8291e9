"""Row-level changes name their rows by leaf and address: no other leaf is ever taken for the one that was read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import CommitConflictError, InvalidTableStateError
from lancepart.layout.leaves import Leaf, by_identity
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark import writing
from lancepart.spark.planning import plan
from lancepart.spark.running import rows
from lancepart.spark.table_messages import ScanRequest, WriteRequest
from lancepart.spark.types import spark_schema

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])
FRENCH = {"name": "=", "children": [{"column": ["country"]}, {"value": "FR"}]}


def filled(root: Path, *, first: int = 0) -> lp.PartitionedTable:
    table = lp.create_table(root, SCHEMA, ["country"])
    table.append([{"id": first + n, "country": ("US", "FR", "DE")[n % 3]} for n in range(30)])
    return table


def ids(root: Path) -> list[int]:
    return sorted(lp.open_table(root).scan().to_arrow().column("id").to_pylist())


class Statement:
    """A DELETE as Spark runs it: a scan that identifies its rows, and a write of the identities of those that go."""

    def __init__(self, root: Path, *handled: Any) -> None:
        table = lp.open_table(root)
        self.version, self.handled, self.options = table.version, handled, {"path": str(root)}
        request = ScanRequest(version=table.version, columns=("id", LEAF, ADDRESS), handled=handled, parallelism=2)
        self.planned = plan(table, request)

    def read(self, wanted: Callable[[int], bool]) -> Iterator[pa.RecordBatch]:
        for task in self.planned.tasks:
            for batch in rows(self.planned.scan, task):
                yield batch.filter(pa.array([wanted(n) for n in batch.column("id").to_pylist()])).select(
                    [LEAF, ADDRESS]
                )

    def commit(self, gone: list[pa.RecordBatch]) -> int | None:
        schema = spark_schema(pa.schema([(LEAF, pa.int64()), (ADDRESS, pa.int64())]))
        asked = WriteRequest(
            mode="rows", schema=schema.jsonValue(), handled=self.handled, version=self.version, command="delete"
        )
        writer = writing.plan(self.options, schema, asked)
        return writer.commit([writer.write(gone)])


def test_the_rows_that_were_read_go(tmp_path: Path) -> None:
    filled(tmp_path / "t")
    statement = Statement(tmp_path / "t")

    statement.commit(list(statement.read(lambda n: n % 5 == 0)))

    assert ids(tmp_path / "t") == [n for n in range(30) if n % 5]


def test_a_table_that_was_replaced_by_another_with_the_same_snapshot_is_left_alone(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "t"), filled(tmp_path / "other", first=100)
    assert one.version == other.version
    statement = Statement(tmp_path / "t")
    gone = list(statement.read(lambda n: n % 5 == 0))
    shutil.rmtree(tmp_path / "t")
    (tmp_path / "other").rename(tmp_path / "t")

    with pytest.raises(
        CommitConflictError, match=r"3 partitions that snapshot .* nothing was changed, so run it again"
    ):
        statement.commit(gone)

    assert ids(tmp_path / "t") == list(range(100, 130))


def test_leaves_that_come_meanwhile_do_not_shift_the_others(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    statement = Statement(tmp_path / "t", FRENCH)
    gone = list(statement.read(lambda n: n < 15))
    table.append([{"id": 100 + n, "country": f"c{n}"} for n in range(20)])

    statement.commit(gone)

    kept = [n for n in range(30) if n % 3 != 1 or n >= 15]
    assert ids(tmp_path / "t") == [*kept, *range(100, 120)]


@pytest.mark.parametrize("change", ["delete", "rewrite"])
def test_a_leaf_that_goes_or_changes_meanwhile_is_a_conflict(tmp_path: Path, change: str) -> None:
    table = filled(tmp_path / "t")
    statement = Statement(tmp_path / "t", FRENCH)
    gone = list(statement.read(lambda n: n < 15))
    table.delete("country = 'FR'" if change == "delete" else "id = 4")
    before = ids(tmp_path / "t")

    with pytest.raises(CommitConflictError, match="nothing was changed, so run it again"):
        statement.commit(gone)

    assert ids(tmp_path / "t") == before


def test_rows_of_a_leaf_that_the_statement_did_not_read_are_refused(tmp_path: Path) -> None:
    filled(tmp_path / "t")
    others = list(Statement(tmp_path / "t").read(lambda n: True))

    with pytest.raises(CommitConflictError, match="2 partitions"):
        Statement(tmp_path / "t", FRENCH).commit(others)

    assert ids(tmp_path / "t") == list(range(30))


def test_an_identity_is_of_the_leaf_at_its_version_alone(tmp_path: Path) -> None:
    leaves = filled(tmp_path / "t").scan().plan().leaves
    leaf = leaves[0]
    others = [
        replace(leaf, object_id="v1$other$dataset"),
        replace(leaf, location="elsewhere"),
        replace(leaf, read_version=(leaf.read_version or 0) + 1),
        replace(leaf, branch="dev"),
    ]

    assert by_identity(leaves) == by_identity(reversed(leaves))
    assert replace(leaf, stats=None, number=9, values=()).identity == leaf.identity
    assert len({each.identity for each in [*leaves, *others]}) == len(leaves) + len(others)
    assert -(2**63) <= leaf.identity < 2**63


def test_leaves_that_a_digest_does_not_tell_apart_are_refused() -> None:
    leaf = Leaf(object_id="v1$a$dataset", spec_id=1, location="a", key=("sa",), values=("a",), read_version=1)

    with pytest.raises(InvalidTableStateError, match="can't be distinguished"):
        by_identity([leaf, replace(leaf, number=2)])
