"""Maintenance of ``__manifest`` itself, so that the cost of a commit does not grow with their number."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import lance
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionOptions

from lancepart.errors import LanceNamespaceError
from lancepart.format.names import BASE_OBJECTS, OBJECT_ID, OBJECT_TYPE, PARTITION_PREFIX
from lancepart.storage.translate import storage_errors

if TYPE_CHECKING:
    from lancepart.storage.manifest import Manifest
    from lancepart.storage.root import Root

INDICES: dict[str, Literal["BTREE", "BITMAP", "LABEL_LIST"]] = {
    OBJECT_ID: "BTREE",
    OBJECT_TYPE: "BITMAP",
    BASE_OBJECTS: "LABEL_LIST",
}
MANY_ROWS = 10_000
EVERY = 8
FRAGMENTS = 8
NEWEST_LEFT_ALONE = 1
INDEX_EVERY = 128
CLEAN_EVERY = 512
KEEP = timedelta(days=1)

_log = logging.getLogger(__name__)


def create_indices(handle: lance.LanceDataset, *, many: int = MANY_ROWS) -> None:
    """Build those indices that are missing: the catalog document's three, and one a partition field for many rows."""
    wanted = dict(INDICES)
    if handle.count_rows() >= many:
        wanted |= {name: "BTREE" for name in handle.schema.names if name.startswith(PARTITION_PREFIX)}
    present = {column for index in handle.describe_indices() for column in index.field_names}
    for column, kind in wanted.items():
        if column not in present and column in handle.schema.names:
            handle.create_scalar_index(column, kind, replace=False)


def index_others(handle: lance.LanceDataset, root: Root) -> None:
    """Build the indices on a manifest that another writer made without them; what fails is left for later."""
    try:
        with storage_errors("index __manifest", root):
            create_indices(handle)
    except (LanceNamespaceError, OSError) as error:
        _log.debug("indices of __manifest are left to a later commit: %s", error)


def drop_indices(handle: lance.LanceDataset, columns: Collection[str]) -> None:
    """Take the indices off some columns, which can't get another type while they have one."""
    for found in handle.describe_indices():
        if not set(columns).isdisjoint(found.field_names):
            handle.drop_index(found.name)


def after_commit(manifest: Manifest, version: int, *, written: int = 0) -> None:
    """Run the maintenance that is due at this version, or after that many new rows.

    The writer that commits this version does it, and may leave it to a later one.
    """
    unindexed = version % INDEX_EVERY == 0 or written >= MANY_ROWS
    if version % EVERY and not unindexed:
        return
    try:
        with storage_errors("keep up __manifest", manifest.root):
            compact(manifest)
            if unindexed:
                index(manifest)
            if version % CLEAN_EVERY == 0:
                clean(manifest)
    except (LanceNamespaceError, OSError) as error:
        _log.debug("upkeep of __manifest is left to a later commit: %s", error)


def compact(manifest: Manifest) -> bool:
    """Put small fragments together, the newest ones apart, where other writers are at work."""
    snapshot = manifest.snapshot()
    handle = snapshot.own_handle()
    if handle is None:
        return False
    fragments = sorted(fragment.fragment_id for fragment in handle.get_fragments())
    if len(fragments) < FRAGMENTS:
        return False
    options = CompactionOptions(
        excluded_fragment_ids=fragments[-NEWEST_LEFT_ALONE:], num_threads=1, target_rows_per_fragment=1024 * 1024
    )
    plan = Compaction.plan(handle, options)
    if not plan.num_tasks():
        return False
    Compaction.commit(handle, [task.execute(handle) for task in plan.tasks])
    if snapshot.handle is not None and _has_the_same_rows(snapshot.handle, handle):
        manifest.rearranged(snapshot, handle)
    return True


def _has_the_same_rows(before: lance.LanceDataset, after: lance.LanceDataset) -> bool:
    """Whether each version since was one of a compaction: it takes numbers for its fragments, then puts them in."""
    for version in range(before.version + 1, after.version + 1):
        transaction = after.read_transaction(version)
        if transaction is not None and isinstance(transaction.operation, lance.LanceOperation.Rewrite):
            continue
        between = after.checkout_version(version)
        if _fragments(between) != _fragments(before) or between.metadata != before.metadata:
            return False
    return True


def _fragments(handle: lance.LanceDataset) -> list[FragmentMetadata]:
    return [fragment.metadata for fragment in handle.get_fragments()]


def index(manifest: Manifest, *, many: int = MANY_ROWS) -> None:
    """Extend the indices to rows added since, and rebuild those that another client dropped."""
    handle = manifest.snapshot().own_handle()
    if handle is not None:
        create_indices(handle, many=many)
        handle.optimize.optimize_indices()


def clean(manifest: Manifest) -> None:
    """Remove old versions, never on a partitioned namespace, whose snapshots they are.

    Conflicts are found by reading the commits since a snapshot, so all that a writer may still start from is kept:
    a publish refuses snapshots that are a few minutes old, and those of a day are kept here.
    """
    snapshot = manifest.snapshot()
    if snapshot.handle is None or any(key.startswith("partition_spec_v") for key in snapshot.properties):
        return
    snapshot.handle.cleanup_old_versions(older_than=KEEP)
