"""Transactions: changes to many leaves, prepared in detached versions and published in one commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TypeVar, overload

import pyarrow as pa

from lancepart.commit import lookup, manifest_changes, merging, upserts, verbs
from lancepart.commit.frame_writer import frame_writer
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.merge import Merge
from lancepart.commit.publish import publisher_of
from lancepart.commit.reads import Read
from lancepart.commit.result import CommitResult
from lancepart.commit.watch import WriterEntry
from lancepart.commit.write_job import APPEND, OVERWRITE, UPSERT, WHERE, WriteJob, adopt
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.format.records import Signature, Stats
from lancepart.layout import create
from lancepart.layout.capabilities import Capabilities
from lancepart.layout.declared_indices import Index
from lancepart.layout.layouts import capabilities
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import RowSource
from lancepart.model.html_text import html_record
from lancepart.model.ids import leaf_location
from lancepart.model.parameters import Parameters, with_update_values
from lancepart.model.predicate import Filter, Predicate
from lancepart.model.public import public
from lancepart.model.spec import PartitionSpec
from lancepart.model.where import Condition, Where, text_of, update_texts
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.read import leaf as reading
from lancepart.read.leaf import LeafTask
from lancepart.read.scan import Scan
from lancepart.storage.manifest import Manifest
from lancepart.storage.snapshot import Snapshot
from lancepart.write.conform import named
from lancepart.write.frames import AUTO, is_spark

SNAPSHOT, SERIALIZABLE = "snapshot", "serializable"
THREADS = 8
_MOST_LISTED = 200

Item = TypeVar("Item")
Done = TypeVar("Done")


@public("abandon", "append", "commit", "delete", "isolation", "merge", "overwrite", "scan", "update", "upsert")
@dataclass
class Transaction:
    """Reads one snapshot and its own writes; nothing of it is visible to others before ``commit``.

    ``since`` is the snapshot at which the first of its files was written, if that was an earlier one.
    """

    manifest: Manifest
    isolation: str = SNAPSHOT
    """``"snapshot"`` or ``"serializable"``."""
    operation: str = "transaction"
    idempotency: IdempotencyKey | None = None
    version: int | None = None
    since: int | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    began: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        if self.isolation not in (SNAPSHOT, SERIALIZABLE):
            raise InvalidInputError(f"isolation is {self.isolation!r}: use {SNAPSHOT!r} or {SERIALIZABLE!r}")
        self.snapshot: Snapshot = self.manifest.snapshot(self.version)
        self.metadata: TableMetadata = create.load(self.snapshot)
        self.works: dict[str, LeafChanges] = {}
        self.reads: list[Read] = []
        self.needs: int | None = None
        self.known: list[str] = []
        self.fenced = False
        self.updated = 0
        self.declares: Callable[[tuple[Index, ...]], tuple[Index, ...]] | None = None
        self.entry: WriterEntry | None = None
        self.closed = False
        self.planned_on = self.snapshot.version
        self.user = manifest_changes.who()
        if self.idempotency is not None and self.weak:
            raise UnsupportedOperationError("an idempotency key needs a table with transactions='strong'")

    def _about(self) -> dict[str, object]:
        changed = sum(1 for work in self.works.values() if work.is_changed)
        state = "closed" if self.closed else "open"
        return {"state": state, "snapshot": self.snapshot.version, "isolation": self.isolation, "partitions": changed}

    def __repr__(self) -> str:
        about = ", ".join(f"{name}={value!r}" for name, value in self._about().items())
        return f"Transaction({self.manifest.root.uri!r}, {about})"

    def _repr_html_(self) -> str:
        return html_record(f"transaction on {self.manifest.root.uri}", self._about())

    @property
    def weak(self) -> bool:
        """Whether each leaf is committed on its own."""
        return not self.capabilities.transactions

    @property
    def capabilities(self) -> Capabilities:
        """What the table can do."""
        return capabilities(self.metadata)

    @property
    def signature(self) -> Signature:
        """What each of the transaction's rows says of it: by this it is recognised."""
        return Signature(transaction=self.id, operation=self.operation, by=self.user)

    @property
    def spec(self) -> PartitionSpec:
        """The spec that rows are written under."""
        return self.metadata.spec

    def scan(
        self,
        where: Where = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        params: Parameters | None = None,
    ) -> Scan:
        """Read the snapshot with the transaction's own changes in it."""
        self._check_open()
        scan = Scan.of(self.manifest.root, self.snapshot, self.metadata, where, columns, limit, params=params)
        return replace(scan, planned=self.plan(scan.predicate))

    @property
    def all_specs(self) -> frozenset[int]:
        """The ids of all specs."""
        return frozenset(spec.id for spec in self.metadata.specs)

    @property
    def older_specs(self) -> frozenset[int]:
        """The ids of older specs; only writers that have not seen the newest still use them."""
        return self.all_specs - {self.spec.id}

    def plan(self, predicate: Predicate | None, *, binding: frozenset[int] | None = None) -> Plan:
        """The leaves to read for a filter, each at the transaction's own version of it.

        Leaves of the specs that ``binding`` names must be the same when the transaction commits, whatever its
        isolation; that it is given at all means that the specs must be.
        """
        return self._with_changes(planner.plan(self.snapshot, self.metadata, predicate), predicate, binding)

    def _with_changes(self, planned: Plan, predicate: Predicate | None, binding: frozenset[int] | None) -> Plan:
        """A plan with the transaction's own versions of leaves, entered as one of its reads."""
        bound = self.all_specs if self.isolation == SERIALIZABLE else binding
        self.reads.append(Read(predicate=predicate, plan=planned, binding=bound))
        leaves = [
            self.works[leaf.object_id].as_leaf() if leaf.object_id in self.works else leaf for leaf in planned.leaves
        ]
        leaves += [work.as_leaf() for work in self.works.values() if work.is_new]
        return replace(planned, leaves=tuple(leaves))

    def bind_specs(self) -> None:
        """Fail the commit if the partition spec changed meanwhile."""
        nothing = Plan(version=self.snapshot.version, leaves=())
        self.reads.append(Read(predicate=None, plan=nothing, binding=frozenset()))

    def append(self, data: RowSource) -> None:
        """Add rows."""
        with self._whole():
            if not self._adopted(APPEND, data):
                verbs.append(self, data)

    def overwrite(self, data: RowSource, where: Filter | Where = None) -> None:
        """Replace the partitions that the data touches, or the rows that a filter matches."""
        where = self._filter(where)
        with self._whole():
            if not self._adopted(OVERWRITE if where is None else WHERE, data, where=where):
                verbs.overwrite(self, data, where)

    def delete(self, where: Filter | Condition, *, params: Parameters | None = None) -> None:
        """Remove the rows that match; ``params`` are the values of ``$name`` in the filter."""
        with self._whole():
            verbs.delete(self, self._filter(where, params))

    def update(self, set: Mapping[str, str], where: Filter | Where = None, *, params: Parameters | None = None) -> None:
        """Set columns to SQL expressions in the rows that match."""
        with self._whole():
            if isinstance(where, Predicate):
                verbs.update(self, with_update_values(set, None, params)[0], where)
            else:
                verbs.update(self, *update_texts(set, where, self._columns, params))

    @overload
    def _filter(self, where: Filter | Condition, params: Parameters | None = None) -> Filter: ...
    @overload
    def _filter(self, where: Filter | Where, params: Parameters | None = None) -> Filter | None: ...
    def _filter(self, where: Filter | Where, params: Parameters | None = None) -> Filter | None:
        """A filter as the tree that it is, or as SQL."""
        return where if isinstance(where, Predicate) else text_of(where, self._columns, params)

    def _columns(self) -> pa.Schema:
        return self.metadata.plain_schema

    def upsert(self, data: RowSource, on: Sequence[str]) -> None:
        """Replace the rows that have the same key, and add the others."""
        with self._whole():
            if not self._adopted(UPSERT, data, on=on):
                verbs.upsert(self, data, on)

    def merge(self, source: RowSource, on: Sequence[str]) -> Merge:
        """Match rows of a source by key; say what happens to them, and end with ``execute()``."""

        def run(merge: Merge, key: str | None) -> CommitResult | None:
            if key is not None:
                raise InvalidInputError("give the idempotency key to the transaction, not to an operation inside it")
            with self._whole():
                merging.run(self, merge)
            return None

        return Merge(source=source, on=on, run=run)

    def _adopted(self, mode: str, data: RowSource, *, where: Filter | None = None, on: Sequence[str] = ()) -> bool:
        """Whether the data is Spark's, whose executors then write it, unless they would need the transaction's rows."""
        if not is_spark(data):
            return False
        partial = False
        if mode == UPSERT:
            upserts.check_key(self.metadata.plain_schema, on)
            unnamed = frozenset(self.metadata.schema.names) - named(data, self.metadata.plain_schema)
            upserts.require_key(on, unnamed)
            partial = bool(unnamed)
        if partial and (self.weak or self.works):
            return False
        job = WriteJob(
            root=self.manifest.root,
            version=self.snapshot.version,
            mode=mode,
            where=verbs.filter_of(self, where),
            on=tuple(on),
            partial=partial,
            id=self.id,
        )
        adopt(self, job, frame_writer().stage(job, data, self.metadata.plain_schema, AUTO))
        return True

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Undo a change that fails, so that the transaction can continue without it."""
        self._check_open()
        before = {key: copy(work) for key, work in self.works.items()}
        try:
            yield
        except BaseException:
            if not self.weak:
                self.works = before
            raise

    def task(self, item: Leaf, predicate: Predicate | None, columns: Iterable[str]) -> LeafTask:
        """What to read of a leaf."""
        return LeafTask(
            root=self.manifest.root, metadata=self.metadata, leaf=item, columns=tuple(columns), predicate=predicate
        )

    def delete_matching(self, predicate: Predicate | None, *, binding: frozenset[int] | None = None) -> None:
        """Remove the rows that a filter matches, from leaves that match entirely without reading them."""
        kept, partly = planner.plan_partly(self.snapshot, self.metadata, predicate)
        planned = self._with_changes(kept, predicate, binding)
        read = [item for item in planned.leaves if item.object_id in partly or item.object_id in self.works]
        held = verbs.holding(self, read, predicate)
        found = self.over(held, lambda item: reading.matching_addresses(self.task(item, predicate, ())))
        for item, addresses in zip(held, found, strict=True):
            if len(addresses):
                self.work_on(item).delete(addresses)
        known = {item.object_id for item in read}
        whole = [item for item in planned.leaves if item.object_id not in known]
        self.over([self.work_on(item) for item in whole if item.stats is None or item.stats.rows], LeafChanges.clear)

    def over(self, items: Sequence[Item], action: Callable[[Item], Done]) -> list[Done]:
        """Do something for each item, on threads."""
        if len(items) < 2:
            return [action(item) for item in items]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(action, items))

    def work_on(self, item: Leaf) -> LeafChanges:
        """The transaction's own state of a leaf that exists."""
        if item.object_id not in self.works:
            self._enter()
            self.works[item.object_id] = LeafChanges(
                root=self.manifest.root,
                metadata=self.metadata,
                object_id=item.object_id,
                spec_id=item.spec_id,
                key=item.key,
                values=(),
                location=item.location,
                leaf=item,
                head=item.read_version,
                stats=item.stats or lookup.measured(self.manifest.root, item),
                weak=self.weak,
                new_location=leaf_location(self.id, item.object_id),
            )
        return self.works[item.object_id]

    def work_for(self, parts: Sequence[lookup.Partition]) -> list[LeafChanges]:
        """The transaction's own state of the partitions of some rows, those that do not exist among them."""
        self._enter()
        known = lookup.existing(self.snapshot, self.metadata, [(self.spec, part.key, part.values) for part in parts])
        fresh = [part for part in parts if (self.spec.id, part.key) not in known]
        names = lookup.identifiers(self.manifest, self.snapshot, self.metadata, fresh) if fresh else {}
        works = []
        for part in parts:
            item = known.get((self.spec.id, part.key))
            if item is not None:
                works.append(self.work_on(item))
                works[-1].know_values(part.values)
                continue
            identifier = names[part.key]
            if identifier not in self.works:
                self.works[identifier] = self._new_work(identifier, part)
            works.append(self.works[identifier])
        return works

    def _enter(self) -> None:
        """From the first leaf that it works on, let collectors know of the transaction once it has taken long."""
        if self.entry is None and not self.weak:
            self.entry = WriterEntry(self.manifest.root, self.signature, since=self.first_snapshot, began=self.began)
        if self.entry is not None:
            self.entry.keep()

    def abandon(self) -> None:
        """End the transaction, whether or not it was committed."""
        self.closed = True
        if self.entry is not None:
            self.entry.end()

    def _new_work(self, identifier: str, part: lookup.Partition) -> LeafChanges:
        return LeafChanges(
            root=self.manifest.root,
            metadata=self.metadata,
            object_id=identifier,
            spec_id=self.spec.id,
            key=part.key,
            values=part.values,
            location=leaf_location(self.id, identifier),
            leaf=None,
            head=None,
            stats=Stats(rows=0, bytes=0, fragments=0),
            weak=self.weak,
        )

    def commit(self) -> CommitResult | None:
        """Publish all changes at once; the new snapshot's version and what was done, ``None`` in weak mode."""
        self._check_open()
        self.closed = True
        try:
            changed = [work for work in self.works.values() if work.is_changed]
            return publisher_of(self, changed).publish()
        finally:
            self.abandon()

    @property
    def first_snapshot(self) -> int:
        """The snapshot that was the latest when the first file was written."""
        return self.snapshot.version if self.since is None else min(self.since, self.snapshot.version)

    @property
    def is_fencing(self) -> bool:
        """Whether the commit writes the fence because it depends on what it read."""
        bound = self.isolation == SERIALIZABLE or any(read.binding for read in self.reads)
        return self.fenced or bound or self.needs is not None

    def _check_open(self) -> None:
        if self.closed:
            raise UnsupportedOperationError("the transaction is closed: begin another one")

    def __enter__(self) -> Transaction:
        if self.weak:
            raise UnsupportedOperationError("a transaction needs a table with transactions='strong'")
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None and not self.closed:
            self.commit()
        self.abandon()
