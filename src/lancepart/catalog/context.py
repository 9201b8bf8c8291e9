"""State shared by all operations of the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancepart.errors import (
    InvalidInputError,
    NamespaceNotFoundError,
    UnsupportedOperationError,
)
from lancepart.model.aliases import JsonMapping
from lancepart.model.ids import object_id
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import NAMESPACE, Row
from lancepart.storage.occupied import stranger_in_catalog
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

VERSION_MANAGEMENT = "table_version_management"

_STORAGE_PREFIX = "storage."
_SWITCHES = {"manifest_enabled", "dir_listing_enabled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """A directory namespace's root and which of its two ways, listing and manifest, are on."""

    root: Root
    files: Files
    manifest: Manifest
    manifest_enabled: bool
    dir_listing_enabled: bool

    @classmethod
    def of(cls, properties: JsonMapping) -> Catalog:
        """Read the properties of a namespace, as strings or as their values; touches no storage."""
        unknown = [key for key in properties if key not in {"root", *_SWITCHES} and not key.startswith(_STORAGE_PREFIX)]
        if unknown:
            raise InvalidInputError(
                f"unknown propert{'ies' if len(unknown) > 1 else 'y'} {', '.join(map(repr, unknown))}: "
                "use root, manifest_enabled, dir_listing_enabled or storage.<option>"
            )
        if properties.get("root") is None:
            raise InvalidInputError(
                "the property 'root' is missing: give a local path or a URI such as s3://bucket/prefix"
            )
        options = {
            key.removeprefix(_STORAGE_PREFIX): str(value)
            for key, value in properties.items()
            if key.startswith(_STORAGE_PREFIX)
        }
        manifest, listing = (_switch(properties, name) for name in ("manifest_enabled", "dir_listing_enabled"))
        if not manifest and not listing:
            raise InvalidInputError("manifest_enabled and dir_listing_enabled are both false: turn one on")
        root = Root.parse(properties["root"], options)
        return cls(
            root=root,
            files=Files(root),
            manifest=Manifest(root),
            manifest_enabled=manifest,
            dir_listing_enabled=listing,
        )

    def snapshot(self) -> Snapshot:
        """The manifest as it is now; an empty one where the manifest is off."""
        return self.manifest.snapshot() if self.manifest_enabled else Snapshot(None, self.root)

    def require_place(self, snapshot: Snapshot) -> None:
        """Refuse to make the first object of a catalog in a directory that holds something else."""
        stranger = None if snapshot.handle is not None else stranger_in_catalog(self.root)
        if stranger is not None:
            raise InvalidInputError(
                f"{self.root.uri!r} can't hold a catalog: there is {stranger!r}, which belongs to no table of a "
                "catalog; give a directory of its own"
            )

    def require_manifest(self, operation: str) -> None:
        """Refuse what only the manifest can do."""
        if not self.manifest_enabled:
            raise UnsupportedOperationError(
                f"{operation} needs the manifest: it is not supported with manifest_enabled=false"
            )

    def require_namespace(self, snapshot: Snapshot, path: Sequence[str]) -> Row | None:
        """The row of a namespace, ``None`` for the root, or NamespaceNotFound."""
        if not path:
            return None
        row = snapshot.row(object_id(path))
        if row is None or row.object_type != NAMESPACE:
            raise NamespaceNotFoundError(f"namespace {shown(path)} does not exist")
        return row

    def versions_managed(self, snapshot: Snapshot) -> bool:
        """Whether table versions are committed through the manifest."""
        return self.manifest_enabled and snapshot.properties.get(VERSION_MANAGEMENT, "").lower() == "true"

    def uses_v1_name(self, path: Sequence[str]) -> bool:
        """Whether a table's directory is ``<name>.lance``, for clients that only list directories."""
        return self.dir_listing_enabled and len(path) == 1


def shown(path: Sequence[str]) -> str:
    """A path as an error message shows it.

    >>> shown(["prod", "users"])
    "'prod$users'"
    """
    return repr(object_id(path)) if path else "the root"


def _switch(properties: JsonMapping, name: str) -> bool:
    value = properties.get(name, True)
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidInputError(f"the property {name!r} is {value!r}: say true or false")
    return text == "true"
