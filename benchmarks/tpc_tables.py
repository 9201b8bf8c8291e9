"""TPC's tables in a Spark session: ours, and Parquet in the ways that Spark has, to be partitioned alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lancepart as lp
from benchmarks.tpc_data import DS, H, generate, tables

OURS, PARQUET, BUCKETED = "lancepart", "Parquet", "bucketed Parquet"
BY_COLUMNS, HIVE = "lancepart by columns", "Hive-partitioned Parquet"
BY_KEYS: Sequence[str] = (OURS, PARQUET, BUCKETED)
HIVE_STYLE: Sequence[str] = (BY_COLUMNS, HIVE)
SIDES = (*BY_KEYS, *HIVE_STYLE)
PEER_OF = {PARQUET: OURS, BUCKETED: OURS, HIVE: BY_COLUMNS}
"""Which of our tables each peer's are compared with."""
BUCKETS: Mapping[str, Mapping[str, tuple[str, int]]] = {
    H: {
        "lineitem": ("l_orderkey", 8),
        "orders": ("o_orderkey", 8),
        "customer": ("c_custkey", 4),
        "part": ("p_partkey", 4),
        "partsupp": ("ps_partkey", 4),
    },
    DS: {
        "store_sales": ("ss_item_sk", 8),
        "store_returns": ("sr_item_sk", 8),
        "catalog_sales": ("cs_item_sk", 8),
        "catalog_returns": ("cr_item_sk", 8),
        "web_sales": ("ws_item_sk", 8),
        "web_returns": ("wr_item_sk", 8),
        "inventory": ("inv_item_sk", 8),
        "item": ("i_item_sk", 8),
    },
}
"""The tables that are bucketed, and by what; the others are small, or are joined by other keys, and are left whole."""
COLUMNS: Mapping[str, Mapping[str, str]] = {
    H: {
        "lineitem": "l_shipmode",
        "orders": "o_orderpriority",
        "customer": "c_mktsegment",
        "part": "p_mfgr",
    },
    DS: {
        "store_sales": "ss_store_sk",
        "catalog_sales": "cs_warehouse_sk",
        "web_sales": "ws_web_site_sk",
        "inventory": "inv_warehouse_sk",
        "item": "i_category",
    },
}
"""The tables that are partitioned by a column's values, and by which; the others are left whole."""


@dataclass
class Suite:
    """The tables of one suite in one session, once a side; a query runs on those that are in use."""

    spark: Any
    name: str
    folder: Path
    queries: Mapping[str, str]
    catalogs: dict[str, str] = field(default_factory=dict)

    def prepare(self, sides: Sequence[str] = BY_KEYS) -> None:
        """Make the tables that are not there yet."""
        keys = {name: f"bucket({count}, {column})" for name, (column, count) in BUCKETS[self.name].items()}
        made = {
            OURS: lambda: self._ours("warehouse", keys),
            PARQUET: self._parquet,
            BUCKETED: self._bucketed,
            BY_COLUMNS: lambda: self._ours("columns", COLUMNS[self.name]),
            HIVE: self._hive,
        }
        for side in sides:
            self.catalogs[side] = made[side]()

    def _ours(self, kind: str, partitions: Mapping[str, str]) -> str:
        root = self.folder / kind
        if not root.exists():
            fill(self.folder, root, partitions)
        catalog = f"lance_{kind}_{self.name}"
        self.spark.conf.set(f"spark.sql.catalog.{catalog}", "io.lancepart.spark.LanceCatalog")
        self.spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", str(root))
        return catalog

    def _parquet(self) -> str:
        database = self._database("plain")
        for name in tables(self.folder):
            self.spark.sql(f"CREATE TABLE {database}.{name} USING parquet LOCATION '{self.folder}/{name}.parquet'")
        return database

    def _bucketed(self) -> str:
        database, folder = self._database("bucketed"), self.folder / "bucketed"
        for name in tables(self.folder):
            frame = self.spark.read.parquet(f"{self.folder}/{name}.parquet")
            column, count = BUCKETS[self.name].get(name, ("", 0))
            if not (folder / name / "_SUCCESS").exists():
                chosen = frame.repartition(count, column) if count else frame.coalesce(1)
                writer = chosen.write.option("path", str(folder / name))
                (writer.bucketBy(count, column) if count else writer).saveAsTable(f"{database}.{name}")
                continue
            columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in frame.schema)
            by = f"CLUSTERED BY ({column}) INTO {count} BUCKETS" if count else ""
            where = f"LOCATION '{folder / name}'"
            self.spark.sql(f"CREATE TABLE {database}.{name} ({columns}) USING parquet {by} {where}")
        return database

    def _hive(self) -> str:
        database, folder = self._database("hive"), self.folder / "hive"
        for name in tables(self.folder):
            frame = self.spark.read.parquet(f"{self.folder}/{name}.parquet")
            column = COLUMNS[self.name].get(name)
            if not (folder / name / "_SUCCESS").exists():
                writer = (frame.repartition(column) if column else frame.coalesce(1)).write
                (writer.partitionBy(column) if column else writer).parquet(str(folder / name))
            columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in frame.schema)
            by = f"PARTITIONED BY ({column})" if column else ""
            self.spark.sql(f"CREATE TABLE {database}.{name} ({columns}) USING parquet {by} LOCATION '{folder / name}'")
            if column:
                self.spark.sql(f"MSCK REPAIR TABLE {database}.{name}")
        return database

    def _database(self, kind: str) -> str:
        database = f"spark_catalog.{kind}_{self.name}"
        self.spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
        self.spark.sql(f"CREATE DATABASE {database} LOCATION '{self.folder}/{kind}_database'")
        return database

    def frame(self, side: str, query: str) -> Any:
        """A query over the tables of one side, planned and not run."""
        self.spark.sql(f"USE {self.catalogs[side]}")
        return self.spark.sql(self.queries[query])

    def rows(self, side: str, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.frame(side, query).collect()]


def fill(folder: Path, root: Path, partitions: Mapping[str, str]) -> None:
    """Append each Parquet file of a folder to a table of a warehouse, partitioned as is said or not at all."""
    made = lp.connect(root)
    for name in tables(folder):
        file = pq.ParquetFile(folder / f"{name}.parquet")
        schema = file.schema_arrow.remove_metadata()
        table = made.create_table(name, schema, [partitions[name]] if name in partitions else [])
        table.append(pa.RecordBatchReader.from_batches(schema, file.iter_batches()))


def opened(spark: Any, name: str, folder: Path, scale: float) -> Suite | None:
    """A suite over the data of a folder, generated if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = generate(folder, scale, name)
    short = name.removeprefix("tpc")
    return texts and Suite(spark, name, folder, {f"{short}{number}": text for number, text in texts.items()})
