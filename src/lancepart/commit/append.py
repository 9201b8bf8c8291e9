"""Appending rows: staged in every leaf first, then made visible, all at once in strong mode."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lancepart.commit import leaves, rows
from lancepart.commit.leaves import Staged
from lancepart.errors import CommitConflictError, LanceNamespaceError
from lancepart.layout.leaves import DATASET, Leaf, as_leaves, candidates, partition_column
from lancepart.layout.metadata import READ_VERSION, STRONG, TableMetadata, read_metadata
from lancepart.model.ids import leaf_location, object_id, partition_name
from lancepart.model.quoting import quote_identifier, quote_literal
from lancepart.model.spec import PartitionSpec
from lancepart.storage import leafdata
from lancepart.storage.manifest import Manifest
from lancepart.storage.rows import Change
from lancepart.storage.snapshot import Snapshot
from lancepart.write.conform import batches
from lancepart.write.route import Part, route

THREADS = 8
_MOST_LISTED = 200


@dataclass
class Append:
    """One append: its rows are staged once, and committed again and again until they are in."""

    manifest: Manifest
    snapshot: Snapshot
    metadata: TableMetadata
    transaction: str = field(default_factory=lambda: uuid.uuid4().hex)
    staged: dict[tuple[str, ...], Staged] = field(default_factory=dict)
    committed: dict[tuple[str, int | None], int] = field(default_factory=dict)

    @property
    def spec(self) -> PartitionSpec:
        """The spec that the rows are written under."""
        return self.metadata.spec

    def stage(self, data: Any) -> None:
        """Split the data by partition and write it to the leaves' directories; nothing is visible yet."""
        with ThreadPoolExecutor(THREADS) as pool:
            for chunk in batches(data, self.metadata.plain_schema):
                parts = list(route(chunk, self.metadata.schema, self.spec))
                stage = partial(self._stage, known=self.leaves(self.snapshot, parts))
                for part, staged in zip(parts, pool.map(stage, parts), strict=True):
                    held = self.staged.get(part.key)
                    self.staged[part.key] = staged if held is None else held.plus(staged)

    def _stage(self, part: Part, *, known: dict[tuple[str, ...], Leaf]) -> Staged:
        root = self.manifest.root
        leaf = known.get(part.key)
        if leaf is not None:
            held = self.staged.get(part.key)
            return leaves.stage_existing(root, self.metadata, leaf, part, held=held)
        identifier = self.identifier(part.key)
        return leaves.stage_new(root, self.metadata, identifier, leaf_location(self.transaction, identifier), part)

    def identifier(self, key: tuple[str, ...]) -> str:
        """The id that a new leaf with these values gets."""
        names = [partition_name(self.metadata.salt, self.spec.id, key[: depth + 1]) for depth in range(len(key))]
        return object_id([f"v{self.spec.id}", *names, DATASET])

    def leaves(self, snapshot: Snapshot, parts: Iterable[Any]) -> dict[tuple[str, ...], Leaf]:
        """The leaves that exist for some partition values, whoever named them."""
        where = _listed(self.spec, list(parts))
        found = candidates(snapshot, self.spec, where)
        return {leaf.key: leaf for leaf in as_leaves(snapshot, self.spec, found, self.metadata)}

    def commit(self) -> int | None:
        """Make the staged rows visible; the snapshot's version in strong mode."""
        if not self.staged:
            return self.snapshot.version if self.metadata.transactions == STRONG else None
        if self.metadata.transactions == STRONG:
            return self.manifest.commit(self._plan)[1]
        self._commit_weakly()
        return None

    def _plan(self, snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        read_metadata(snapshot.properties, has_read_version=True, root=self.manifest.root.uri)
        known = self.leaves(snapshot, self.staged.values())
        for key, staged in list(self.staged.items()):
            self.staged[key] = self._rebased(staged, known.get(key))
        with ThreadPoolExecutor(THREADS) as pool:
            versions = list(pool.map(lambda item: self._version(item, known.get(item.key)), self.staged.values()))
        fresh = [staged for staged in self.staged.values() if staged.is_new]
        inserts, updates = rows.missing_namespaces(snapshot, self.spec, fresh), []
        for staged, version in zip(self.staged.values(), versions, strict=True):
            more, changed = rows.of_append(self, staged, known.get(staged.key), version)
            inserts += more
            updates += changed
        return Change(inserts=tuple(inserts), updates=tuple(updates)), None

    def _rebased(self, staged: Staged, leaf: Leaf | None) -> Staged:
        """What was staged, for the leaf as it is now."""
        if leaf is None:
            if not staged.is_new:
                raise CommitConflictError(
                    f"partition {staged.object_id!r} was dropped by another writer", partitions=(staged.object_id,)
                )
            return staged
        if staged.is_new or leaf.location != staged.location:
            return leaves.restaged(self.manifest.root, self.metadata, staged, leaf)
        return leaves.rebased(self.manifest.root, self.metadata, staged, leaf)

    def _version(self, staged: Staged, leaf: Leaf | None) -> int:
        """A version of the leaf with the staged rows in it, made once for each base."""
        done = self.committed.get((staged.location, staged.base))
        if done is None:
            root = self.manifest.root
            if staged.is_new:
                done = leafdata.create_leaf(root, staged.location, staged.shape.schema, staged.fragments.items)
            else:
                done = leafdata.append(root, staged.location, staged.fragments.items, base=staged.base)
            self.committed[staged.location, staged.base] = done
        return done

    def _commit_weakly(self) -> None:
        written: list[str] = []
        for staged in self.staged.values():
            try:
                self._commit_leaf(staged)
            except LanceNamespaceError as error:
                done = ", ".join(written) or "none"
                raise type(error)(
                    f"partition {staged.object_id!r} was not written ({error}); written so far: {done}"
                ) from error
            written.append(staged.object_id)

    def _commit_leaf(self, staged: Staged) -> None:
        root = self.manifest.root
        if not staged.is_new:
            leafdata.append(root, staged.location, staged.fragments.items, base=None)
            return
        leafdata.create_leaf(root, staged.location, staged.shape.schema, staged.fragments.items)

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, Leaf | None]:
            winner = self.leaves(snapshot, [staged]).get(staged.key)
            if winner is not None:
                return Change(), winner
            missing = rows.missing_namespaces(snapshot, self.spec, [staged])
            return Change(inserts=(*missing, rows.leaf_row(self.spec, staged, {}))), None

        winner = self.manifest.transact(plan)
        if winner is not None:
            again = leaves.restaged(root, self.metadata, staged, winner)
            leafdata.append(root, again.location, again.fragments.items, base=None)


def append(manifest: Manifest, data: Any) -> int | None:
    """Append rows in one commit; the new snapshot's version, ``None`` in weak mode."""
    snapshot = manifest.snapshot()
    has_read_version = snapshot.schema is not None and READ_VERSION.name in snapshot.schema.names
    metadata = read_metadata(snapshot.properties, has_read_version=has_read_version, root=manifest.root.uri)
    job = Append(manifest=manifest, snapshot=snapshot, metadata=metadata)
    job.stage(data)
    return job.commit()


def _listed(spec: PartitionSpec, parts: list[Any]) -> str | None:
    """A filter that leaves in the leaves with some partition values, as far as they can be listed."""
    tests = []
    for index, one in enumerate(spec.fields):
        scalars = {part.key[index]: part.values[index] for part in parts}
        if len(scalars) > _MOST_LISTED:
            continue
        column = quote_identifier(partition_column(one.field_id))
        texts = [quote_literal(scalar) for scalar in scalars.values() if scalar.as_py() is not None]
        choices = [f"{column} IN ({', '.join(texts)})"] if texts else []
        if any(scalar.as_py() is None for scalar in scalars.values()):
            choices.append(f"{column} IS NULL")
        tests.append(f"({' OR '.join(choices)})")
    return " AND ".join(tests) or None
