"""Lance datasets whose manifests name the files of others, so that many tables are one without copying a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
from lance import DatasetBasePath
from lance.fragment import DataFile, FragmentMetadata, write_fragments

from lancepart.errors import UnsupportedOperationError
from lancepart.storage.alignment import aligned
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import Fragment, LeafShape, NativeIds, Offsets, data_path, fragments_of, shape_of
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors

MEMORY = "memory://"


def shared_memory() -> str:
    """A place in memory for a union that shares the caches of searches, which distinguish datasets by their paths."""
    return f"{MEMORY}{uuid4().hex}"


BasePath: TypeAlias = DatasetBasePath
"""A directory whose files a dataset names, beside its own."""

File: TypeAlias = DataFile
"""A data file of a fragment, as Lance names it."""

_ABSENT = -2
"""What Lance calls a column of a data file that the dataset no longer has."""


@dataclass
class Bases:
    """The directories whose files a union names, each under a number of its own."""

    known: dict[tuple[str, bool], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._highest = max(self.known.values(), default=0)

    def number(self, path: str, *, is_dataset: bool) -> int:
        """The number of a directory, which may be that of a whole dataset or of data files only."""
        if (path, is_dataset) not in self.known:
            self._highest += 1
            self.known[path, is_dataset] = self._highest
        return self.known[path, is_dataset]

    def of_leaf(self, root: Root, location: str, bases: Mapping[int, DatasetBasePath]) -> dict[int | None, int]:
        """The numbers of a leaf's own directory, as ``None``, and of those that the leaf itself names files of."""
        own: dict[int | None, int] = {None: self.number(root.uri_of(location), is_dataset=True)}
        others: dict[int | None, int] = {
            key: self.number(base.path, is_dataset=base.is_dataset_root) for key, base in bases.items()
        }
        return own | others

    def registered(self, used: Collection[int]) -> list[DatasetBasePath]:
        """Some of the directories as Lance's base paths; their names must differ."""
        return [
            DatasetBasePath(path, f"base-{number}", is_dataset, number)
            for (path, is_dataset), number in list(self.known.items())
            if number in used
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyUnion:
    """A union that has its columns and no rows yet."""

    root: Root
    handle: Dataset

    @property
    def shape(self) -> LeafShape:
        """Its columns with their ids."""
        return shape_of(self.handle)

    def write_columns(self, rows: pa.Table) -> DataFile:
        """Write a data file of the union's own that holds some of its columns for one fragment."""
        with storage_errors("write columns of a union", self.root):
            made = write_fragments(
                aligned(rows),
                self.handle,
                max_rows_per_file=max(1, rows.num_rows),
                storage_options=self.root.lance_options,
            )
        if len(made) != 1 or int(made[0].physical_rows) != rows.num_rows:
            raise UnsupportedOperationError(f"Lance wrote {rows.num_rows} rows of one fragment as {len(made)} files")
        return made[0].files[0]

    def filled(self, fragments: Sequence[Fragment], hidden: Mapping[int, Offsets]) -> Dataset:
        """The union with fragments that carry their numbers, less the rows at some offsets of them."""
        with storage_errors("make a union", self.root):
            handle = _committed(self.root, self.handle, lance.LanceOperation.Append(list(fragments)))
            if not hidden:
                return handle
            done = [fragments_of(handle, [number])[0].delete_rows(gone.tolist()) for number, gone in hidden.items()]
            left = [part for part in done if part is not None]
            assert len(left) == len(done)
            return _committed(self.root, handle, lance.LanceOperation.Delete(left, [], "lancepart"))


def create(root: Root, uri: str, schema: pa.Schema, bases: Sequence[DatasetBasePath]) -> EmptyUnion:
    """Make a union without rows; in memory it exists as long as a handle of it does."""
    operation = lance.LanceOperation.Overwrite(schema, [], initial_bases=list(bases))
    with storage_errors("make a union", root):
        if uri != MEMORY and uri.startswith(MEMORY):
            handle = lance.write_dataset(
                schema.empty_table(),
                uri,
                session=cache.session,
                initial_bases=list(bases),
                storage_options=root.lance_options,
            )
        else:
            handle = lance.LanceDataset.commit(uri, operation, storage_options=root.lance_options)
    return EmptyUnion(root=root, handle=handle)


def fragment(
    found: Fragment,
    number: int,
    *,
    fields: Mapping[int, int],
    bases: Mapping[int | None, int],
    own: Iterable[DataFile] = (),
) -> Fragment:
    """A leaf's fragment as a union names it, with the ids of the union's columns and no deletions.

    ``own`` are data files of the union's own. Columns of the leaf that the union does not have are marked as absent.
    """
    _refuse_unknown(found)
    files = [_named(file, fields, bases) for file in found.files]
    used = [file for file in files if any(column != _ABSENT for column in file.fields)]
    return FragmentMetadata(
        id=number, files=[*(used or files[:1]), *own], physical_rows=int(found.physical_rows), deletion_file=None
    )


def _named(file: DataFile, fields: Mapping[int, int], bases: Mapping[int | None, int]) -> DataFile:
    return DataFile(
        data_path(file),
        [fields.get(column, _ABSENT) for column in file.fields],
        list(file.column_indices),
        file.file_major_version,
        file.file_minor_version,
        file.file_size_bytes,
        base_id=bases[file.base_id],
    )


def _refuse_unknown(found: Fragment) -> None:
    """Refuse what a union could misread: old files can't be mixed with newer ones, overlays change values."""
    if any((file.file_major_version, file.file_minor_version) < (2, 0) for file in found.files):
        raise UnsupportedOperationError(
            "its files have the format of before 2.0: overwrite the partition to rewrite them"
        )
    if found.overlays:
        raise UnsupportedOperationError("it has data overlays, which hide values of its files: overwrite the partition")


def field_mapping(leaf: NativeIds, union: NativeIds) -> dict[int, int] | None:
    """The ids of a column and all inside it in a leaf, each with that in the union; None if they are built otherwise.

    >>> field_mapping(("s", 7, (("a", 8, ()),)), ("renamed", 0, (("a", 1, ()),)))
    {7: 0, 8: 1}
    """
    if len(leaf[2]) != len(union[2]) or [child[0] for child in leaf[2]] != [child[0] for child in union[2]]:
        return None
    found = {leaf[1]: union[1]}
    for mine, theirs in zip(leaf[2], union[2], strict=True):
        inside = field_mapping(mine, theirs)
        if inside is None:
            return None
        found |= inside
    return found


def hidden_offsets(rows: int, shown: Offsets) -> Offsets:
    """The offsets of a fragment's rows that are not among those shown."""
    kept = np.zeros(rows, dtype=bool)
    kept[shown] = True
    return np.flatnonzero(~kept)


def _committed(root: Root, handle: Dataset, operation: lance.LanceOperation.BaseOperation) -> Dataset:
    return lance.LanceDataset.commit(
        handle, operation, read_version=handle.version, storage_options=root.lance_options, max_retries=0
    )
