"""Staged and finished manifests of table versions, and the rows that point at them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlparse

from lance_namespace import CreateTableVersionEntry, CreateTableVersionRequest
from lance_namespace_urllib3_client.models import TableVersion

from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    InternalError,
    InvalidInputError,
    TableVersionAlreadyExistsError,
)
from lancepart.format.names import (
    E_TAG,
    MANIFEST_PATH,
    MANIFEST_SIZE,
    NAMING_SCHEME,
    READ_VERSION,
    STAGED_AS,
    TIMESTAMP_MILLIS,
    VERSION_METADATA,
)
from lancepart.format.rows import staged_row
from lancepart.model.aliases import JsonObject
from lancepart.model.versions import DIRECTORY, NamingScheme, version_of
from lancepart.storage.files import FileInfo
from lancepart.storage.manifest_rows import Row, RowUpdate, metadata_update, now


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedVersion:
    """A manifest that waits to become a version; ``name`` is its file in the table's ``_versions``."""

    table: Located
    version: int
    name: str
    scheme: NamingScheme
    size: int | None = None
    metadata: dict[str, str] | None = None

    @property
    def row_id(self) -> str:
        """The version's key in the manifest."""
        return f"{self.table.identifier}${self.version}"

    @property
    def path(self) -> str:
        """Where the staged manifest is, beneath the root."""
        return f"{self.table.location}/{DIRECTORY}/{self.name}"

    @property
    def final_path(self) -> str:
        """The final path of the manifest."""
        return f"{self.table.location}/{DIRECTORY}/{self.scheme.file_name(self.version)}"

    def row(self) -> Row:
        """The row that commits the version, pointing at the staged manifest."""
        stamp = now()
        details: JsonObject = {
            MANIFEST_PATH: self.path,
            STAGED_AS: self.name,
            MANIFEST_SIZE: self.size,
            NAMING_SCHEME: self.scheme.value,
            TIMESTAMP_MILLIS: int(stamp.timestamp() * 1000),
            VERSION_METADATA: self.metadata,
        }
        return staged_row(self.row_id, {key: value for key, value in details.items() if value is not None}, stamp)


def read(
    catalog: Catalog, table: Located, request: CreateTableVersionRequest | CreateTableVersionEntry
) -> StagedVersion:
    """What a request stages, checked: it must lie in the table's own ``_versions``, and be there."""
    if request.version is None or request.version < 1:
        raise InvalidInputError(f"version {request.version} of table {shown(table.path)}: versions start at 1")
    name = _name_in(table, request.manifest_path)
    scheme = (
        NamingScheme.parse(request.naming_scheme)
        if request.naming_scheme
        else NamingScheme.of_file(name) or _scheme_in_use(catalog, table)
    )
    staged = StagedVersion(
        table=table,
        version=request.version,
        name=name,
        scheme=scheme,
        size=request.manifest_size,
        metadata=dict(request.metadata) if request.metadata else None,
    )
    if staged.path == staged.final_path:
        raise InvalidInputError(
            f"manifest path {request.manifest_path!r} is the final one: stage it under another name"
        )
    if not catalog.files.exists(staged.path) and not _is_done(catalog, staged):
        raise InvalidInputError(f"there is no staged manifest at {request.manifest_path!r}")
    return staged


def _is_done(catalog: Catalog, staged: StagedVersion) -> bool:
    """Whether the version is finished already, so that the answer is 'exists', not 'nothing staged'."""
    return catalog.files.exists(staged.final_path)


def _name_in(table: Located, manifest_path: str) -> str:
    text = manifest_path or ""
    path = unquote(urlparse(text).path) if "://" in text else text
    prefix = f"{table.location}/{DIRECTORY}/"
    parts = path.split("/")
    name = parts[-1]
    inside = path == prefix + name or path.endswith("/" + prefix + name)
    if not inside or not name or name in (".", "..") or ".." in parts:
        raise InvalidInputError(f"manifest path {manifest_path!r} is not in {prefix!r} of table {shown(table.path)}")
    return name


def _scheme_in_use(catalog: Catalog, table: Located) -> NamingScheme:
    schemes = {NamingScheme.of_file(_base(info)) for info in _listed(catalog, table)} - {None}
    return NamingScheme.V1 if schemes == {NamingScheme.V1} else NamingScheme.V2


def finalize_new(catalog: Catalog, staged: StagedVersion) -> TableVersion:
    """Copy a staged manifest to its final place if no version is there, and remove the staged one."""
    message = f"version {staged.version} of table {shown(staged.table.path)} already exists"
    if any(item.version == staged.version for item in files(catalog, staged.table)):
        raise TableVersionAlreadyExistsError(message)
    content = catalog.files.read(staged.path)
    if not catalog.files.put_new(staged.final_path, content) and catalog.files.read(staged.final_path) != content:
        raise ConcurrentModificationError(message)
    final = _finished(catalog, staged)
    discard(catalog, staged)
    return final


def copy_to_final(catalog: Catalog, staged: StagedVersion) -> TableVersion:
    """Copy a committed version's manifest to its final place; done twice, it is the same."""
    try:
        catalog.files.put_new(staged.final_path, catalog.files.read(staged.path))
    except FileNotFoundError:
        if not catalog.files.exists(staged.final_path):
            raise InternalError(
                f"version {staged.version} of table {shown(staged.table.path)} is committed, but neither its staged "
                f"manifest {staged.path!r} nor its final one is there"
            ) from None
    return _finished(catalog, staged)


def discard(catalog: Catalog, staged: StagedVersion) -> None:
    """Remove a staged manifest that is finished."""
    catalog.files.delete(staged.path)


def _finished(catalog: Catalog, staged: StagedVersion) -> TableVersion:
    name = staged.scheme.file_name(staged.version)
    info = next((item for item in _listed(catalog, staged.table) if _base(item) == name), None)
    if info is None:
        raise InternalError(f"the manifest {staged.final_path!r} is gone")
    version = _of_file(catalog, info, staged.version)
    version.metadata = staged.metadata
    return version


def files(catalog: Catalog, table: Located) -> list[TableVersion]:
    """The versions that have a finished manifest in ``_versions``."""
    numbered = [(info, version_of(_base(info))) for info in _listed(catalog, table)]
    return [_of_file(catalog, info, version) for info, version in numbered if version is not None]


def delete_files(catalog: Catalog, table: Located, numbers: Iterable[int]) -> None:
    """Delete the manifests of versions, whatever their naming."""
    wanted = set(numbers)
    for info in _listed(catalog, table):
        if version_of(_base(info)) in wanted:
            catalog.files.delete(info.path)


def _listed(catalog: Catalog, table: Located) -> tuple[FileInfo, ...]:
    return catalog.files.children(f"{table.location}/{DIRECTORY}")[1]


def _base(info: FileInfo) -> str:
    return info.path.rsplit("/", 1)[-1]


def _of_file(catalog: Catalog, info: FileInfo, version: int) -> TableVersion:
    return TableVersion(
        version=version,
        manifest_path=store_path(catalog, info.path),
        manifest_size=info.size,
        e_tag=info.e_tag,
        timestamp_millis=int(info.modified.timestamp() * 1000),
    )


def store_path(catalog: Catalog, path: str) -> str:
    """A path as pylance's object store knows it: from the top of the disk or bucket, with no slash before it."""
    root = catalog.root.uri if catalog.root.is_local else unquote(urlparse(catalog.root.uri).path)
    return f"{root.strip('/')}/{path}".lstrip("/")


def number(row: Row) -> int:
    """The version that a row refers to."""
    return int(row.object_id.rsplit("$", 1)[-1])


def is_final(row: Row) -> bool:
    """Whether a version's row points at a finished manifest."""
    path = (row.metadata or {}).get(MANIFEST_PATH)
    return path is None or version_of(str(path).rsplit("/", 1)[-1]) is not None


def of_staged_row(table: Located, row: Row, version: int) -> StagedVersion:
    """What a row that was never finished points at."""
    details = row.metadata or {}
    name = _name_in(table, details[MANIFEST_PATH])
    scheme = details.get(NAMING_SCHEME)
    return StagedVersion(
        table=table,
        version=version,
        name=name,
        scheme=NamingScheme.parse(scheme) if scheme else NamingScheme.of_file(name) or NamingScheme.V2,
        size=details.get(MANIFEST_SIZE),
        metadata=details.get(VERSION_METADATA),
    )


def of_row(catalog: Catalog, table: Located, row: Row) -> TableVersion:
    """What a finished version's row says; one that a transaction published is in a detached manifest."""
    details = row.metadata or {}
    path = details.get(MANIFEST_PATH) or f"{table.location}/{DIRECTORY}/{_published_name(row)}"
    kept = details.get(VERSION_METADATA)
    return TableVersion(
        version=number(row),
        manifest_path=store_path(catalog, path),
        manifest_size=details.get(MANIFEST_SIZE),
        e_tag=details.get(E_TAG),
        timestamp_millis=details.get(TIMESTAMP_MILLIS) or _millis(row),
        metadata=kept if isinstance(kept, dict) else None,
    )


def _published_name(row: Row) -> str:
    version = row.columns.get(READ_VERSION.name)
    if version is None:
        return NamingScheme.V2.file_name(number(row))
    return f"d{version}.manifest" if int(version) >> 63 else NamingScheme.V2.file_name(int(version))


def _millis(row: Row) -> int | None:
    return None if row.created_at is None else int(row.created_at.timestamp() * 1000)


def pointer(row: Row, staged: StagedVersion, final: TableVersion) -> RowUpdate:
    """The update that points a version's row at its finished manifest."""
    details = dict(row.metadata or {})
    details |= {MANIFEST_PATH: staged.final_path, MANIFEST_SIZE: final.manifest_size}
    if final.e_tag:
        details[E_TAG] = final.e_tag
    return metadata_update(row.object_id, details)
