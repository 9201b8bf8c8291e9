"""Giving up leaves whose files are gone or damaged, so that the rest of the table can be read as a whole."""

from __future__ import annotations

from collections.abc import Collection

from lancepart.maintain.inspect import Inspect
from lancepart.maintain.leaf_maintenance import MaintenanceResult, strong
from lancepart.storage.manifest import Manifest

REPAIR = "repair"


def repair(manifest: Manifest, *, leaves: Collection[str] | None = None, dry_run: bool = False) -> MaintenanceResult:
    """Empty the leaves that can't be read, in one commit; their rows are lost, older snapshots stay as they are.

    A leaf that somebody writes to meanwhile is a conflict. ``leaves`` are the ids of those that may be emptied.
    """
    transaction = strong(manifest, REPAIR)
    broken = Inspect(manifest, transaction.snapshot.version).broken().column("object_id").to_pylist()
    lost = tuple(sorted(each for each in broken if leaves is None or each in leaves))
    if dry_run or not lost:
        return MaintenanceResult(action=REPAIR, skipped=lost)
    wanted = set(lost)
    for leaf in transaction.plan(None).leaves:
        if leaf.object_id in wanted:
            transaction.work_on(leaf).replace()
    return MaintenanceResult(action=REPAIR, changed=len(lost), version=transaction.commit())
