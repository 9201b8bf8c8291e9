"""Tags: names for snapshots."""

from __future__ import annotations

from lancepart.errors import InvalidInputError, TableVersionNotFoundError
from lancepart.format.names import OWN
from lancepart.layout.layouts import refuse_past
from lancepart.model.html_text import html_table
from lancepart.model.snapshot_text import is_number
from lancepart.storage import history
from lancepart.storage.manifest import Manifest


def hold(manifest: Manifest, name: str, version: int) -> None:
    """Tag a snapshot, unless it is being expired: an expiry whose mark was written later keeps all that it reads."""
    others = _names_of(manifest, version)
    history.create_tag(manifest, name, version)
    snapshot = manifest.snapshot()
    protected = others & _names_of(manifest, version)
    if not protected and version < history.oldest(snapshot):
        history.delete_tag(manifest, name)
        raise TableVersionNotFoundError(f"snapshot {version} is expiring")


def _names_of(manifest: Manifest, version: int) -> set[str]:
    """The names that a snapshot has; one that it has all the while keeps its files."""
    return {name for name, named in history.tags(manifest).items() if named == version}


class Tags:
    """The named snapshots of a table; what lancepart itself holds on to, such as published unions, is not shown."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def _repr_html_(self) -> str:
        return html_table(["tag", "snapshot"], [[name, str(version)] for name, version in self.list().items()])

    def create(self, name: str, version: int) -> None:
        """Name a snapshot; a named one does not expire."""
        target = history.required(self._manifest, version)
        refuse_past(target)
        _refuse_own(name)
        if is_number(name):
            raise InvalidInputError(
                f"tag {name!r} would be taken for a snapshot's number: use another, such as 'v{name}'"
            )
        hold(self._manifest, name, target.version)

    def delete(self, name: str) -> None:
        """Take a name away."""
        _refuse_own(name)
        history.delete_tag(self._manifest, name)

    def list(self) -> dict[str, int]:
        """The names and their snapshots."""
        return {name: version for name, version in history.tags(self._manifest).items() if not name.startswith(OWN)}


def _refuse_own(name: str) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"tag {name!r}: give a name, a text that is not empty")
    if name.startswith(OWN):
        raise InvalidInputError(f"tag {name!r}: names that begin with {OWN!r} are lancepart's own")
