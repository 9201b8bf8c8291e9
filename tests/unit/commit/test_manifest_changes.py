"""Rows replaced by what was made of them: only as long as nobody changed what was read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.commit import distributed_write
from lancepart.errors import CommitConflictError
from lancepart.read import leaf

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append([{"id": n, "k": "ab"[n % 2]} for n in range(10)])
    return made


def planned(table: lp.PartitionedTable) -> tuple[distributed_write.WriteJob, distributed_write.WriteResult]:
    """The rows of one partition below 4 become two others, one of which belongs to another partition."""
    job = distributed_write.plan(
        table._manifest, mode=distributed_write.ROWS, where="id < 4 AND k = 'a'", version=table.version, name="update"
    )
    written = distributed_write.write(job, pa.table({"id": [100, 101], "k": ["a", "c"]}, schema=SCHEMA))
    return job, replace(written, gone=identities(table, "id < 4 AND k = 'a'"))


def identities(table: lp.PartitionedTable, where: str) -> dict[int, Any]:
    """The leaves and addresses of rows, as a task of the job reports them."""
    return {task.leaf.identity: leaf.matching_addresses(task) for task in table.scan(where).tasks()}


def ids(table: lp.PartitionedTable) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def test_what_was_read_is_replaced_in_one_commit(table: lp.PartitionedTable) -> None:
    job, report = planned(table)
    distributed_write.commit(table._manifest, job, [report])
    assert ids(table) == [1, 3, 4, 5, 6, 7, 8, 9, 100, 101]
    assert table.inspect.snapshots().to_pylist()[-1]["operation"] == "update"


def test_other_partitions_may_change_meanwhile(table: lp.PartitionedTable) -> None:
    job, report = planned(table)
    table.append([{"id": 50, "k": "z"}])
    distributed_write.commit(table._manifest, job, [report])
    assert ids(table) == [1, 3, 4, 5, 6, 7, 8, 9, 50, 100, 101]


def test_a_row_that_two_tasks_name_goes_once(table: lp.PartitionedTable) -> None:
    job, report = planned(table)
    distributed_write.commit(table._manifest, job, [report, distributed_write.WriteResult(gone=report.gone)])
    assert ids(table) == [1, 3, 4, 5, 6, 7, 8, 9, 100, 101]
    assert table.inspect.snapshots().to_pylist()[-1]["rows_deleted"] == 2


@pytest.mark.parametrize("change", ["append", "delete"])
def test_a_change_of_what_was_read_is_a_conflict(table: lp.PartitionedTable, change: str) -> None:
    job, report = planned(table)
    if change == "append":
        table.append([{"id": 3, "k": "a"}])
    else:
        table.delete("id = 2")
    before = ids(table)
    with pytest.raises(CommitConflictError):
        distributed_write.commit(table._manifest, job, [report])
    assert ids(table) == before
