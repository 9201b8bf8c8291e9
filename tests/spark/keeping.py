"""Upkeep on a Spark of its own, which dies at a chosen step of the driver's or is killed from outside."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancepart as lp
from lancepart.maintain import collect
from lancepart.maintain.local import executor_for
from tests.spark.elsewhere import BRIEF
from tests.support import dying
from tests.transactions import doomed


def compact(root: str, spark: Any) -> None:
    lp.open_table(root).maintenance.compact(spark=spark)


def rewrite(root: str, spark: Any) -> None:
    lp.open_table(root).maintenance.rewrite(spark=spark)


def index(root: str, spark: Any) -> None:
    lp.open_table(root).maintenance.create_index("x", "BTREE", spark=spark)


def expire(root: str, spark: Any) -> None:
    collect.expire(lp.open_table(root)._manifest, timedelta(0), safe_age=timedelta(0), executor=executor_for(spark))


def orphans(root: str, spark: Any) -> None:
    lp.open_table(root).maintenance.remove_orphans(timedelta(hours=1), spark=spark)


def upgrade(root: str, spark: Any) -> None:
    lp.upgrade(root, spark=spark)


ACTIONS: dict[str, Callable[[str, Any], None]] = {
    each.__name__: each for each in (compact, rewrite, index, expire, orphans, upgrade)
}


def main(name: str, root: str, sign: str, kill: str) -> None:
    """Do it once, and tell how many steps the driver took."""
    spark = lp.spark.session("local[2]", **BRIEF)
    spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
    done = dying.arm(doomed.STEPS, dying.Kill(**json.loads(kill)) if kill else None)
    Path(sign).touch()
    ACTIONS[name](root, spark)
    print(f"\n{done[0]}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
