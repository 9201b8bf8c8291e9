"""Upgrading tables of the two older layouts to the current one."""

from __future__ import annotations

from collections.abc import Sequence

from lancepart.layout import opening
from lancepart.layout.layouts import capabilities
from lancepart.layout.table_manifest import catalog_of, load, tree_of
from lancepart.maintain import upgrade_draft, upgrade_hive
from lancepart.maintain.local import LOCAL
from lancepart.model.ids import check_path
from lancepart.read.engine import Executor
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root


def upgrade(
    root: Root, namespace: Sequence[str] = (), *, executor: Executor = LOCAL, remove_old: bool = False
) -> Manifest:
    """Upgrade a table to the current layout, resuming an upgrade that was killed; returns its manifest.

    A table in the current layout is only cleaned of what an earlier upgrade left.
    """
    path = check_path(namespace, what="namespace", root_allowed=True)
    found = opening.find(root, path)
    manifest, tree = catalog_of(found), tree_of(found)
    if tree is not None:
        manifest = upgrade_hive.upgrade(tree, executor=executor)
    elif not capabilities(load(found)).version_rows:
        upgrade_draft.upgrade(manifest, executor=executor)
    upgrade_draft.settle(manifest)
    upgrade_hive.tidy(manifest)
    if remove_old:
        upgrade_hive.remove_old(root, path)
    return manifest
