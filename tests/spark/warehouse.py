"""A warehouse for the tests of Spark SQL, and a Parquet table beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lancepart as lp

ROWS = "(1, 'US', TIMESTAMP '2024-05-01 10:00:00', 'alpha'), (2, 'FR', TIMESTAMP '2025-06-01 10:00:00', 'alpine'), \
(3, 'US', TIMESTAMP '2025-07-01 10:00:00', NULL), (4, NULL, NULL, 'beta')"
COLUMNS = "id BIGINT, country STRING, ts TIMESTAMP, s STRING"
BY = "years(ts), bucket(16, id), truncate(3, s), country"
CATALOG = "wh"
PARQUET = "spark_catalog.default.p"


@dataclass
class Sql:
    """A catalog over a fresh warehouse, and a Parquet table of the session beside."""

    spark: Any
    root: str

    def __call__(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(text.replace("@", self.name)).collect()]

    @property
    def name(self) -> str:
        return CATALOG + "_" + str(abs(hash(self.root)))

    def rows(self, table: str) -> Counter[Any]:
        return Counter(self(f"SELECT * FROM {table}"))

    def both(self, statement: str) -> None:
        """Run a statement on the table and on its like in Parquet, and compare them."""
        self(statement.replace("#", "@.ns.t"))
        self(statement.replace("#", PARQUET))
        assert self.rows("@.ns.t") == self.rows(f"(SELECT id, country, ts, s FROM {PARQUET})")

    def table(self, *path: str) -> lp.PartitionedTable:
        return lp.open_table(self.root, namespace=path)

    @property
    def directories(self) -> int:
        """How many tables have files."""
        return len([each for each in Path(self.root).iterdir() if each.name != "__manifest"])


def warehouse(spark: Any, root: str) -> Sql:
    """A catalog over a fresh warehouse, with one namespace."""
    made = Sql(spark, root)
    spark.conf.set(f"spark.sql.catalog.{made.name}", "io.lancepart.spark.LanceCatalog")
    spark.conf.set(f"spark.sql.catalog.{made.name}.warehouse", made.root)
    made("CREATE NAMESPACE @.ns")
    return made


def filled(sql: Sql, parquet: Path) -> Iterator[Sql]:
    """The same rows in a table of the warehouse and in Parquet."""
    sql(f"CREATE TABLE @.ns.t ({COLUMNS}) PARTITIONED BY ({BY})")
    sql(f"DROP TABLE IF EXISTS {PARQUET}")
    sql(f"CREATE TABLE {PARQUET} ({COLUMNS}) USING parquet PARTITIONED BY (country) LOCATION '{parquet}'")
    sql(f"INSERT INTO @.ns.t VALUES {ROWS}")
    sql(f"INSERT INTO {PARQUET} (id, country, ts, s) VALUES {ROWS}")
    yield sql
    sql(f"DROP TABLE IF EXISTS {PARQUET}")
