"""The metadata of a table as Arrow tables."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pyarrow as pa

from lancepart.commit.idempotency import is_key
from lancepart.format.names import CHANGE, READ_VERSION
from lancepart.format.records import VersionRecord, signature_of
from lancepart.layout import create
from lancepart.layout.declared_indices import declared
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata, is_draft
from lancepart.layout.table_manifest import TableManifest, catalog_of, load
from lancepart.model.aliases import JsonObject
from lancepart.plan import planner
from lancepart.storage import history, leaf_data, refs
from lancepart.storage.dataset import Dataset
from lancepart.storage.history import VersionInfo
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import TABLE_VERSION
from lancepart.storage.translate import MissingError, UnreadableError

_PARTITIONS = pa.schema(
    [
        ("spec_id", pa.int32()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("object_id", pa.string()),
        ("location", pa.string()),
        ("read_version", pa.uint64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("fragments", pa.int32()),
    ]
)
_SPECS = pa.schema(
    [
        ("spec_id", pa.int32()),
        ("field_id", pa.string()),
        ("source", pa.string()),
        ("transform", pa.string()),
        ("result_type", pa.string()),
    ]
)
_SNAPSHOTS = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("by", pa.string()),
        ("transaction", pa.string()),
        ("partitions", pa.int64()),
        ("rows_added", pa.int64()),
        ("rows_deleted", pa.int64()),
    ]
)
_FRAGMENTS = pa.schema(
    [
        ("object_id", pa.string()),
        ("fragment", pa.int64()),
        ("rows", pa.int64()),
        ("deleted", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
_INDICES = pa.schema(
    [
        ("object_id", pa.string()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("indexed_rows", pa.int64()),
        ("segments", pa.int32()),
    ]
)
_BROKEN = pa.schema(
    [
        ("spec_id", pa.int32()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("object_id", pa.string()),
        ("location", pa.string()),
        ("read_version", pa.uint64()),
        ("error", pa.string()),
    ]
)
_STRAYS = pa.schema(
    [
        ("object_id", pa.string()),
        ("location", pa.string()),
        ("read_version", pa.uint64()),
        ("main_version", pa.uint64()),
        ("main_rows", pa.int64()),
    ]
)
_UNIONS = pa.schema(
    [
        ("uri", pa.string()),
        ("snapshot", pa.int64()),
        ("version", pa.int64()),
        ("fragments", pa.int64()),
        ("pinned", pa.list_(pa.int64())),
    ]
)
_DETACHED = 1 << 63
_CHANGES_OF_ROWS = ("Append", "Delete", "Merge", "Overwrite", "Update")

_THREADS = 16
_NAMED = 3


class Inspect:
    """Metadata of a table at a snapshot."""

    def __init__(self, manifest: TableManifest, version: int | None = None) -> None:
        self._manifest = manifest
        self._catalog = catalog_of(manifest)
        self._version = version

    def _loaded(self) -> tuple[TableMetadata, tuple[Leaf, ...]]:
        snapshot = self._manifest.snapshot(self._version)
        metadata = create.load(self._manifest, snapshot)
        return metadata, planner.plan(snapshot, metadata, None).leaves

    def partitions(self) -> pa.Table:
        """The leaves: their values, place and size; that of a leaf that must be opened for it and can't be is NULL."""
        metadata, leaves = self._loaded()
        return pa.Table.from_pylist([self._partition(metadata, leaf) for leaf in leaves], schema=_PARTITIONS)

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
        return (0, 0, 0) if opened is None else leaf_data.measure(opened)

    def _opened(self, leaf: Leaf) -> Dataset | None:
        """A leaf at its version; ``None`` for one that a client of the catalog has only declared."""
        try:
            return leaf_data.open_leaf(self._manifest.root, leaf.location, leaf.read_version)
        except MissingError:
            if refs.is_declared(self._manifest.root, leaf.location):
                return None
            raise

    def _readable(self) -> Iterator[tuple[Leaf, Dataset]]:
        """The leaves that have data and can be opened; ``broken`` tells the others."""
        for leaf in self._loaded()[1]:
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
        return pa.Table.from_pylist(rows, schema=_BROKEN)

    def _fault(self, leaf: Leaf) -> str | None:
        try:
            handle = self._opened(leaf)
        except UnreadableError as error:
            return str(error)
        gone = [] if handle is None else leaf_data.missing_files(self._manifest.root, leaf.location, handle)
        return f"{len(gone)} files are gone: {', '.join(gone[:_NAMED])}" if gone else None

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
        return pa.Table.from_pylist(rows, schema=_SPECS)

    def snapshots(self) -> pa.Table:
        """The commits that are kept: when, by whom, what, and how many rows and partitions they changed."""
        latest = self._manifest.snapshot(self._version).version
        found = [history.info(self._catalog, v) for v in history.versions(self._catalog) if v <= latest]
        rows = [
            row for before, item in zip([None, *found], found, strict=False) if (row := self._snapshot(before, item))
        ]
        return pa.Table.from_pylist(rows, schema=_SNAPSHOTS)

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
        return item.kind in _CHANGES_OF_ROWS and is_draft(history.at(self._catalog, item.version).properties)

    def fragments(self) -> pa.Table:
        """The fragments of every leaf that can be opened."""
        rows = []
        for leaf, handle in self._readable():
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
        return pa.Table.from_pylist(rows, schema=_FRAGMENTS)

    def indices(self) -> pa.Table:
        """The indices of every leaf that can be opened, and how many of its rows they cover.

        A declared index that a leaf does not have yet, or is too small for, covers none of its rows.
        """
        metadata, _ = self._loaded()
        wanted = [each for each in declared(self._manifest.snapshot(self._version)) if each.in_leaves]
        rows = []
        for leaf, handle in self._readable():
            count = handle.count_rows()
            found = {
                each.name: {
                    "object_id": leaf.object_id,
                    "name": each.name,
                    "type": each.index_type,
                    "columns": list(each.field_names),
                    "rows": count,
                    "indexed_rows": min(count, int(each.num_rows_indexed)),
                    "segments": len(each.segments),
                }
                for each in handle.describe_indices()
            }
            lacking = [
                {
                    "object_id": leaf.object_id,
                    "name": each.name,
                    "type": each.kind,
                    "columns": [metadata.columns[each.column].name] if each.column in metadata.columns else [],
                    "rows": count,
                    "indexed_rows": 0,
                    "segments": 0,
                }
                for each in wanted
                if each.name not in found
            ]
            rows += [*found.values(), *lacking]
        return pa.Table.from_pylist(rows, schema=_INDICES)

    def unions(self) -> pa.Table:
        """The Lance datasets that ``publish_lance`` made: their snapshot, Lance's version, and what is kept for them.

        One that somebody removed by hand has no snapshot; ``unpublish_lance`` forgets it.
        """
        from lancepart.maintain.publish import registered

        rows = [asdict(each) for each in registered(self._catalog)]
        return pa.Table.from_pylist(rows, schema=_UNIONS)

    def unpublished_commits(self) -> pa.Table:
        """Leaves to whose main branch someone committed by hand: with strong transactions no reader sees that."""
        metadata, leaves = self._loaded()
        rows = []
        for leaf in leaves if metadata.transactions == STRONG else ():
            try:
                handle = leaf_data.open_leaf(self._manifest.root, leaf.location, None)
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
        return pa.Table.from_pylist(rows, schema=_STRAYS)

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
