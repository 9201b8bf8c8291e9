"""Names for snapshots."""

from __future__ import annotations

from lancepart.storage import history
from lancepart.storage.manifest import Manifest


class Tags:
    """The named snapshots of a table."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def create(self, name: str, version: int) -> None:
        """Name a snapshot; a named one does not expire."""
        history.create_tag(self._manifest, name, version)

    def delete(self, name: str) -> None:
        """Take a name away."""
        history.delete_tag(self._manifest, name)

    def list(self) -> dict[str, int]:
        """The names and their snapshots."""
        return history.tags(self._manifest)
