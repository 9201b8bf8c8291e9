"""Where a snapshot is found again by another process, which has credentials of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lancepart.layout.hive_tree import TreeSnapshot
from lancepart.layout.opening import find
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import is_secret


class SnapshotAddress(NamedTuple):
    """A table's root, the storage options without credentials, the path in a larger catalog, and the version."""

    uri: str
    options: Mapping[str, str]
    namespace: Sequence[str]
    version: int | None

    @classmethod
    def of(cls, root: Root, snapshot: Snapshot) -> SnapshotAddress:
        """The address of a snapshot; a table without snapshots is read as it is."""
        options = public_options(root)
        if isinstance(snapshot, TreeSnapshot):
            return cls(root.uri, options, list(snapshot.namespace), None)
        return cls(root.uri, options, [], snapshot.version)

    def opened(self) -> tuple[Root, Snapshot]:
        """The root and the snapshot."""
        manifest = find(Root.parse(self.uri, self.options), self.namespace)
        return manifest.root, manifest.snapshot(self.version)


def public_options(root: Root) -> dict[str, str]:
    """The storage options of a root that may be stored or sent."""
    return {key: value for key, value in root.storage_options.items() if not is_secret(key)}
