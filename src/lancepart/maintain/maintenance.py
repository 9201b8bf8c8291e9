"""``table.maintenance``: the maintenance operations of a table."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lancepart.maintain import collect, index_upkeep, leaf_maintenance, repair
from lancepart.maintain.leaf_maintenance import MaintenanceResult
from lancepart.maintain.local import executor_for
from lancepart.model.aliases import IndexKind, IndexScope, Value
from lancepart.model.public import html_calls, public_names
from lancepart.storage.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Maintenance:
    """Upkeep of one table; each call can be killed and run again, and is safe beside writers.

    With ``spark`` the executors do the work, and what they did is one commit.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def __repr__(self) -> str:
        calls = ", ".join(f"{name}()" for name in public_names(Maintenance))
        return f"Maintenance({self._manifest.root.uri!r}): {calls}"

    def _repr_html_(self) -> str:
        return html_calls(self, f"{self._manifest.root.uri}: upkeep")

    def compact(
        self,
        *,
        target_rows: int = leaf_maintenance.TARGET_ROWS,
        spark: SparkSession | None = None,
        progress: bool = True,
    ) -> MaintenanceResult:
        """Merge small fragments and drop deleted rows; indices get parts over the rows that moved."""
        return index_upkeep.compact(
            self._manifest, target_rows=target_rows, executor=executor_for(spark), progress=progress
        )

    def rewrite(
        self, where: str | None = None, *, spark: SparkSession | None = None, progress: bool = True
    ) -> MaintenanceResult:
        """Move rows that older specs placed into the partitions of the newest."""
        return leaf_maintenance.rewrite(self._manifest, where, executor=executor_for(spark), progress=progress)

    def expire(
        self, older_than: timedelta | datetime, *, spark: SparkSession | None = None, progress: bool = True
    ) -> MaintenanceResult:
        """Forget snapshots older than that, and remove what no kept one needs; the last hour always stays."""
        return collect.expire(self._manifest, older_than, executor=executor_for(spark), progress=progress)

    def remove_orphans(
        self,
        older_than: timedelta | datetime,
        dry_run: bool = False,
        *,
        spark: SparkSession | None = None,
        progress: bool = True,
    ) -> MaintenanceResult:
        """Remove files that failed writers left; ``older_than`` must be longer than the longest write."""
        return collect.remove_orphans(
            self._manifest, older_than, dry_run=dry_run, executor=executor_for(spark), progress=progress
        )

    def create_index(
        self,
        column: str,
        kind: IndexKind | None = None,
        *,
        scope: IndexScope = "auto",
        where: str | None = None,
        name: str | None = None,
        spark: SparkSession | None = None,
        progress: bool = True,
        **params: Value,
    ) -> MaintenanceResult:
        """Build an index and declare it, in one commit; ``where`` says in which partitions, all unless given.

        Small partitions go without one where that is faster; partitions made later get theirs by ``optimize_indices``.
        """
        return index_upkeep.create_index(
            self._manifest,
            column,
            kind,
            scope=scope,
            where=where,
            name=name,
            executor=executor_for(spark),
            progress=progress,
            params=params,
        )

    def optimize_indices(self, *, spark: SparkSession | None = None, progress: bool = True) -> MaintenanceResult:
        """Extend indices to rows and partitions added since they were built."""
        return index_upkeep.optimize_indices(self._manifest, executor=executor_for(spark), progress=progress)

    def drop_index(self, name: str, *, spark: SparkSession | None = None, progress: bool = True) -> MaintenanceResult:
        """Remove an index from all partitions, and declare it no longer."""
        return index_upkeep.drop_index(self._manifest, name, executor=executor_for(spark), progress=progress)

    def repair(self, leaves: Collection[str] | None = None, *, dry_run: bool = False) -> MaintenanceResult:
        """Empty the partitions whose files are gone or damaged, in one commit; ``dry_run`` only lists their leaves.

        Their rows are lost: bring files back from a backup first if there is one, or use ``rollback``. With the ids of
        ``leaves`` no other is emptied.
        """
        return repair.repair(self._manifest, leaves=leaves, dry_run=dry_run)

    def rollback(
        self, version: int | str | datetime, *, spark: SparkSession | None = None, progress: bool = True
    ) -> int | None:
        """Bring back the rows of an older snapshot, as a new one."""
        return leaf_maintenance.rollback(self._manifest, version, executor=executor_for(spark), progress=progress)
