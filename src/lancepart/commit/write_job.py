"""What the tasks of a distributed write report, and how a transaction adopts it."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit import verbs
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.leaf_writes import Staged
from lancepart.commit.upsert_keys import KeyIndex
from lancepart.errors import CommitConflictError
from lancepart.layout.leaves import Leaf, by_identity
from lancepart.model.predicate import Predicate
from lancepart.storage.root import Root

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction

APPEND, OVERWRITE, REPLACE, WHERE, UPSERT = "append", "overwrite", "replace", "where", "upsert"
ROWS = "rows"
MODES = (APPEND, OVERWRITE, REPLACE, WHERE, UPSERT, ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """A write as planned at one snapshot: plain values, so that its tasks can run elsewhere.

    ``overwrite`` replaces the partitions that the rows touch, ``replace`` the whole table, ``where`` the rows that a
    filter matches, ``upsert`` those that have one of the rows' keys, and ``rows`` those that tasks report,
    found by reading with the filter, so that it can't be done again on a newer snapshot. Neither can an upsert of rows
    that name only some columns, which is ``partial``: its tasks read the others. ``name`` is its name in the history,
    ``file_bytes`` the size at which tasks begin another file.
    """

    root: Root
    version: int
    mode: str = APPEND
    where: Predicate | None = None
    on: tuple[str, ...] = ()
    idempotency: IdempotencyKey | None = None
    done: bool = False
    name: str | None = None
    partial: bool = False
    file_bytes: int | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    began: float = field(default_factory=time.time)

    @property
    def operation(self) -> str:
        """What the commit is called in the table's history."""
        return self.name or (OVERWRITE if self.mode in (REPLACE, WHERE) else self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPartition:
    """What one task wrote for one partition."""

    key: tuple[str, ...]
    values: tuple[pa.Scalar, ...]
    location: str
    staged: Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What one task wrote, and the keys of its rows if the job needs them.

    ``gone`` are the rows that go: their addresses, by the identity of the leaf that they were read from.
    """

    parts: tuple[StagedPartition, ...] = ()
    keys: pa.Table | None = None
    rows: int = 0
    gone: Mapping[int, npt.NDArray[np.uint64]] = field(default_factory=dict)


def adopt(transaction: Transaction, job: WriteJob, reports: Sequence[WriteResult]) -> None:
    """Make what tasks wrote part of a transaction."""
    groups: dict[tuple[str, ...], list[StagedPartition]] = defaultdict(list)
    for part in (part for report in reports for part in report.parts):
        groups[part.key].append(part)
    index: KeyIndex | None = None
    works: list[LeafChanges] = []
    if job.mode == REPLACE:
        verbs.replace_all(
            transaction,
            [transaction.work_on(leaf) for leaf in transaction.plan(None, binding=transaction.all_specs).leaves],
        )
    elif job.mode == WHERE:
        transaction.delete_matching(verbs.filter_of(transaction, job.where), binding=transaction.all_specs)
    elif job.mode == ROWS:
        read = transaction.plan(verbs.filter_of(transaction, job.where), binding=transaction.all_specs)
        _remove(transaction, read.leaves, reports)
    elif job.mode == UPSERT and (keys := [report.keys for report in reports if report.keys is not None]):
        index, matches = verbs.find_keys(transaction, pa.concat_tables(keys))
        works = verbs.remove(transaction, matches)
    targets = transaction.work_for([parts[0] for parts in groups.values()])
    if job.mode == OVERWRITE:
        verbs.replace_all(transaction, targets)
    transaction.over(list(zip(targets, groups.values(), strict=True)), lambda pair: _add(*pair))
    if job.mode == OVERWRITE:
        for work in targets:
            work.claim_all()
        verbs.clear_older(transaction, set(groups))
    if index is not None:
        verbs.guard_keys([*works, *targets], job.on, index)


def _remove(transaction: Transaction, read: Sequence[Leaf], reports: Sequence[WriteResult]) -> None:
    """Remove rows from the leaves that they were read from; a row that two tasks name is removed once.

    A leaf that the statement did not read, or not at this version, is a conflict: addresses are valid in one version.
    """
    found: dict[int, list[npt.NDArray[np.uint64]]] = defaultdict(list)
    for report in reports:
        for identity, addresses in report.gone.items():
            found[identity].append(addresses)
    leaves = by_identity(read) if found else {}
    if unknown := found.keys() - leaves.keys():
        raise CommitConflictError(
            f"rows were read from {len(unknown)} partitions that snapshot {transaction.snapshot.version} does not "
            "have, or has at another version: the table was replaced or changed meanwhile"
        )
    works = [(transaction.work_on(leaves[each]), np.unique(np.concatenate(rows))) for each, rows in found.items()]
    transaction.over(works, lambda pair: pair[0].delete(pair[1]))


def _add(work: LeafChanges, parts: Sequence[StagedPartition]) -> None:
    """Take fragments into a leaf; if they were written for another directory, their rows are copied."""
    here = [part.staged for part in parts if part.location == work.location]
    elsewhere = [part for part in parts if part.location != work.location]
    if here:
        work.add(here)
    for part in elsewhere:
        work.append([work.read_staged(part.location, part.staged)])
