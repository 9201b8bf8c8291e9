"""The metadata of a table as Arrow tables."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.format.names import CHANGE, READ_VERSION, is_key
from lancepart.format.records import VersionRecord, signature_of
from lancepart.layout import create
from lancepart.layout.declared_indices import declared
from lancepart.layout.layouts import layout_of
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.layout.table_manifest import TableManifest, catalog_of, load
from lancepart.maintain import faults
from lancepart.maintain.index_coverage import Coverage
from lancepart.maintain.inspect_schemas import (
    BROKEN,
    BROKEN_INDICES,
    BROKEN_UNIONS,
    FRAGMENTS,
    INDICES,
    PARTITIONS,
    SNAPSHOTS,
    SPECS,
    UNIONS,
    UNPUBLISHED,
)
from lancepart.maintain.largest import largest, named
from lancepart.model.aliases import JsonObject
from lancepart.model.public import html_calls, public, public_names
from lancepart.plan import planner
from lancepart.storage import history, leaf_handle, refs
from lancepart.storage.history import VersionInfo
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import TABLE_VERSION
from lancepart.storage.translate import MissingError, UnreadableError

_DETACHED = 1 << 63
_CHANGES_OF_ROWS = ("Append", "Delete", "Merge", "Overwrite", "Update")

_THREADS = 16


@public(
    "broken",
    "broken_indices",
    "broken_unions",
    "fragments",
    "indices",
    "partitions",
    "snapshots",
    "specs",
    "unions",
    "unpublished_commits",
)
class Inspect:
    """Metadata of a table at a snapshot."""

    def __init__(self, manifest: TableManifest, version: int | None = None) -> None:
        self._manifest = manifest
        self._catalog = catalog_of(manifest)
        self._version = version

    def __repr__(self) -> str:
        at = "" if self._version is None else f" at snapshot {self._version}"
        return f"Inspect({self._manifest.root.uri!r}{at}): {', '.join(f'{name}()' for name in public_names(Inspect))}"

    def _repr_html_(self) -> str:
        return html_calls(self, f"{self._manifest.root.uri}: metadata as Arrow tables")

    def _loaded(self) -> tuple[TableMetadata, tuple[Leaf, ...]]:
        snapshot = self._manifest.snapshot(self._version)
        metadata = create.load(snapshot)
        return metadata, planner.plan(snapshot, metadata, None).leaves

    def partitions(self) -> pa.Table:
        """The leaves: their values, place and size; that of a leaf that must be opened for it and can't be is NULL."""
        metadata, leaves = self._loaded()
        return pa.Table.from_pylist([self._partition(metadata, leaf) for leaf in leaves], schema=PARTITIONS)

    def _partition(self, metadata: TableMetadata, leaf: Leaf) -> JsonObject:
        rows, size, fragments = self._size(leaf)
        return {**_named(metadata, leaf), "rows": rows, "bytes": size, "fragments": fragments}

    def _size(self, leaf: Leaf) -> tuple[int | None, int | None, int | None]:
        if leaf.stats is not None:
            return leaf.stats.rows, leaf.stats.bytes, leaf.stats.fragments
        try:
            opened = self._opened(leaf)
        except UnreadableError:
            return None, None, None
        return (0, 0, 0) if opened is None else leaf_handle.measure(opened)

    def _opened(self, leaf: Leaf) -> LeafHandle | None:
        """A leaf at its version; ``None`` for one that a client of the catalog has only declared."""
        try:
            return leaf_handle.open_leaf(self._manifest.root, leaf.location, leaf.read_version)
        except MissingError:
            if refs.is_declared(self._manifest.root, leaf.location):
                return None
            raise

    def _chosen(self, most: int | None, ids: Sequence[str] | None) -> Sequence[Leaf]:
        if most is None and ids is None:
            return self._loaded()[1]
        snapshot = self._manifest.snapshot(self._version)
        if ids is not None:
            return named(snapshot, ids if most is None else ids[:most])
        assert most is not None
        return largest(snapshot, most)

    def _readable(self, leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, LeafHandle]]:
        """The leaves that have data and can be opened; ``broken`` lists the others."""
        for leaf in leaves:
            with contextlib.suppress(UnreadableError):
                if (handle := self._opened(leaf)) is not None:
                    yield leaf, handle

    def broken(self) -> pa.Table:
        """The leaves that can't be read at their version, and why: a file of theirs is gone or damaged.

        Each leaf is opened for it, and each of its files looked for; their content is not read.
        """
        metadata, leaves = self._loaded()
        with ThreadPoolExecutor(_THREADS) as pool:
            faults = list(pool.map(self._fault, leaves))
        rows = [{**_named(metadata, leaf), "error": fault} for leaf, fault in zip(leaves, faults, strict=True) if fault]
        return pa.Table.from_pylist(rows, schema=BROKEN)

    def _fault(self, leaf: Leaf) -> str | None:
        try:
            handle = self._opened(leaf)
        except UnreadableError as error:
            return str(error)
        missing = [] if handle is None else leaf_handle.missing_files(self._manifest.root, leaf.location, handle)
        return faults.gone(missing)

    def specs(self) -> pa.Table:
        """The versions of the partitioning, a row a field."""
        metadata = load(self._manifest, self._version)
        rows = []
        for spec in metadata.specs:
            for field in spec.fields:
                names = [column.name if column is not None else None for column in field.sources(metadata.schema)]
                shown = ", ".join(name if name is not None else "(removed)" for name in names)
                what = field.expression if field.transform is None else field.transform.name
                rows.append(
                    {
                        "spec_id": spec.id,
                        "field_id": field.field_id,
                        "source": shown,
                        "transform": what,
                        "result_type": str(field.result_type),
                    }
                )
        return pa.Table.from_pylist(rows, schema=SPECS)

    def snapshots(self, *, limit: int | None = None, before: int | None = None) -> pa.Table:
        """The commits that are kept: when, by whom, what, and how many rows and partitions they changed.

        Of a long history ``limit`` gives the newest ones, and ``before`` those that are older than a snapshot.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidInputError(f"limit is {limit!r}: give a whole number from 0 up")
        last = self._manifest.snapshot(self._version).version
        wanted = [v for v in history.versions(self._catalog) if v <= last and (before is None or v < before)]
        rows: list[JsonObject] = []
        later: VersionInfo | None = None
        for number in [*reversed(wanted), None]:
            if limit is not None and len(rows) >= limit:
                break
            item = None if number is None else history.info(self._catalog, number)
            row = None if later is None else self._snapshot(item, later)
            rows += [] if row is None else [row]
            later = item
        return pa.Table.from_pylist(rows[::-1], schema=SNAPSHOTS)

    def _snapshot(self, before: VersionInfo | None, item: VersionInfo) -> JsonObject | None:
        shown: JsonObject = {"version": item.version, "timestamp": item.timestamp}
        if item.records:
            first = signature_of(item.records[0])
            found = [VersionRecord.from_row(row) for row in item.records if not is_key(row.object_id)]
            details = [record for record in found if record is not None]
            return shown | {
                "operation": None if first is None else first.operation,
                "by": None if first is None else first.by,
                "transaction": None if first is None else first.transaction,
                "partitions": len(details),
                "rows_added": sum(record.added or 0 for record in details),
                "rows_deleted": sum(record.deleted or 0 for record in details),
            }
        if _definition(self._catalog, item) != _definition(self._catalog, before):
            return shown | {"operation": "define", "partitions": 0, "rows_added": 0, "rows_deleted": 0}
        return shown if self._is_unsigned(item) else None

    def _is_unsigned(self, item: VersionInfo) -> bool:
        """Whether a commit changed rows of a layout in which it records nothing of itself."""
        return item.kind in _CHANGES_OF_ROWS and not layout_of(history.at(self._catalog, item.version)).records_versions

    def fragments(self) -> pa.Table:
        """The fragments of every leaf that can be opened."""
        rows = []
        for leaf, handle in self._readable(self._loaded()[1]):
            for fragment in handle.get_fragments():
                size = sum(int(file.file_size_bytes or 0) for file in fragment.metadata.files)
                rows.append(
                    {
                        "object_id": leaf.object_id,
                        "fragment": fragment.fragment_id,
                        "rows": fragment.count_rows(),
                        "deleted": fragment.num_deletions,
                        "bytes": size,
                    }
                )
        return pa.Table.from_pylist(rows, schema=FRAGMENTS)

    def indices(self, *, most: int | None = None, leaves: Sequence[str] | None = None) -> pa.Table:
        """The indices of every leaf that can be opened, and how many of its rows they cover.

        A declared index that a leaf does not have yet, or is too small for, covers none of its rows. An index over the
        whole table has a row for each leaf too, with the scope ``table``. With ``most`` only so many leaves are opened,
        those with the most rows; ``leaves`` names those to open, by the ``object_id`` of ``partitions()``.
        """
        known = declared(self._manifest.snapshot(self._version))
        coverage = Coverage.of(self._manifest.root, load(self._manifest, self._version), known)
        rows = [
            row for leaf, handle in self._readable(self._chosen(most, leaves)) for row in coverage.rows(leaf, handle)
        ]
        return pa.Table.from_pylist(rows, schema=INDICES)

    def unions(self) -> pa.Table:
        """The Lance datasets that ``publish_lance`` made: their snapshot, Lance's version, and what is kept for them.

        One whose directory was removed by hand has no snapshot; ``unpublish_lance`` removes its entry.
        """
        from lancepart.maintain.publish_union import registered

        rows = [asdict(each) for each in registered(self._catalog)]
        return pa.Table.from_pylist(rows, schema=UNIONS)

    def broken_unions(self) -> pa.Table:
        """The published unions that can't be opened, or of which files are gone, and why.

        ``unpublish_lance`` and ``publish_lance`` make one again; remove a dataset that can't be opened by hand first.
        """
        return pa.Table.from_pylist(list(faults.of_unions(self._catalog)), schema=BROKEN_UNIONS)

    def broken_indices(self) -> pa.Table:
        """The segments of table-wide indices that can't be read, and why; drop such an index and create it again."""
        found = declared(self._manifest.snapshot(self._version))
        return pa.Table.from_pylist(list(faults.of_indices(self._manifest.root, found)), schema=BROKEN_INDICES)

    def unpublished_commits(self) -> pa.Table:
        """Leaves to whose main branch someone committed by hand: with strong transactions no reader sees that."""
        metadata, leaves = self._loaded()
        rows = []
        for leaf in leaves if metadata.transactions == STRONG else ():
            try:
                handle = leaf_handle.open_leaf(self._manifest.root, leaf.location, None)
            except UnreadableError:
                continue
            if handle.version > self._newest_on_main(leaf):
                rows.append(
                    {
                        "object_id": leaf.object_id,
                        "location": leaf.location,
                        "read_version": leaf.read_version,
                        "main_version": handle.version,
                        "main_rows": handle.count_rows(),
                    }
                )
        return pa.Table.from_pylist(rows, schema=UNPUBLISHED)

    def strays(self) -> pa.Table:
        """The older name of ``unpublished_commits``."""
        return self.unpublished_commits()

    def _newest_on_main(self, leaf: Leaf) -> int:
        """The last version of a leaf's main branch that a commit named; the first one makes the leaf."""
        named = [
            int(row.columns.get(READ_VERSION.name) or 0)
            for row in self._manifest.snapshot(self._version).below(leaf.object_id, TABLE_VERSION)
        ]
        return max((number for number in [*named, leaf.read_version or 0] if number < _DETACHED), default=0) or 1

    def html(self) -> str:
        """The table for a notebook: its columns, its partitioning, its size."""
        metadata, leaves = self._loaded()
        known = [leaf.stats.rows for leaf in leaves if leaf.stats is not None]
        size = f"{sum(known):,} rows in " if leaves and len(known) == len(leaves) else ""
        columns = "".join(
            f"<tr><td>{html.escape(field.name)}</td><td>{html.escape(str(field.type))}</td></tr>"
            for field in metadata.plain_schema
        )
        fields = ", ".join(html.escape(field.field_id) for field in metadata.spec.fields)
        return (
            f"<b>{html.escape(self._manifest.root.uri)}</b><br>{size}{len(leaves):,} partitions by {fields}"
            f"<table><tr><th>column</th><th>type</th></tr>{columns}</table>"
        )


def _named(metadata: TableMetadata, leaf: Leaf) -> JsonObject:
    """Which leaf it is, and where."""
    spec = metadata.spec_of(leaf.spec_id)
    assert spec is not None
    return {
        "spec_id": leaf.spec_id,
        "partition": [(field.field_id, value) for field, value in zip(spec.fields, leaf.values, strict=True)],
        "object_id": leaf.object_id,
        "location": leaf.location,
        "read_version": leaf.read_version,
    }


def _definition(manifest: Manifest, item: VersionInfo | None) -> str | None:
    return None if item is None else history.at(manifest, item.version).properties.get(CHANGE)
