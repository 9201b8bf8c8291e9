"""Ray reads a partitioned table: as Arrow, as a dataset of pyarrow, and in tasks that get the table itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancepart as lp

ray = pytest.importorskip("ray", reason="Ray is among the requirements of `make test-rest` only")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def started() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    yield
    ray.shutdown()


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    rows = pa.table({"id": range(400), "country": ["US", "FR", "DE", "IT"] * 100})
    return lp.create_table_from(tmp_path / "t", rows, ["country"])


def test_tasks_get_the_table_and_read_a_partition_each(table: lp.PartitionedTable) -> None:
    @ray.remote
    def total(given: lp.PartitionedTable, country: str) -> int:
        found = given.scan(pc.field("country") == country, ["id"])
        return int(pc.sum(found.to_arrow()["id"]).as_py())

    found = ray.get([total.remote(table, country) for country in ("US", "FR", "DE", "IT")])

    assert found == [sum(range(first, 400, 4)) for first in range(4)]


def test_a_scan_becomes_a_dataset_of_ray(table: lp.PartitionedTable) -> None:
    data = pytest.importorskip("ray.data")
    made: Any = data.from_arrow(table.to_dataset().to_table(filter=pc.field("country") == "FR"))

    assert made.count() == 100
    assert made.sum("id") == sum(range(1, 400, 4))
