"""Finding the leaf of given partition values in a snapshot, and the id of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from lancepart.format.names import DATASET, NAMESPACE, OBJECT_ID, SALT, of_type, partition_column, spec_namespace
from lancepart.format.records import Stats
from lancepart.layout.create import new_salt
from lancepart.layout.layouts import as_leaves, candidates
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.ids import object_id, partition_name
from lancepart.model.partition_keys import value_keys
from lancepart.model.quoting import quote_identifier, quote_literal
from lancepart.model.spec import PartitionSpec
from lancepart.storage import leaf_handle
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import UnreadableError

Key = tuple[str, ...]

_MOST_LISTED = 200


class Partition(Protocol):
    """Partition values of the current spec: as keys that compare, and as Arrow scalars."""

    @property
    def key(self) -> Key:
        """One text a field."""

    @property
    def values(self) -> tuple[pa.Scalar, ...]:
        """One scalar a field."""


def identifier(metadata: TableMetadata, key: Key) -> str:
    """The id that a new leaf with these values gets."""
    spec = metadata.spec
    names = [partition_name(metadata.salt, spec.id, key[: depth + 1]) for depth in range(len(key))]
    return object_id([spec_namespace(spec.id), *names, DATASET])


def identifiers(
    manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata, parts: Sequence[Partition]
) -> dict[Key, str]:
    """The ids that new leaves with some values get, by their keys.

    In a table of another client they go into the namespaces that it made for their values; all of a job's tasks read
    one snapshot, and so agree.
    """
    metadata = salted(manifest, metadata)
    derived = {part.key: identifier(metadata, part.key) for part in parts}
    if not metadata.foreign or not metadata.spec.fields:
        return derived
    known = _namespaces(snapshot, metadata.spec, [(part.key, part.values) for part in parts])
    return {key: _beneath_known(name, key, known) for key, name in derived.items()}


def salted(manifest: Manifest, metadata: TableMetadata) -> TableMetadata:
    """The definition with something to derive names from, made for the table if it has nothing yet."""
    if metadata.salt:
        return metadata
    manifest.claim_properties({SALT: new_salt()})
    return replace(metadata, salt=manifest.snapshot().properties[SALT])


def _namespaces(
    snapshot: Snapshot, spec: PartitionSpec, wanted: Sequence[tuple[Key, tuple[pa.Scalar, ...]]]
) -> dict[Key, str]:
    """The namespaces of a spec by their values, outermost first; the first of two equal ones."""
    names = [partition_column(field.field_id) for field in spec.fields]
    first = _listed(replace(spec, fields=spec.fields[:1]), wanted)
    test = of_type(NAMESPACE) + ("" if first is None else f" AND ({first})")
    rows = snapshot.scan(test, columns=[OBJECT_ID, *names])
    assert rows is not None
    keys = list(zip(*(value_keys(rows.column(name)) for name in names), strict=True))
    found: dict[Key, str] = {}
    for item, key in sorted(zip(rows.column(OBJECT_ID).to_pylist(), keys, strict=True)):
        depth = item.count("$")
        if item.startswith(f"{spec_namespace(spec.id)}$") and depth <= len(names):
            found.setdefault(key[:depth], item)
    return found


def _beneath_known(derived: str, key: Key, known: Mapping[Key, str]) -> str:
    """An id with as many of its namespaces as there are already; each must be inside the one before."""
    path = derived.split("$")
    for depth in range(1, len(key) + 1):
        name = known.get(key[:depth])
        if name is None or name.rpartition("$")[0] != "$".join(path[:depth]):
            break
        path[depth] = name.rpartition("$")[2]
    return "$".join(path)


def existing(
    snapshot: Snapshot, metadata: TableMetadata, wanted: Sequence[tuple[PartitionSpec, Key, tuple[pa.Scalar, ...]]]
) -> dict[tuple[int, Key], Leaf]:
    """The existing leaves of some partition values, of this client or another."""
    found: dict[tuple[int, Key], Leaf] = {}
    for spec in {spec.id: spec for spec, _, _ in wanted}.values():
        keys = [(key, values) for other, key, values in wanted if other.id == spec.id]
        rows = _remembered(snapshot, metadata, spec, [key for key, _ in keys])
        if rows is None:
            rows = candidates(snapshot, spec, _listed(spec, keys), whole=True)
        found |= {(spec.id, item.key): item for item in as_leaves(snapshot, spec, rows, metadata)}
    return found


def _remembered(
    snapshot: Snapshot, metadata: TableMetadata, spec: PartitionSpec, keys: Sequence[Key]
) -> pa.Table | None:
    """The rows of leaves that we named ourselves, if the snapshot knows them all."""
    if spec.id != metadata.spec.id:
        return None
    return snapshot.remembered([identifier(metadata, key) for key in keys])


def named(
    snapshot: Snapshot, metadata: TableMetadata, spec: PartitionSpec, identifiers: Sequence[str]
) -> tuple[Leaf, ...]:
    """The leaves with some ids, as the snapshot has them."""
    return tuple(as_leaves(snapshot, spec, snapshot.table_of(identifiers), metadata))


def measured(root: Root, leaf: Leaf) -> Stats:
    """The size of a leaf whose row does not record it; one that can't be opened counts as empty."""
    try:
        handle = leaf_handle.open_leaf(root, leaf.location, leaf.read_version)
    except UnreadableError:
        return Stats(rows=0, bytes=0, fragments=0)
    count, size, fragments = leaf_handle.measure(handle)
    return Stats(rows=count, bytes=size, fragments=fragments)


def _listed(spec: PartitionSpec, wanted: Sequence[tuple[tuple[str, ...], tuple[pa.Scalar, ...]]]) -> str | None:
    """A filter that leaves in the leaves with some partition values, as far as they can be listed."""
    tests = []
    for index, one in enumerate(spec.fields):
        scalars = {key[index]: values[index] for key, values in wanted}
        if len(scalars) > _MOST_LISTED:
            continue
        column = quote_identifier(partition_column(one.field_id))
        texts = [quote_literal(scalar) for scalar in scalars.values() if scalar.is_valid]
        choices = [f"{column} IN ({', '.join(texts)})"] if texts else []
        if not all(scalar.is_valid for scalar in scalars.values()):
            choices.append(f"{column} IS NULL")
        tests.append(f"({' OR '.join(choices)})")
    return " AND ".join(tests) or None
