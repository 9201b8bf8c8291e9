"""Names for snapshots."""

from __future__ import annotations

from lancepart.commit import manifest_changes
from lancepart.errors import TableVersionNotFoundError
from lancepart.layout import create
from lancepart.layout.layouts import refuse_past
from lancepart.storage import history
from lancepart.storage.manifest import Manifest


class Tags:
    """The named snapshots of a table."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def create(self, name: str, version: int) -> None:
        """Name a snapshot; a named one does not expire."""
        target = history.required(self._manifest, version)
        refuse_past(target)
        version = target.version
        others = self._names_of(version)
        history.create_tag(self._manifest, name, version)
        snapshot = self._manifest.snapshot()
        protected = others & self._names_of(version)
        if not protected and version < manifest_changes.oldest(snapshot, create.load(self._manifest, snapshot)):
            history.delete_tag(self._manifest, name)
            raise TableVersionNotFoundError(f"snapshot {version} is expiring")

    def _names_of(self, version: int) -> set[str]:
        """The names that a snapshot has; one that it has all the while keeps its files."""
        return {name for name, named in self.list().items() if named == version}

    def delete(self, name: str) -> None:
        """Take a name away."""
        history.delete_tag(self._manifest, name)

    def list(self) -> dict[str, int]:
        """The names and their snapshots."""
        return history.tags(self._manifest)
