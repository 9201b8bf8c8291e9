"""Writing a Hive-style table, leaf by leaf through Lance's own commits: atomic for one leaf only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit import upserts
from lancepart.commit.actions import Action
from lancepart.commit.hive_writer import HiveLeaves
from lancepart.commit.upsert_keys import KeyIndex
from lancepart.commit.verbs import check_values, set_columns, shown, written_filter
from lancepart.errors import InvalidInputError, LanceNamespaceError, UnsupportedOperationError
from lancepart.layout.hive import path_ids
from lancepart.layout.hive_tree import TreeManifest
from lancepart.layout.layouts import layout_of
from lancepart.layout.leaves import Leaf
from lancepart.layout.table_manifest import TableManifest, tree_of
from lancepart.model.aliases import RowSource
from lancepart.model.filtering import matching_rows
from lancepart.model.predicate import Filter, Predicate
from lancepart.model.schema import field_id
from lancepart.model.values import canonical
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.read.leaf import ADDRESS, LeafTask
from lancepart.storage import leaf_data, leaf_handle
from lancepart.storage.manifest import RETRY_SECONDS
from lancepart.storage.translate import ConflictError
from lancepart.write.conform import batches
from lancepart.write.route import PartitionRows, route

_THREADS = 8

Item = TypeVar("Item")
Done = TypeVar("Done")


class HiveWrite:
    """One write to a Hive-style table; those that fail halfway say which leaves they changed."""

    def __init__(self, manifest: TreeManifest) -> None:
        self.manifest = manifest
        self.snapshot = manifest.snapshot()
        if self.snapshot.is_bare:
            raise UnsupportedOperationError(
                f"the tree at {manifest.root.uri!r} has no __manifest: it can only be read; make a table of it first"
            )
        self.metadata = layout_of(self.snapshot).load(self.snapshot)
        self.leaves = HiveLeaves(manifest, self.snapshot, self.metadata)

    def append(self, data: RowSource) -> None:
        """Add rows to the leaves that they belong to."""
        for chunk in batches(data, self.metadata.plain_schema):
            self._add(self._routed(chunk))

    def overwrite(self, data: RowSource, where: Filter | None) -> None:
        """Replace exactly the leaves that the data touches, or exactly the rows that a filter matches."""
        chunks = list(batches(data, self.metadata.plain_schema))
        if where is not None:
            self._replace(chunks, self._filter(where), where)
            return
        gathered: dict[tuple[str, ...], list[PartitionRows]] = {}
        for part in (part for chunk in chunks for part in self._routed(chunk)):
            gathered.setdefault(part.key, []).append(part)
        parts = [_merged(same) for same in gathered.values()]
        self.leaves.register(parts, self._over(parts, self.leaves.replace))

    def _replace(self, chunks: Sequence[pa.Table], predicate: Predicate, where: Filter) -> None:
        for chunk in chunks:
            kept = sum(matching_rows(batch, predicate).num_rows for batch in chunk.to_batches())
            if kept != chunk.num_rows:
                raise InvalidInputError(
                    f"{chunk.num_rows - kept} rows of the data do not match {shown(where)!r}, "
                    "the filter of the rows that they replace"
                )
        doomed = self._matching(predicate)
        for chunk in chunks:
            self._add(self._routed(chunk))
        self._remove(doomed)

    def delete(self, where: Filter) -> None:
        """Remove the rows that match."""
        predicate = self._filter(where)
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                return self._remove(self._matching(predicate))
            except ConflictError:
                if time.monotonic() > deadline:
                    raise

    def update(self, values: Mapping[str, str], where: Filter | None) -> None:
        """Set columns to SQL expressions in the rows that match; a row whose leaf changes moves."""
        check_values(values, self.metadata.schema)
        predicate = None if where is None else self._filter(where)
        doomed, changed = [], []
        for item in self._plan(predicate):
            found = list(reading.with_addresses(self._task(item, predicate, self.metadata.schema.names)))
            if found:
                table = pa.Table.from_batches(found)
                doomed.append((item, table.column(ADDRESS).to_numpy()))
                new = set_columns(table.drop_columns([ADDRESS]), values, self.metadata.plain_schema)
                changed.append(self._routed(new))
        for parts in changed:
            self._add(parts)
        self._remove(doomed)

    def upsert(self, data: RowSource, on: Sequence[str]) -> None:
        """Replace the rows that have the same key, and add the others: the new ones first, so that none is lost."""
        schema = self.metadata.plain_schema
        upserts.check_key(schema, on)
        rows = upserts.gathered(data, schema, on)
        if rows is None:
            return
        rows = replace(rows, table=self._as_in_paths(rows.table))
        keys = rows.table.select(list(on))
        leaves, index = self._plan(upserts.key_filter(keys, on)), KeyIndex.of(keys)
        matches = upserts.find(
            leaves, lambda item, columns: self._task(item, None, columns), index, on, list(rows.unnamed)
        )
        self._add(self._routed(upserts.completed(rows, matches, on)))
        self._remove(matches.addresses)

    def _as_in_paths(self, rows: pa.Table) -> pa.Table:
        """Rows with the floats of columns that paths hold as they are read back: with one zero."""
        in_path = path_ids(self.metadata)
        for at, field in enumerate(self.metadata.schema):
            if field_id(field) in in_path and pa.types.is_floating(field.type):
                rows = rows.set_column(at, rows.schema.field(at), canonical(rows.column(at).combine_chunks()))
        return rows

    def _filter(self, where: Filter) -> Predicate:
        return written_filter(where, self.metadata.plain_schema)

    def _plan(self, predicate: Predicate | None) -> tuple[Leaf, ...]:
        return planner.plan(self.snapshot, self.metadata, predicate).leaves

    def _task(self, item: Leaf, predicate: Predicate | None, columns: Sequence[str]) -> LeafTask:
        return LeafTask(
            root=self.manifest.root, metadata=self.metadata, leaf=item, columns=tuple(columns), predicate=predicate
        )

    def _routed(self, rows: pa.Table) -> list[PartitionRows]:
        return list(route(rows, self.metadata.schema, self.metadata.spec))

    def _add(self, parts: Sequence[PartitionRows]) -> None:
        self.leaves.register(parts, self._over(parts, self.leaves.add))

    def _matching(self, predicate: Predicate) -> list[tuple[Leaf, npt.NDArray[np.uint64]]]:
        planned = self._plan(predicate)
        found = self._over(planned, lambda item: reading.matching_addresses(self._task(item, predicate, ())))
        return list(zip(planned, found, strict=True))

    def _remove(self, doomed: Sequence[tuple[Leaf, npt.NDArray[np.uint64]]]) -> None:
        def remove(pair: tuple[Leaf, npt.NDArray[np.uint64]]) -> None:
            leaf, addresses = pair
            leaf_data.delete_rows(self.manifest.root, leaf.location, leaf_handle.split_addresses(addresses), base=None)
            self.leaves.changed.append(leaf.object_id)

        self._over([pair for pair in doomed if len(pair[1])], remove)

    def _over(self, items: Sequence[Item], action: Callable[[Item], Done]) -> list[Done]:
        if len(items) < 2:
            return [action(item) for item in items]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(action, items))


def _merged(parts: Sequence[PartitionRows]) -> PartitionRows:
    rows = pa.concat_tables([part.rows for part in parts])
    return PartitionRows(key=parts[0].key, values=parts[0].values, rows=rows)


def write_leaf_by_leaf(manifest: TableManifest, action: Action) -> None:
    """Run one change of a table without commits; if it fails halfway, its error says how far it got."""
    tree = tree_of(manifest)
    assert tree is not None
    write = HiveWrite(tree)
    try:
        action.apply(write)
    except LanceNamespaceError as error:
        written = list(dict.fromkeys(write.leaves.changed))
        if not written:
            raise
        raise type(error)(f"{error}; partitions written so far: {', '.join(written)}") from error
