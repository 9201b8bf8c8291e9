"""The reports of tasks on executors, as JSON: reading one creates only the values that are listed here.

A client of Spark Connect gets reports from its server, and must not run what a server could put into a pickle.
"""

from __future__ import annotations

from lancepart.commit.leaf_writes import Staged
from lancepart.commit.write_job import StagedPartition, WriteResult
from lancepart.maintain.fingerprint import Fingerprint
from lancepart.maintain.leaf_tasks import WayBack
from lancepart.maintain.sweep import Found, Garbage, Removed
from lancepart.maintain.upgrade_copy import CopiedRows, Copy
from lancepart.model.aliases import Value
from lancepart.spark.value_json import ValueJson
from lancepart.storage.leaf_data import Fragments

_REPORTS = ValueJson(
    (
        Copy,
        Fingerprint,
        Found,
        Fragments,
        Garbage,
        CopiedRows,
        Removed,
        Staged,
        StagedPartition,
        WayBack,
        WriteResult,
    ),
    what="what a task reports",
)


def dumps(report: object) -> bytes:
    """A report as JSON.

    >>> loads(dumps((1, None, Fingerprint(2, 3))))
    (1, None, Fingerprint(rows=2, checksum=3))
    """
    return _REPORTS.dumps(report)


def loads(report: bytes) -> Value:
    """A report from its JSON; anything else is refused."""
    return _REPORTS.loads(report)
