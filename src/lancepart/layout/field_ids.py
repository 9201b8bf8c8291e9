"""The highest field id that a table ever assigned, where it was not recorded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from lancepart.errors import LanceNamespaceError
from lancepart.format.names import SCHEMA
from lancepart.layout.columns import leaf_field_id
from lancepart.layout.layouts import as_leaves, candidates
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import max_field_id, schema_from_json
from lancepart.storage import history, leaf_handle
from lancepart.storage.leaf_handle import NativeIds
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError

_THREADS = 16


def highest_field_id(manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata) -> int:
    """The highest id in any kept version of the definition and in any leaf; -1 if there is none.

    A column that another client dropped is in neither the schema nor the specs, and its values still are in leaves
    under its id. Looked up once: from the next change of the definition on the table records it.
    """
    versions = {number: history.at(manifest, number).properties for number in history.versions(manifest)}
    schemas = {properties[SCHEMA] for properties in versions.values() if SCHEMA in properties}
    leaves = [
        leaf
        for spec in metadata.specs
        for leaf in as_leaves(snapshot, spec, candidates(snapshot, spec, None), metadata)
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda leaf: _of_leaf(manifest.root, leaf), leaves))
    return max([*map(_of_schema, schemas), *found], default=-1)


def _of_schema(text: str) -> int:
    try:
        return max_field_id(schema_from_json(text))
    except LanceNamespaceError:
        return -1


def _of_leaf(root: Root, leaf: Leaf) -> int:
    try:
        shape = leaf_handle.shape_of(leaf_handle.open_leaf(root, leaf.location, leaf.read_version))
    except MissingError:
        return -1
    carried = [number for field in shape.schema if (number := leaf_field_id(field)) is not None]
    return max([*_numbers(shape.ids), *carried], default=-1)


def _numbers(ids: tuple[NativeIds, ...]) -> Iterator[int]:
    for _, number, children in ids:
        yield number
        yield from _numbers(children)
