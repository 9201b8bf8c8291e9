"""Table versions: as files in ``_versions``, or as rows of the manifest when that manages them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_namespace import (
    BatchCreateTableVersionsRequest,
    BatchCreateTableVersionsResponse,
    BatchDeleteTableVersionsRequest,
    BatchDeleteTableVersionsResponse,
    CreateTableVersionRequest,
    CreateTableVersionResponse,
    DescribeTableVersionRequest,
    DescribeTableVersionResponse,
    ListTableVersionsRequest,
    ListTableVersionsResponse,
)
from lance_namespace_urllib3_client.models import TableVersion

from lancepart.catalog import requests, staging, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.staging import StagedVersion
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableVersionAlreadyExistsError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from lancepart.model.ids import check_path
from lancepart.storage.manifest_rows import TABLE_VERSION, Change, Row
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


def create(catalog: Catalog, request: CreateTableVersionRequest) -> CreateTableVersionResponse:
    """Make a staged manifest the next version of a table, unless that version exists."""
    requests.refuse_branch(request.branch)
    located = tables.locate(catalog, request.id)
    tables.refuse_published(located, "append")
    staged = staging.read(catalog, located, request)
    if not located.managed:
        return CreateTableVersionResponse(version=staging.finalize_new(catalog, staged))
    commit(catalog, [staged])
    return CreateTableVersionResponse(version=finish(catalog, staged))


def batch_create(catalog: Catalog, request: BatchCreateTableVersionsRequest) -> BatchCreateTableVersionsResponse:
    """Make versions of several tables; all or nothing when the manifest manages versions, else one by one."""
    entries = list(request.entries or ())
    for entry in entries:
        requests.refuse_branch(entry.branch)
    located = [tables.locate(catalog, entry.id) for entry in entries]
    for table in located:
        tables.refuse_published(table, "append")
    staged = [staging.read(catalog, table, entry) for table, entry in zip(located, entries, strict=True)]
    _refuse_repeated(staged)
    if len({item.table.managed for item in staged}) > 1:
        raise UnsupportedOperationError(
            "the batch names tables of the manifest and tables that only the listing knows: migrate() first"
        )
    if not all(item.table.managed for item in staged):
        return BatchCreateTableVersionsResponse(versions=[staging.finalize_new(catalog, item) for item in staged])
    commit(catalog, staged)
    return BatchCreateTableVersionsResponse(versions=finish_all(catalog, staged))


def commit(catalog: Catalog, staged: Sequence[StagedVersion]) -> None:
    """Put the rows of new versions into the manifest; from here on they exist."""

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        return creation(catalog, snapshot, staged, retry=retry), None

    catalog.manifest.transact(plan)


def creation(catalog: Catalog, snapshot: Snapshot, staged: Sequence[StagedVersion], *, retry: bool) -> Change:
    """The change that inserts versions; each table's row is touched, so that it can't be dropped meanwhile."""
    for item in staged:
        if tables.require(catalog, snapshot, item.table.path).location != item.table.location:
            raise ConcurrentModificationError(f"table {shown(item.table.path)} was replaced by another writer")
    taken = [item for item in staged if _is_taken(catalog, snapshot, item)]
    if taken:
        first = taken[0]
        message = f"version {first.version} of table {shown(first.table.path)} already exists"
        raise ConcurrentModificationError(message) if retry else TableVersionAlreadyExistsError(message)
    touches = tuple(dict.fromkeys(item.table.identifier for item in staged))
    return Change(inserts=tuple(item.row() for item in staged), touches=touches)


def _is_taken(catalog: Catalog, snapshot: Snapshot, staged: StagedVersion) -> bool:
    """Whether a version has a row or, of a table from before the manifest managed versions, a file."""
    before = f"{staged.table.identifier}${staged.version - 1}"
    found = snapshot.rows([staged.row_id, before])
    if staged.row_id in found or before in found:
        return staged.row_id in found
    return any(item.version == staged.version for item in staging.files(catalog, staged.table))


def finish(catalog: Catalog, staged: StagedVersion) -> TableVersion:
    """Put a committed version's manifest where readers without the catalog find it, and point its row there."""
    return finish_all(catalog, [staged])[0]


def finish_all(catalog: Catalog, staged: Sequence[StagedVersion]) -> list[TableVersion]:
    """Finish several versions: all manifests first, then all rows in one commit."""
    finals = [staging.copy_to_final(catalog, item) for item in staged]
    _point(catalog, list(zip(staged, finals, strict=True)))
    for item in staged:
        staging.discard(catalog, item)
    return finals


def _point(catalog: Catalog, finished: Sequence[tuple[StagedVersion, TableVersion]]) -> None:
    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        rows = snapshot.rows(item.row_id for item, _ in finished)
        updates = tuple(
            staging.pointer(rows[item.row_id], item, final)
            for item, final in finished
            if item.row_id in rows and not staging.is_final(rows[item.row_id])
        )
        return Change(updates=updates), None

    catalog.manifest.transact(plan)


def list_versions(catalog: Catalog, request: ListTableVersionsRequest) -> ListTableVersionsResponse:
    """The versions of a table, those still staged finished on the way."""
    requests.refuse_branch(request.branch)
    if request.limit is not None and request.limit <= 0:
        raise InvalidInputError(f"limit is {request.limit}: give a positive number")
    timeline = Timeline.of(catalog, check_path(request.id, what="table"))
    descending = bool(request.descending)
    after = _token(request.page_token)
    numbers = [n for n in timeline.numbers if after is None or (n < after if descending else n > after)]
    numbers.sort(reverse=descending)
    chosen = numbers if request.limit is None else numbers[: request.limit]
    token = str(chosen[-1]) if len(chosen) < len(numbers) else None
    return ListTableVersionsResponse(versions=timeline.versions(chosen), page_token=token)


def describe(
    catalog: Catalog, namespace: LanceNamespace, request: DescribeTableVersionRequest
) -> DescribeTableVersionResponse:
    """One version of a table, the latest if none is named; a staged one is finished first."""
    requests.refuse_branch(request.branch)
    timeline = Timeline.of(catalog, check_path(request.id, what="table"))
    number = request.version if request.version is not None else max(timeline.numbers, default=None)
    if number is None or number not in timeline.numbers:
        raise TableVersionNotFoundError(f"table {shown(timeline.table.path)} has no version {number}")
    version = timeline.versions([number])[0]
    if not timeline.table.managed and not timeline.table.is_published:
        dataset = tables.open_table(catalog, namespace, timeline.table, number)
        version.metadata = {key: str(value) for key, value in dataset.get_version()["metadata"].items()}
    return DescribeTableVersionResponse(version=version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The versions of one table at one moment."""

    catalog: Catalog
    snapshot: Snapshot
    table: Located
    numbers: list[int]

    @classmethod
    def of(cls, catalog: Catalog, path: Sequence[str]) -> Timeline:
        """Read which versions a table has."""
        snapshot = catalog.snapshot()
        return cls.at(catalog, snapshot, tables.require(catalog, snapshot, path))

    @classmethod
    def at(cls, catalog: Catalog, snapshot: Snapshot, table: Located) -> Timeline:
        """Read which versions a table has in a snapshot."""
        if table.managed or table.is_published:
            numbers = [int(item.rsplit("$", 1)[-1]) for item in snapshot.ids(table.identifier, TABLE_VERSION)]
            first = min(numbers, default=None)
            if first != 1 and not table.is_published:
                older = (item.version for item in staging.files(catalog, table))
                numbers += [number for number in older if first is None or number < first]
        else:
            numbers = [item.version for item in staging.files(catalog, table)]
        return cls(catalog=catalog, snapshot=snapshot, table=table, numbers=sorted(set(numbers)))

    def versions(self, numbers: Sequence[int]) -> list[TableVersion]:
        """The details of some versions; those still staged are finished first."""
        rows = self.rows(numbers) if self.table.managed or self.table.is_published else {}
        found = {}
        if len(rows) < len(numbers):
            found = {item.version: item for item in staging.files(self.catalog, self.table)}
        return [self._finished(rows[number], number) if number in rows else found[number] for number in numbers]

    def rows(self, numbers: Sequence[int]) -> dict[int, Row]:
        """The rows of versions; those from before the manifest managed them have none."""
        found = self.snapshot.rows(f"{self.table.identifier}${number}" for number in numbers)
        return {staging.number(row): row for row in found.values()}

    def _finished(self, row: Row, number: int) -> TableVersion:
        if staging.is_final(row):
            return staging.of_row(self.catalog, self.table, row)
        return finish(self.catalog, staging.of_staged_row(self.table, row, number))


def batch_delete(catalog: Catalog, request: BatchDeleteTableVersionsRequest) -> BatchDeleteTableVersionsResponse:
    """Delete versions: their manifests' files first, then, if the manifest manages them, their rows."""
    requests.refuse_branch(request.branch)
    snapshot = catalog.snapshot()
    located = tables.require(catalog, snapshot, check_path(request.id, what="table"))
    tables.refuse_published(located, "maintenance.expire")
    numbers = chosen_versions(catalog, snapshot, located, request)
    staging.delete_files(catalog, located, numbers)
    if located.managed and numbers:

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
            present = snapshot.rows(f"{located.identifier}${number}" for number in numbers)
            return Change(deletes=tuple(present)), None

        catalog.manifest.transact(plan)
    return BatchDeleteTableVersionsResponse(deleted_count=len(numbers))


def chosen_versions(
    catalog: Catalog, snapshot: Snapshot, located: Located, request: BatchDeleteTableVersionsRequest
) -> list[int]:
    """The existing versions in a request's ranges; a missing one is skipped unless the request minds."""
    present = Timeline.at(catalog, snapshot, located).numbers
    chosen: set[int] = set()
    for item in request.ranges or ():
        start, end = item.start_version, item.end_version
        if start < 0 or end < -1 or (end != -1 and end < start):
            raise InvalidInputError(f"version range [{start}, {end}) is not valid: give start <= end, or -1 as the end")
        inside = {number for number in present if number >= start and (end == -1 or number < end)}
        if _minds_missing(request) and (end != -1 and len(inside) < end - max(start, 1)):
            missing = next(number for number in range(max(start, 1), end) if number not in inside)
            raise TableVersionNotFoundError(f"table {shown(located.path)} has no version {missing}")
        chosen |= inside
    return sorted(chosen)


def _minds_missing(request: BatchDeleteTableVersionsRequest) -> bool:
    return str((request.context or {}).get("ignore_missing", "true")).lower() == "false"


def _refuse_repeated(staged: Iterable[StagedVersion]) -> None:
    seen: set[str] = set()
    for item in staged:
        if item.row_id in seen:
            raise InvalidInputError(
                f"version {item.version} of table {shown(item.table.path)} appears twice in the request"
            )
        seen.add(item.row_id)


def _token(token: str | None) -> int | None:
    if token is None:
        return None
    if not token.isdigit():
        raise InvalidInputError(f"page token {token!r} is not one that ListTableVersions gave")
    return int(token)
