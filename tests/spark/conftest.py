"""One Spark session a test process, and tables with their like in Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lancepart as lp
from tests.spark.data import Pair, make_pairs
from tests.spark.warehouse import Sql, filled, warehouse
from tests.support.processes import TORTURE

CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.ui.showConsoleProgress": "false",
    "spark.lancepart.service.maxIdle": "2",
    "spark.lancepart.inlineBytes": "0",
    "spark.lancepart.narrowedBytes": "0",
}
LOCAL, CLUSTER = "local", "cluster"
MASTERS = {LOCAL: "local[2]", CLUSTER: "local-cluster[2,1,1024]"}
WRITING = (
    "test_sql.py",
    "test_sql_changes.py",
    "test_sql_rows.py",
    "test_stream.py",
    "test_upkeep.py",
    "test_writes.py",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """In long runs do what writes on executors of their own too."""
    if TORTURE and "spark" in metafunc.fixturenames:
        kinds = list(MASTERS) if Path(metafunc.module.__file__ or "").name in WRITING else [LOCAL]
        metafunc.parametrize("spark", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session with two cores, away from UTC."""
    session = lp.spark.session(MASTERS[getattr(request, "param", LOCAL)], **CONF)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def pairs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """Tables of ours beside the same rows in Parquet, and a view of each."""
    made = make_pairs(tmp_path_factory.mktemp("pairs"))
    for name, pair in made.items():
        spark.read.format("lancepart").load(pair.root).createOrReplaceTempView(f"l_{name}")
        spark.read.parquet(pair.parquet).createOrReplaceTempView(f"p_{name}")
    return made


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A place for a table."""
    return str(tmp_path / "table")


@pytest.fixture
def sql(spark: Any, tmp_path: Path) -> Sql:
    """A catalog over a fresh warehouse: ``@`` in a statement stands for its name."""
    return warehouse(spark, str(tmp_path / "warehouse"))


@pytest.fixture
def pair(sql: Sql, tmp_path: Path) -> Iterator[Sql]:
    """A table of a warehouse and its like in Parquet."""
    yield from filled(sql, tmp_path / "parquet")
