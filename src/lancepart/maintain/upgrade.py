"""Upgrading tables of the two older layouts to the current one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lancepart.layout import create, opening
from lancepart.layout.hive_tree import TreeManifest
from lancepart.layout.metadata import DRAFT
from lancepart.maintain import upgrade_draft, upgrade_hive
from lancepart.model.ids import check_path
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root


def upgrade(root: Root, namespace: Sequence[str] = (), *, spark: Any = None, remove_old: bool = False) -> Manifest:
    """Turn a table into the current layout, going on where an upgrade that was killed came to; its manifest.

    A table that has the current layout already is left alone, but for what an earlier upgrade left to be done.
    """
    path = check_path(namespace, what="namespace", root_allowed=True)
    found = opening.find(root, path)
    if isinstance(found, TreeManifest):
        manifest = upgrade_hive.upgrade(found, spark=spark)
    else:
        manifest = found
        if create.load(found, found.snapshot()).layout == DRAFT:
            upgrade_draft.upgrade(found, spark=spark)
    upgrade_draft.settle(manifest)
    upgrade_hive.tidy(manifest)
    if remove_old:
        upgrade_hive.remove_old(root, path)
    return manifest
