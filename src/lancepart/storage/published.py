"""Published unions: Lance datasets on disk that are updated in place by commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import lance
import pyarrow as pa
from lance import DatasetBasePath
from lance.fragment import FragmentMetadata

from lancepart.storage.dataset import Dataset
from lancepart.storage.files import Files
from lancepart.storage.index_facts import IndexEntry
from lancepart.storage.leaf_handle import Fragment, NativeIds, Offsets, data_path, fragments_of, shape_of
from lancepart.storage.leaf_index import segments_of
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError, MissingError, storage_errors
from lancepart.storage.union import Bases, EmptyUnion


def find(root: Root, uri: str, version: int | None = None) -> Dataset | None:
    """The dataset at a path, None if there is none."""
    try:
        with storage_errors(f"open the dataset at {uri!r}", root):
            return lance.dataset(uri, version=version, storage_options=root.lance_options)
    except MissingError:
        return None


def missing_files(root: Root, uri: str, handle: Dataset) -> list[str]:
    """The files that a union needs and that are gone, its own ones and those of leaves: rows, deletions and indices.

    Of the indices only what the union uses of the table's is looked for, which is recorded in them.
    """
    bases: dict[int | None, tuple[str, bool]] = {
        number: (base.path, base.is_dataset_root) for number, base in handle.base_paths().items()
    }
    bases[None] = (uri, True)
    needed: dict[int | None, set[str]] = defaultdict(set)
    for part in handle.get_fragments():
        for file in part.metadata.files:
            needed[file.base_id].add(f"data/{data_path(file)}" if bases[file.base_id][1] else data_path(file))
        deleted = part.metadata.deletion_file
        if deleted is not None:
            needed[deleted.base_id].add(str(part.deletion_file()))
    for base, used in index_parts(handle).values():
        needed[base].add(f"_indices/{used.uuid}")
    gone = []
    for number, names in needed.items():
        path = bases[number][0]
        store = Files(Root(path, root.storage_options))
        gone += [f"{path}/{name}" for name in sorted(names) if not _is_there(store, name)]
    return gone


def _is_there(store: Files, name: str) -> bool:
    """Whether there is a file, or for an index a directory with files."""
    return not store.is_empty(name) if name.startswith("_indices/") else store.exists(name)


def marks_of(handle: Dataset) -> dict[str, str]:
    """What a published union says of itself: it is stored in its schema's metadata, and so changes with its rows."""
    return {key.decode(): value.decode() for key, value in (handle.schema.metadata or {}).items()}


def create(root: Root, uri: str, schema: pa.Schema, marks: Mapping[str, str]) -> Dataset:
    """Create a union without rows at an unused path; ConflictError if another publisher has just made it."""
    operation = lance.LanceOperation.Overwrite(schema.with_metadata(dict(marks)), [])
    if find(root, uri) is not None:
        raise ConflictError(f"another publisher has just made the dataset at {uri!r}")
    try:
        with storage_errors(f"make a dataset at {uri!r}", root):
            return lance.LanceDataset.commit(uri, operation, storage_options=root.lance_options, max_retries=0)
    except MissingError as error:
        raise ConflictError(f"another publisher made the dataset at {uri!r} meanwhile: {error}") from None


def bases_of(handle: Dataset) -> Bases:
    """The directories whose files a union names so far."""
    found = handle.base_paths()
    return Bases(known={(base.path, base.is_dataset_root): number for number, base in sorted(found.items())})


def with_bases(root: Root, handle: Dataset, bases: Bases) -> Dataset:
    """The union with more directories whose files it may name; none of them is named yet."""
    known = handle.base_paths()
    missing = [
        DatasetBasePath(path, f"base-{number}", is_dataset, number)
        for (path, is_dataset), number in bases.known.items()
        if number not in known
    ]
    if missing:
        with storage_errors("name more directories in a union", root):
            handle.add_bases(missing)
    return handle


def scratch(root: Root, handle: Dataset, schema: pa.Schema) -> EmptyUnion:
    """A detached version without rows, for files of the union's own to be written by."""
    with storage_errors("prepare a union", root):
        made = _detached(root, handle, lance.LanceOperation.Overwrite(schema, []))
    return EmptyUnion(root=root, handle=made)


def with_hidden(empty: EmptyUnion, fragments: Sequence[Fragment], hidden: Mapping[int, Offsets]) -> list[Fragment]:
    """Fragments of a union, some with deletion files of its own for the rows at some offsets."""
    chosen = [part for part in fragments if part.id in hidden]
    if not chosen:
        return list(fragments)
    with storage_errors("hide rows of a union", empty.root):
        handle = _detached(empty.root, empty.handle, lance.LanceOperation.Append(chosen))
        done = {part.id: fragments_of(handle, [part.id])[0].delete_rows(hidden[part.id].tolist()) for part in chosen}
    return [left for part in fragments if (left := done.get(part.id, part)) is not None]


def _detached(root: Root, handle: Dataset, operation: lance.LanceOperation.BaseOperation) -> Dataset:
    return lance.LanceDataset.commit(
        handle, operation, read_version=handle.version, detached=True, storage_options=root.lance_options
    )


def replaced(root: Root, handle: Dataset, schema: pa.Schema, fragments: Sequence[Fragment], *, same: bool) -> Dataset:
    """The union with other fragments, columns and marks, in one commit; ConflictError if it was changed since.

    The marks are the schema's metadata; ``same`` says whether it has these columns already.
    """
    with storage_errors("publish a union", root):
        if not same:
            return _with_columns(root, handle, schema, fragments)
        left, there = {int(part.id) for part in fragments}, handle.get_fragments()
        gone = [part.metadata for part in there if part.fragment_id not in left]
        before = {int(part.fragment_id) for part in there}
        parts = [*fragments, *_emptied(root, handle, gone)]
        parts.sort(key=lambda part: (int(part.id) not in before, int(part.id)))
        operation = lance.LanceOperation.Merge(parts, schema)
        return _committed(root, handle, operation)


def covered_by_others(handle: Dataset) -> frozenset[int]:
    """The fragments that indices cover which other clients made on a union: these are in its own directory."""
    return frozenset(
        int(number)
        for index in handle.describe_indices()
        for part in index.segments
        if part.base_id is None
        for number in part.fragment_ids
    )


def index_parts(handle: Dataset) -> dict[str, tuple[int, IndexEntry]]:
    """The parts of indices that a union uses where the table has them, by their ids, with the directory's number."""
    return {
        each.uuid: (int(part.base_id), each)
        for index in handle.describe_indices()
        for part, each in zip(index.segments, segments_of(index), strict=True)
        if part.base_id is not None
    }


def names_of_others(handle: Dataset) -> frozenset[str]:
    """The names of indices that other clients made on a union."""
    return frozenset(
        index.name for index in handle.describe_indices() if any(part.base_id is None for part in index.segments)
    )


def _with_columns(root: Root, handle: Dataset, schema: pa.Schema, fragments: Sequence[Fragment]) -> Dataset:
    """A union with other columns: created separately, without indices, which refer to columns by number, then moved.

    Lance does not detect concurrent commits here: a version number that skips shows that it must be repeated.
    """
    made = _detached(root, handle, lance.LanceOperation.Overwrite(schema, []))
    if fragments:
        made = _detached(root, made, lance.LanceOperation.Append(list(fragments)))
    done = _committed(root, handle, lance.LanceOperation.Restore(made.version))
    if int(done.version) != int(handle.version) + 1:
        raise ConflictError("the union was changed by another publisher while its columns changed")
    return done


def _committed(root: Root, handle: Dataset, operation: lance.LanceOperation.BaseOperation) -> Dataset:
    return lance.LanceDataset.commit(
        handle, operation, read_version=handle.version, storage_options=root.lance_options, max_retries=0
    )


def _emptied(root: Root, handle: Dataset, fragments: Sequence[Fragment]) -> list[Fragment]:
    """Fragments with all their rows deleted, which Lance then leaves out.

    Only a merge conflicts with every other commit, and sets rows and marks together; but it must name every existing
    fragment. Lance writes no deletions of all rows, so the fragment is given one row more.
    """
    if not fragments:
        return []
    longer = [FragmentMetadata(id=part.id, files=part.files, physical_rows=_rows(part) + 1) for part in fragments]
    empty = scratch(root, handle, handle.schema)
    scene = _detached(root, empty.handle, lance.LanceOperation.Append(longer))
    made = []
    for part in fragments:
        shorter = fragments_of(scene, [part.id])[0].delete_rows(list(range(_rows(part))))
        assert shorter is not None
        deleted = shorter.deletion_file
        made.append(FragmentMetadata(id=part.id, files=part.files, physical_rows=_rows(part), deletion_file=deleted))
    return made


def _rows(part: Fragment) -> int:
    return int(part.physical_rows)


def is_same(handle: Dataset, schema: pa.Schema) -> bool:
    """Whether a union has exactly these columns, under the numbers that a new one would give them."""
    bare = handle.schema.remove_metadata()
    numbers = [number for item in shape_of(handle).ids for number in _numbers(item)]
    return bool(bare.equals(schema, check_metadata=True)) and numbers == list(range(len(numbers)))


def _numbers(item: NativeIds) -> list[int]:
    return [item[1], *(number for child in item[2] for number in _numbers(child))]
