"""Which tests each run does: all that are quick, and of the slow ones a sample that is always the same.

``LANCEPART_TORTURE=1`` runs everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from zlib import crc32

ONE_IN = 3
FIRST_ONLY = (
    "test_sql_changes.py",
    "test_sql_rows.py",
    "test_stream.py",
    "test_jobs.py",
    "test_import.py",
    "test_s3.py",
)
LONG_ONLY = ("test_kills.py", "test_stream_kills.py", "test_follow.py", "test_upkeep_kills.py")
SLOW = ("[plain]", "[cluster]", "[jobs.md]", "[streaming.md]")
SAMPLED = (
    "test_layouts.py",
    "test_procedures.py",
    "test_read.py",
    "test_sql.py",
    "test_tasks.py",
    "test_upkeep.py",
    "test_writes.py",
)
ON_SPARK = "tests/spark/"


def left_out(items: Iterable[Any]) -> list[Any]:
    """The tests that are left to long runs: most variants on Spark or S3, and what starts Spark anew."""
    groups: dict[str, list[Any]] = defaultdict(list)
    doomed = []
    for item in items:
        path, _, name = item.nodeid.partition("::")
        file = path.rpartition("/")[2]
        if path.startswith(ON_SPARK) and (file in LONG_ONLY or name.endswith(SLOW)):
            doomed.append(item)
        elif path.startswith(ON_SPARK) and file in FIRST_ONLY:
            groups[path].append(item)
        elif path.startswith(ON_SPARK) and file in SAMPLED:
            groups[f"{path}::"].append(item)
        elif "[" in name and path.startswith(ON_SPARK):
            groups[item.nodeid.partition("[")[0]].append(item)
        elif "[s3" in name or "-s3" in name:
            groups[f"{path}::on S3"].append(item)
    for path, variants in groups.items():
        if path.endswith(".py"):
            doomed += variants[1:]
        else:
            doomed += _unchosen(variants)
    return doomed


def _unchosen(variants: list[Any]) -> list[Any]:
    """All but one in some, and never all: on Spark, where each takes a second, one in twice as many."""
    share = ONE_IN * (2 if "[" in variants[0].nodeid and variants[0].nodeid.startswith(ON_SPARK) else 1)
    some = [item for item in variants if _number(item) % ONE_IN == 0] or variants[:1]
    kept = [item for item in some if _number(item) % share == 0] or some[:1]
    return [item for item in variants if item not in kept]


def _number(item: Any) -> int:
    return crc32(item.nodeid.encode())
