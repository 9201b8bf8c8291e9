"""The changes of a transaction to one leaf, made in detached versions that no reader sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit import conflicts
from lancepart.commit.leaf_writes import LeafWrites, in_table_columns
from lancepart.format.records import Stats
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.storage import leaf_data, leaf_handle
from lancepart.storage.leaf_data import Difference
from lancepart.storage.leaf_handle import data_path
from lancepart.storage.root import Root


@dataclass
class LeafChanges(LeafWrites):
    """One leaf in a transaction, which can be put on top of what others published meanwhile."""

    def rebase(self, current: Leaf | None) -> None:
        """Put the changes on top of the leaf as it is published now, or say that they do not go together."""
        if self.leaf is not None and (current is None or current.location != self.leaf.location):
            self._leave(self.leaf)
        if current is None:
            return
        if self.leaf is not None and current.read_version == self.leaf.read_version:
            self.leaf = current
            return
        if self.leaf is None:
            self._move_into(current)
        else:
            self._redo_on(current)

    def _leave(self, leaf: Leaf) -> None:
        """The leaf was removed, as empty ones are: rows that were only added to it recreate the partition."""
        self._refuse(conflicts.with_removal(self.effect))
        rows = self._own_rows(self._own_difference())
        self.leaf, self.added, self.stats = None, 0, Stats(rows=0, bytes=0, fragments=0)
        self.relocate()
        self.append([rows])

    def _move_into(self, winner: Leaf) -> None:
        """Another writer created the partition first: its leaf takes our rows."""
        if not self.weak:
            self._refuse(conflicts.with_creation(self.effect))
        self._refuse_same_keys(winner)
        rows = _rows(self.root, self.metadata, self.location, self.head)
        self.leaf, self.location, self.head, self.object_id = (
            winner,
            winner.location,
            winner.read_version,
            winner.object_id,
        )
        self.added, self.pending = 0, ()
        self.stats = self.measured()
        if self.replaced:
            self.replace()
        self.append([rows])

    def _redo_on(self, current: Leaf) -> None:
        self._refuse(conflicts.with_new_version(self.effect))
        assert self.leaf is not None
        assert self.leaf.read_version is not None
        assert self.head is not None
        assert current.read_version is not None
        ours = self._own_difference()
        theirs = leaf_data.difference(self.root, self.location, self.leaf.read_version, current.read_version)
        self._refuse_same_keys(current, theirs)
        self._refuse(conflicts.with_rows(ours, theirs))
        again = self._reusable(ours)
        mine = None if again else self._own_rows(ours)
        deletions = dict(ours.deleted) | {key: self._all_of(key) for key in ours.removed}
        counts = self.added, self.deleted
        self.leaf, self.head, self.moved = current, current.read_version, ()
        if deletions:
            self.head, _ = leaf_data.delete_rows(self.root, self.location, deletions, base=self.head)
        self._add_again(again, mine)
        self.added, self.deleted = counts
        self.stats = self.measured()

    def _own_difference(self) -> Difference:
        """What the transaction did to the rows that it found, and what it added."""
        assert self.leaf is not None
        assert self.leaf.read_version is not None
        assert self.head is not None
        if not self.moved:
            return leaf_data.difference(self.root, self.location, self.leaf.read_version, self.head)
        before = leaf_data.difference(self.root, self.location, self.leaf.read_version, self.moved[0][0])
        after = leaf_data.difference(self.root, self.location, self.moved[-1][1], self.head)
        self._refuse(conflicts.with_own_rewrite(len(self.moved), before, after))
        return replace(before, added=after.added)

    def _reusable(self, ours: Difference) -> bool:
        """Whether the fragments as they were first written are still all that the transaction added."""
        files = {data_path(file) for item in self.pending for file in item.files}
        added = {data_path(file) for item in ours.added for file in item.files}
        return files == added and all(item.deletion_file is None for item in ours.added)

    def _add_again(self, again: bool, mine: pa.Table | None) -> None:
        """Add the transaction's rows to a newer version: the same fragments, if its columns are still the same."""
        if again and self.pending:
            ready = self._prepared()
            shape = ready.columns.shape
            if shape.ids == self.ids and shape.schema.equals(self.schema, check_metadata=True):
                self.head = leaf_data.append(self.root, self.location, self.pending, base=ready.version)
                return
            source = leaf_data.as_dataset(self.root, self.location, self.schema, self.pending, base=self.head)
            mine = in_table_columns(source, self.metadata)
        if mine is not None and mine.num_rows:
            self.pending = ()
            self.append([mine])

    def _refuse_same_keys(self, current: Leaf, theirs: Difference | None = None) -> None:
        """Refuse an upsert of a key that another writer added since: it has not seen that row."""
        if not self.keys:
            return
        handle = leaf_handle.open_leaf(self.root, current.location, current.read_version)
        found = (
            None
            if theirs is None
            else chain(
                leaf_handle.rows_of(handle, theirs.added) if theirs.added else (),
                leaf_handle.rows_at(handle, theirs.restored),
            )
        )
        rows = in_table_columns(handle, self.metadata, found)
        self._refuse(conflicts.with_keys(index.contains(rows.select(list(on))) for on, index in self.keys))

    def _all_of(self, number: int) -> npt.NDArray[np.int64]:
        assert self.leaf is not None
        handle = leaf_handle.open_leaf(self.root, self.location, self.leaf.read_version)
        return leaf_handle.live_offsets(handle, number)

    def _own_rows(self, ours: Difference) -> pa.Table | None:
        """The rows that the transaction added, read back in the table's columns."""
        if not ours.added:
            return None
        handle = leaf_handle.open_leaf(self.root, self.location, self.head)
        return in_table_columns(handle, self.metadata, leaf_handle.rows_of(handle, ours.added))


def _rows(root: Root, metadata: TableMetadata, location: str, version: int | None) -> pa.Table:
    return in_table_columns(leaf_handle.open_leaf(root, location, version), metadata)
