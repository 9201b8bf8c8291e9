"""Finding, listing and describing tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_namespace import (
    DescribeTableRequest,
    DescribeTableResponse,
    ListTablesRequest,
    ListTablesResponse,
    TableExistsRequest,
    TableExistsResponse,
)
from lance_namespace_urllib3_client.models import TableBasicStats

from lancepart.catalog import directories, partitioned, requests
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.properties import as_properties
from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.ids import check_path, object_id
from lancepart.model.schema import schema_to_json
from lancepart.storage.dataset import Dataset, open_dataset, open_managed, table_metadata
from lancepart.storage.manifest_rows import TABLE, TABLE_VERSION, Row
from lancepart.storage.refs import branch_location
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


_STRONG, _WEAK = "strong", "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A table that exists: its location, and its row if the manifest has one.

    ``leaf_of`` is the mode, strong or weak, of the partitioned table that it is a leaf of.
    """

    path: tuple[str, ...]
    location: str
    row: Row | None
    managed: bool = False
    leaf_of: str | None = None

    @property
    def identifier(self) -> str:
        """The table's ``__manifest`` key."""
        return object_id(self.path)

    @property
    def is_published(self) -> bool:
        """Whether it is a leaf of a partitioned table, whose versions that table's transactions publish."""
        return self.leaf_of == _STRONG

    @property
    def properties(self) -> dict[str, str]:
        """The properties that the catalog keeps for the table."""
        return as_properties(self.row.metadata if self.row else None)


def find(catalog: Catalog, snapshot: Snapshot, path: Sequence[str]) -> Located | None:
    """Look a table up: in the manifest first, then, in the root, among the directories."""
    row = snapshot.row(object_id(path)) if catalog.manifest_enabled else None
    if row is not None and row.object_type == TABLE:
        if row.location is None:
            raise InvalidTableStateError(f"table {shown(path)} has no location in __manifest")
        leaf = partitioned.owns(snapshot, path)
        return Located(
            path=tuple(path),
            location=row.location,
            row=row,
            managed=not leaf and catalog.versions_managed(snapshot),
            leaf_of=(_STRONG if partitioned.is_strong(snapshot) else _WEAK) if leaf else None,
        )
    if row is None and catalog.uses_v1_name(path):
        location = directories.v1_location(path[0])
        if directories.exists(catalog, location) and not snapshot.at_locations([location]):
            return Located(path=tuple(path), location=location, row=None)
    return None


def require(catalog: Catalog, snapshot: Snapshot, path: Sequence[str]) -> Located:
    """The table, or TableNotFound, or NamespaceNotFound if not even its namespace exists."""
    located = find(catalog, snapshot, path)
    if located is not None:
        return located
    require_parent(catalog, snapshot, path)
    raise TableNotFoundError(f"table {shown(path)} does not exist")


def is_shared(snapshot: Snapshot, located: Located) -> bool:
    """Whether another table of the manifest is in the same directory, inside or around it, which is then kept."""
    return directories.is_named(snapshot, located.location, besides=located.identifier)


def require_parent(catalog: Catalog, snapshot: Snapshot, path: Sequence[str]) -> tuple[str, ...]:
    """The id of the namespace that a table is in, to be touched by its creation; empty for the root."""
    parent = tuple(path[:-1])
    if parent and not catalog.manifest_enabled:
        raise NamespaceNotFoundError(
            f"namespace {shown(parent)} does not exist: without the manifest there is only the root"
        )
    catalog.require_namespace(snapshot, parent)
    return (object_id(parent),) if parent else ()


def refuse_published(table: Located, call: str, *, weak: bool = False) -> None:
    """Refuse to change a leaf except through its partitioned table; with weak transactions its rows may be changed."""
    if table.is_published or (weak and table.leaf_of is not None):
        raise UnsupportedOperationError(
            f"table {shown(table.path)} is a leaf of a partitioned table: use lancepart.open_table(…).{call} instead"
        )


def locate(catalog: Catalog, request_id: Sequence[str] | None) -> Located:
    """The table that a request names, as of now."""
    return require(catalog, catalog.snapshot(), check_path(request_id, what="table"))


def open_table(
    catalog: Catalog, namespace: LanceNamespace, located: Located, version: int | str | None = None
) -> Dataset:
    """Open a table, through its namespace if that keeps the versions; errors say what is missing."""
    try:
        if located.managed:
            return open_managed(catalog.root, namespace, located.path, version)
        if located.is_published and not isinstance(version, str):
            return _open_leaf(catalog, located, version)
        return open_dataset(catalog.root, located.location, version)
    except (MissingError, FileNotFoundError):
        pass
    if is_declared(catalog, located):
        raise InvalidTableStateError(f"table {shown(located.path)} is only declared: it has no data yet")
    if isinstance(version, str):
        raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {version!r}")
    raise TableVersionNotFoundError(f"table {shown(located.path)} has no version {version}")


def _open_leaf(catalog: Catalog, located: Located, number: int | None) -> Dataset:
    """Open what a leaf's partitioned table has published of it, now or under a number."""
    assert located.row is not None
    snapshot = catalog.snapshot()
    row = snapshot.row(located.identifier) or located.row
    at = partitioned.published(snapshot, row) if number is None else partitioned.numbered(snapshot, row, number)
    if at is None:
        raise MissingError(f"table {shown(located.path)} has no version {number}")
    return open_dataset(catalog.root, branch_location(located.location, at.branch), at.version)


def own_properties(catalog: Catalog, location: str) -> dict[str, str]:
    """The properties that a table has in its own metadata; none while it has no data."""
    try:
        return as_properties(table_metadata(open_dataset(catalog.root, location)))
    except (LanceNamespaceError, OSError):
        return {}


def _newest(catalog: Catalog, located: Located) -> int:
    """The number under which a leaf's versions are listed; 0 where they have none."""
    snapshot = catalog.snapshot()
    row = snapshot.row(located.identifier)
    return 0 if row is None else partitioned.published(snapshot, row).number


def is_declared(catalog: Catalog, located: Located) -> bool:
    """Whether a table has no version yet, neither one that is finished nor one that is only committed."""
    if directories.have_data(catalog, [located.location])[0]:
        return False
    return not (located.managed and catalog.snapshot().below(located.identifier, TABLE_VERSION, limit=1))


def list_tables(catalog: Catalog, request: ListTablesRequest) -> ListTablesResponse:
    """The names of the tables directly in a namespace; manifest and listing put together in the root."""
    path = check_path(request.id, what="namespace", root_allowed=True)
    snapshot = catalog.snapshot()
    if catalog.manifest_enabled:
        catalog.require_namespace(snapshot, path)
    after = request.page_token
    names = snapshot.names(object_id(path), TABLE, after)
    if catalog.dir_listing_enabled and not path:
        names = sorted({*names, *_listed(catalog, snapshot, names, complete=after is None)})
    if request.include_declared is False:
        names = _created(catalog, snapshot, path, names)
    chosen, token = requests.page(names, after, request.limit)
    return ListTablesResponse.model_construct(tables=chosen, page_token=token)


def _listed(catalog: Catalog, snapshot: Snapshot, known: Sequence[str], *, complete: bool) -> list[str]:
    """What the listing adds: directories that no row of the manifest names, by id or by location."""
    names = directories.list_names(catalog, known=known if complete else snapshot.names("", TABLE))
    return without_rows(snapshot, names)


def without_rows(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    """Of names that the listing found, those whose directory no row of the manifest names, under whatever id."""
    taken = {row.location for row in snapshot.at_locations([directories.v1_location(name) for name in names])}
    return [name for name in names if directories.v1_location(name) not in taken]


def _created(catalog: Catalog, snapshot: Snapshot, path: Sequence[str], names: Sequence[str]) -> list[str]:
    rows = snapshot.rows(object_id([*path, name]) for name in names)
    locations = [
        (row.location or "") if (row := rows.get(object_id([*path, name]))) else directories.v1_location(name)
        for name in names
    ]
    return [name for name, created in zip(names, directories.have_data(catalog, locations), strict=True) if created]


def list_all_tables(catalog: Catalog, request: ListTablesRequest) -> ListTablesResponse:
    """The full ids of all tables beneath a namespace, at any depth."""
    path = check_path(request.id, what="namespace", root_allowed=True)
    snapshot = catalog.snapshot()
    if catalog.manifest_enabled:
        catalog.require_namespace(snapshot, path)
    names = snapshot.ids(object_id(path), TABLE)
    if catalog.dir_listing_enabled and not path:
        names = sorted({*names, *_listed(catalog, snapshot, names, complete=True)})
    chosen, token = requests.page(names, request.page_token, request.limit)
    return ListTablesResponse.model_construct(tables=chosen, page_token=token)


def exists(catalog: Catalog, namespace: LanceNamespace, request: TableExistsRequest) -> TableExistsResponse:
    """Return if the table (at the version, if one is given) exists, raise if it does not."""
    located = locate(catalog, request.id)
    if request.version is not None:
        open_table(catalog, namespace, located, request.version)
    return TableExistsResponse()


def describe(catalog: Catalog, namespace: LanceNamespace, request: DescribeTableRequest) -> DescribeTableResponse:
    """The location of a table and, if requested, its details; opening it costs more, so that is done only if needed."""
    requests.refuse_branch(request.branch)
    if request.tag is not None and request.version is not None:
        raise InvalidInputError("version and tag can't be given together")
    located = locate(catalog, request.id)
    kept = own_properties(catalog, located.location) if located.row is None else located.properties
    answer: JsonObject = {
        "location": catalog.root.uri_of(located.location),
        "properties": kept,
        "managed_versioning": True if located.managed or located.is_published else None,
        "storage_options": dict(catalog.root.storage_options) if request.vend_credentials else None,
    }
    if request.with_table_uri:
        answer["table_uri"] = catalog.root.table_uri_of(located.location)
    detailed = bool(request.load_detailed_metadata)
    wanted = request.tag if request.tag is not None else request.version
    if request.check_declared or detailed:
        declared = is_declared(catalog, located)
        answer["is_only_declared"] = declared
        if declared and wanted is None:
            detailed = False
    if detailed or wanted is not None:
        dataset = open_table(catalog, namespace, located, wanted)
        answer |= _details(dataset, located)
        answer["properties"] = {**kept, **as_properties(table_metadata(dataset))}
        if located.is_published and not isinstance(wanted, str):
            answer["version"] = wanted or _newest(catalog, located) or answer["version"]
    return DescribeTableResponse(**answer)


def _details(dataset: Dataset, located: Located) -> JsonMapping:
    fragments = dataset.get_fragments()
    deleted = sum(fragment.num_deletions for fragment in fragments)
    return {
        "table": located.path[-1],
        "namespace": list(located.path[:-1]),
        "version": dataset.version,
        "schema": schema_to_json(dataset.schema),
        "stats": TableBasicStats(num_deleted_rows=deleted, num_fragments=len(fragments)),
        "metadata": _texts(dataset.schema.metadata),
    }


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(): value.decode(errors="replace") for key, value in (metadata or {}).items()}
