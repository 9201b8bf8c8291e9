"""Writes whose rows are written by many processes and published by one.

Tasks write fragments only, each for itself: what a leaf is called and where it lives follows from the job, so they need
not talk. Whoever planned the job commits what the tasks that succeeded report; what others wrote is garbage.
"""

from __future__ import annotations

import random
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lancepart.commit import verbs
from lancepart.commit.keys import KeyIndex
from lancepart.commit.once import Once
from lancepart.commit.transaction import Transaction
from lancepart.commit.work import Staged, StaleReadError, Work
from lancepart.errors import InvalidInputError
from lancepart.storage.manifest import RETRY_SECONDS, Manifest
from lancepart.storage.root import Root
from lancepart.write.conform import batches
from lancepart.write.route import route

APPEND, OVERWRITE, REPLACE, WHERE, UPSERT = "append", "overwrite", "replace", "where", "upsert"
MODES = (APPEND, OVERWRITE, REPLACE, WHERE, UPSERT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A write as planned at one snapshot: plain values, so that its tasks can run elsewhere.

    ``overwrite`` replaces the partitions that the rows touch, ``replace`` the whole table, ``where`` the rows that a
    filter matches, ``upsert`` those that have one of the rows' keys.
    """

    root: Root
    version: int
    mode: str = APPEND
    where: str | None = None
    on: tuple[str, ...] = ()
    once: Once | None = None
    done: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def operation(self) -> str:
        """What the commit is called in the table's history."""
        return OVERWRITE if self.mode in (REPLACE, WHERE) else self.mode

    def transaction(self, manifest: Manifest, version: int | None) -> Transaction:
        """A transaction under the job's own id, which all its tasks share."""
        return Transaction(manifest=manifest, operation=self.operation, once=self.once, version=version, id=self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one task wrote for one partition."""

    key: tuple[str, ...]
    values: tuple[Any, ...]
    location: str
    staged: Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one task wrote, and the keys of its rows if the job needs them."""

    parts: tuple[Part, ...] = ()
    keys: Any = None
    rows: int = 0


def plan(
    manifest: Manifest,
    *,
    mode: str = APPEND,
    where: str | None = None,
    on: Sequence[str] = (),
    once: Once | None = None,
) -> Job:
    """Plan a write, and refuse what can't be done before any task starts."""
    if mode not in MODES:
        raise InvalidInputError(f"mode is {mode!r}: use one of {', '.join(MODES)}")
    transaction = Transaction(manifest=manifest, operation=mode, once=once)
    if mode == WHERE:
        verbs.filter_of(transaction, where)
    if mode == UPSERT:
        verbs.check_key(transaction, on)
    done = once is not None and once.is_done(transaction.snapshot)
    return Job(
        root=manifest.root,
        version=transaction.snapshot.version,
        mode=mode,
        where=where,
        on=tuple(on),
        once=once,
        done=done,
    )


def write(job: Job, data: Any) -> Report:
    """One task: write its rows into the directories of their partitions."""
    if job.done:
        return Report()
    transaction = job.transaction(Manifest(job.root), job.version)
    metadata = transaction.metadata
    predicate = verbs.filter_of(transaction, job.where) if job.mode == WHERE else None
    found: list[Part] = []
    keys, rows = [], 0
    for chunk in batches(data, metadata.plain_schema):
        if predicate is not None:
            verbs.matching(chunk, predicate, str(job.where))
        rows += chunk.num_rows
        if job.on:
            keys.append(chunk.select(list(job.on)))
        routed = list(route(chunk, metadata.schema, transaction.spec))
        works = transaction.work_for(routed)
        staged = transaction.over(
            list(zip(works, routed, strict=True)), lambda pair: _staged(pair[0], pair[1].rows, pair[1])
        )
        found += staged
    return Report(parts=tuple(found), keys=pa.concat_tables(keys) if keys else None, rows=rows)


def _staged(work: Work, rows: Any, part: Any) -> Part:
    staged = work.stage([rows])
    assert staged is not None
    return Part(key=part.key, values=part.values, location=work.location, staged=staged)


def commit(manifest: Manifest, job: Job, reports: Iterable[Report]) -> int | None:
    """Publish what the tasks wrote, again on a newer snapshot if what it depends on changed meanwhile."""
    if job.done:
        return manifest.snapshot().version
    told = list(reports)
    deadline = time.monotonic() + RETRY_SECONDS
    version: int | None = job.version
    while True:
        transaction = job.transaction(manifest, version)
        try:
            adopt(transaction, job, told)
            return transaction.commit()
        except StaleReadError:
            if time.monotonic() > deadline:
                raise
            version = None
            time.sleep(random.uniform(0, 0.05))


def adopt(transaction: Transaction, job: Job, reports: Sequence[Report]) -> None:
    """Make what tasks wrote part of a transaction."""
    groups: dict[tuple[str, ...], list[Part]] = defaultdict(list)
    for part in (part for report in reports for part in report.parts):
        groups[part.key].append(part)
    index: KeyIndex | None = None
    works: list[Work] = []
    if job.mode == REPLACE:
        verbs.replace_all(
            transaction,
            [transaction.work_on(leaf) for leaf in transaction.plan(None, binding=transaction.all_specs).leaves],
        )
    elif job.mode == WHERE:
        transaction.delete_matching(verbs.filter_of(transaction, job.where), binding=transaction.all_specs)
    elif job.mode == UPSERT and (keys := [report.keys for report in reports if report.keys is not None]):
        index, works = verbs.remove_keys(transaction, pa.concat_tables(keys))
    targets = transaction.work_for([parts[0] for parts in groups.values()])
    if job.mode == OVERWRITE:
        verbs.replace_all(transaction, targets)
    transaction.over(list(zip(targets, groups.values(), strict=True)), lambda pair: _add(*pair))
    if job.mode == OVERWRITE:
        for work in targets:
            work.replaced = True
        verbs.clear_older(transaction, set(groups))
    if index is not None:
        verbs.guard_keys([*works, *targets], job.on, index)


def _add(work: Work, parts: Sequence[Part]) -> None:
    """Take fragments into a leaf; if they were written for another directory, their rows are copied."""
    here = [part.staged for part in parts if part.location == work.location]
    elsewhere = [part for part in parts if part.location != work.location]
    if here:
        work.add(here)
    for part in elsewhere:
        work.append([work.read_staged(part.location, part.staged)])
