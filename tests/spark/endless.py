"""A streaming query in a process of its own, to be killed and started again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import lancepart as lp
from tests.spark.elsewhere import BRIEF

DDL = "id long, k int, t string"


def main(kind: str, source: str, root: str, checkpoint: str, sign: str) -> None:
    """Write a stream into a table, on and on, or with the sign ``rest`` what there is and then stop."""
    spark = lp.spark.session("local[2]", **BRIEF)
    writer = stream(spark, kind, source).writeStream.format("lancepart").option("checkpointLocation", checkpoint)
    if sign == "rest":
        query = writer.trigger(availableNow=True).start(root)
    else:
        Path(sign).touch()
        query = writer.trigger(processingTime="0 seconds").start(root)
    query.awaitTermination()
    spark.stop()


def stream(spark: Any, kind: str, source: str) -> Any:
    """Files of JSON, two a batch, or a table, one snapshot a batch."""
    if kind == "files":
        return spark.readStream.schema(DDL).option("maxFilesPerTrigger", 2).json(source)
    return spark.readStream.format("lancepart").option("maxVersionsPerTrigger", 1).load(source)


if __name__ == "__main__":
    main(*sys.argv[1:])
