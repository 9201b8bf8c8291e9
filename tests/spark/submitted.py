"""What ``spark-submit`` runs: first on a session that knows nothing of lancepart, then on one of lancepart's own."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from pyspark.sql import SparkSession

import lancepart as lp
from lancepart.spark.session_builder import jar


def used(spark: Any, root: str, warehouse: str) -> None:
    """Write, read with a filter that is pushed down, and use the catalog."""
    rows = spark.range(10).selectExpr("id", "id % 2 AS k", "CAST(id AS DECIMAL(9, 2)) AS d")
    rows.write.format("lancepart").option("partition_by", "k").save(root)
    frame = spark.read.format("lancepart").load(root).where("k = 1")
    assert frame.count() == 5
    assert "pushed" in _plan(frame), _plan(frame)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.ns")
    spark.sql("CREATE TABLE lance.ns.t (id BIGINT, k INT) PARTITIONED BY (k)")
    spark.sql("INSERT INTO lance.ns.t VALUES (1, 2)")
    assert spark.table("lance.ns.t").count() == 1
    assert lp.open_table(warehouse, namespace=["ns", "t"]).scan().count() == 1


def _plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def main(folder: str) -> None:
    plain = SparkSession.builder.getOrCreate()
    master = plain.sparkContext.master
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        spark = lp.spark.session(warehouse=f"{folder}/first")
    assert [each for each in told if f"--jars {jar()}" in str(each.message)], told
    assert spark.sparkContext is plain.sparkContext
    used(spark, f"{folder}/t1", f"{folder}/first")
    spark.stop()

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        own = lp.spark.session(warehouse=f"{folder}/second")
    conf = own.sparkContext.getConf()
    assert own.sparkContext.master == master
    assert conf.get("spark.jars").split(",")[-1] == jar()
    assert conf.get("spark.sql.extensions") == "org.example.Absent,io.lancepart.spark.Extensions"
    used(own, f"{folder}/t2", f"{folder}/second")
    print("master", own.sparkContext.master)
    own.stop()


if __name__ == "__main__":
    main(sys.argv[1])
