"""The upkeep that a table's owner asks for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lancepart.errors import UnsupportedOperationError
from lancepart.maintain import collect, upkeep
from lancepart.maintain.upkeep import Report
from lancepart.storage.manifest import Manifest


class Maintenance:
    """Upkeep of one table; each call can be killed and run again, and is safe beside writers."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def compact(self, *, target_rows: int = upkeep.TARGET_ROWS, spark: Any = None, progress: bool = True) -> Report:
        """Put small fragments together and drop deleted rows; indices are built anew where rows moved."""
        _refuse(spark)
        return upkeep.compact(self._manifest, target_rows=target_rows, progress=progress)

    def rewrite(self, where: str | None = None, *, spark: Any = None, progress: bool = True) -> Report:
        """Move rows that older specs placed into the partitions of the newest."""
        _refuse(spark)
        return upkeep.rewrite(self._manifest, where, progress=progress)

    def expire(self, older_than: timedelta | datetime, *, spark: Any = None, progress: bool = True) -> Report:
        """Forget snapshots older than that, and remove what no kept one needs; the last hour always stays."""
        _refuse(spark)
        return collect.expire(self._manifest, older_than, progress=progress)

    def remove_orphans(
        self, older_than: timedelta | datetime, dry_run: bool = False, *, spark: Any = None, progress: bool = True
    ) -> Report:
        """Remove files that failed writers left; ``older_than`` must be longer than the longest write."""
        _refuse(spark)
        return collect.remove_orphans(self._manifest, older_than, dry_run=dry_run, progress=progress)

    def create_index(
        self,
        column: str,
        kind: str,
        *,
        name: str | None = None,
        spark: Any = None,
        progress: bool = True,
        **params: Any,
    ) -> Report:
        """Build an index in every leaf."""
        _refuse(spark)
        return upkeep.create_index(self._manifest, column, kind, name=name, progress=progress, **params)

    def rollback(self, version: Any) -> int | None:
        """Bring back the rows of an older snapshot, as a new one."""
        return upkeep.rollback(self._manifest, version)


def _refuse(spark: Any) -> None:
    if spark is not None:
        raise UnsupportedOperationError("upkeep on Spark is not supported yet: leave spark out")
