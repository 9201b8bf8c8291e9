"""Indices of a table: declared once, built in leaves in one commit, kept up with new rows, and dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lancepart.commit import verbs
from lancepart.commit.transaction import Transaction
from lancepart.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
)
from lancepart.layout.declared_indices import AUTO, BOTH, LEAF, TABLE, Index, declared, kind_of
from lancepart.layout.leaves import Leaf
from lancepart.maintain import indices, leaf_tasks, table_index
from lancepart.maintain.index_places import leaves_of, living
from lancepart.maintain.indices import Declaring
from lancepart.maintain.leaf_maintenance import TARGET_ROWS, MaintenanceResult, new_versions, strong
from lancepart.maintain.leaf_maintenance import compact as compact_leaves
from lancepart.maintain.leaf_tasks import Indexing, LeafPlace
from lancepart.maintain.local import LOCAL
from lancepart.model.aliases import Value
from lancepart.model.schema import field_id
from lancepart.model.suggest import near
from lancepart.model.values import logical_type
from lancepart.read.engine import Executor
from lancepart.read.search_bounds import LEAF_BYTES
from lancepart.storage.manifest import Manifest

SCOPES = (AUTO, LEAF, TABLE)
MANY_TEXTS = 20_000
"""Indexing so many short texts in memory took 0.3 s, which every process spends again without an index on disk."""


def create_index(
    manifest: Manifest,
    column: str,
    kind: str | None = None,
    *,
    scope: str = AUTO,
    where: str | None = None,
    name: str | None = None,
    executor: Executor = LOCAL,
    progress: bool = True,
    params: Mapping[str, Value],
) -> MaintenanceResult:
    """Build an index, in the leaves that are large enough, over the whole table, or both, and declare it in one commit.

    Until then nobody sees anything of it, and an index that it replaces serves on.
    """
    opening = strong(manifest, "index")
    index = _checked(opening, column, kind, scope, where, name, params)
    before = next((each for each in declared(opening.snapshot) if each.name == index.name), None)
    _refuse_other_column(opening, index, before)
    late = not index.is_over_rows and before is not None and before.in_leaves
    ready = index if index.scope == LEAF or late else table_index.built(opening, index, executor)
    done = _built(opening, ready, replaces=before is not None, executor=executor, progress=progress)
    if index.scope == LEAF or not late:
        return replace(done, changed=done.changed + len(ready.segments))
    return _looked_up(done, manifest, index, executor)


def _looked_up(done: MaintenanceResult, manifest: Manifest, index: Index, executor: Executor) -> MaintenanceResult:
    """Build a look-up of keys after leaves lost the index that it replaces: it knows them by their versions."""
    opening = strong(manifest, "index")
    whole = table_index.built(opening, index, executor)
    opening.declares = indices.replacing(index, whole)
    return replace(done, changed=done.changed + len(whole.segments), version=opening.commit())


def _built(
    opening: Transaction, index: Index, *, replaces: bool, executor: Executor, progress: bool
) -> MaintenanceResult:
    """Build an index in its leaves, and declare it in the same commit; where it replaces one, the others lose that."""
    wanted = leaves_of(opening, index) if index.in_leaves else ()
    names = {leaf.object_id for leaf in wanted}

    def task(place: LeafPlace) -> Indexing:
        return Indexing(place=place, index=index, wanted=place.leaf.object_id in names, replaces=replaces)

    leaves = opening.plan(None).leaves if replaces else wanted
    return new_versions(
        opening,
        leaves,
        leaf_tasks.build_index,
        task,
        executor=executor,
        progress=progress,
        together=True,
        declares=indices.declaring(index),
    )


def _refuse_other_column(opening: Transaction, index: Index, before: Index | None) -> None:
    """Refuse the name of an index on another column."""
    if before is None or before.column == index.column:
        return
    known = opening.metadata.columns.get(before.column)
    whose = "a dropped column" if known is None else f"column {known.name!r}"
    raise TableIndexAlreadyExistsError(
        f"index {index.name!r} is on {whose}: drop it first, or give this one another name"
    )


def _checked(
    opening: Transaction,
    column: str,
    kind: str | None,
    scope: str,
    where: str | None,
    name: str | None,
    params: Mapping[str, Value],
) -> Index:
    """The index with the requested definition, if it can be built."""
    if column not in opening.metadata.schema.names:
        known = opening.metadata.schema.names
        raise TableColumnNotFoundError(
            f"there is no column {column!r} to index: the table has {', '.join(known)}{near(str(column), known)}"
        )
    if scope not in SCOPES:
        raise InvalidInputError(f"scope is {scope!r}: use one of {', '.join(SCOPES)}")
    field = opening.metadata.schema.field(column)
    wanted = indices.default_kind(field.type) if kind is None else kind_of(kind)
    index = Index(
        name=name or f"{column}_idx", column=field_id(field) or 0, kind=wanted, params=dict(params), where=where
    )
    indices.check(index, field.type)
    leaves = opening.plan(verbs.filter_of(opening, where)).leaves
    if scope == TABLE:
        table_index.check(index)
        if where is not None:
            raise InvalidInputError("an index over the whole table takes no where: use scope='leaf'")
        _refuse_too_few(index, leaves, given=kind is not None, whole=True)
        return replace(index, scope=TABLE)
    wide = scope == AUTO and where is None and _is_worth_whole(index, leaves, field.type)
    if not wide:
        _refuse_too_few(index, leaves, given=kind is not None)
    return replace(index, scope=BOTH if wide else LEAF)


def _is_worth_whole(index: Index, leaves: tuple[Leaf, ...], data_type: pa.DataType) -> bool:
    """Whether leaves together hold more vectors than a search keeps in memory, so that an index over all pays.

    Or so many texts that each process would spend more than a moment on indexing them in memory.
    """
    rows = sum(leaf.stats.rows for leaf in leaves if leaf.stats is not None)
    if not index.is_over_rows or len(leaves) < 2:
        return False
    if not index.is_vector:
        return rows >= MANY_TEXTS
    kind = logical_type(data_type)
    width = kind.list_size * kind.value_type.bit_width // 8
    return bool(rows * width > LEAF_BYTES)


def _refuse_too_few(index: Index, leaves: tuple[Leaf, ...], *, given: bool, whole: bool = False) -> None:
    """Refuse an index of an explicit kind if no partition, or the whole table, has enough rows for it."""
    sizes = [leaf.stats.rows for leaf in leaves if leaf.stats is not None]
    least, most = indices.least_rows(index), sum(sizes) if whole else max(sizes, default=0)
    if not given or index.kind == "IVF_FLAT" or len(sizes) < len(leaves) or not any(sizes) or most >= least:
        return
    served, found = ("tables", "this one") if whole else ("partitions", "the largest")
    raise InvalidInputError(
        f"{index.kind} serves {served} of at least {least} rows, and {found} has {most}: "
        "so few are searched exactly, and faster, without an index"
    )


def _on_leaves(
    opening: Transaction,
    index: Index,
    action: Callable[[Any], int | None],
    *,
    executor: Executor,
    progress: bool,
    declares: Declaring | None,
) -> MaintenanceResult:
    """Do something to an index of leaves, and declare what it is now, in one commit."""

    def task(place: LeafPlace) -> Indexing:
        return Indexing(place=place, index=index)

    leaves = leaves_of(opening, index) if index.in_leaves else ()
    return new_versions(
        opening, leaves, action, task, executor=executor, progress=progress, together=True, declares=declares
    )


def optimize_indices(manifest: Manifest, *, executor: Executor = LOCAL, progress: bool = True) -> MaintenanceResult:
    """Extend the declared indices to rows and partitions added since they were built."""
    done = MaintenanceResult(action="optimize_indices")
    for index in living(strong(manifest, "optimize_indices")):
        opening = strong(manifest, "optimize_indices")
        newer = index if index.scope == LEAF else table_index.optimized(opening, index, executor)
        found = _on_leaves(
            opening,
            index,
            leaf_tasks.optimize_index,
            executor=executor,
            progress=progress,
            declares=None if newer == index else indices.replacing(index, newer),
        )
        done = replace(
            done,
            changed=done.changed + found.changed + (newer != index),
            skipped=tuple(dict.fromkeys((*done.skipped, *found.skipped))),
            version=found.version or done.version,
        )
    return done


def compact(
    manifest: Manifest, *, target_rows: int = TARGET_ROWS, executor: Executor = LOCAL, progress: bool = True
) -> MaintenanceResult:
    """Compact leaves, with their indices; then those over the whole table cover the rows that moved by a part more."""
    done = compact_leaves(manifest, target_rows=target_rows, executor=executor, progress=progress)
    for index in living(strong(manifest, "compact")) if done.changed else ():
        opening = strong(manifest, "compact")
        newer = index if index.scope == LEAF or not index.segments else table_index.followed(opening, index, executor)
        if newer != index:
            opening.declares = indices.replacing(index, newer)
            done = replace(done, version=opening.commit())
    return done


def drop_index(
    manifest: Manifest, name: str, *, executor: Executor = LOCAL, progress: bool = True
) -> MaintenanceResult:
    """Remove an index from all leaves, and declare it no longer, in one commit."""
    known = {index.name: index for index in declared(manifest.snapshot())}
    if name not in known:
        raise TableIndexNotFoundError(f"there is no index {name!r}: the table has {', '.join(known) or 'none'}")
    everywhere = replace(known[name], where=None, scope=LEAF)
    opening = strong(manifest, "drop_index")
    done = _on_leaves(
        opening,
        everywhere,
        leaf_tasks.drop_index,
        executor=executor,
        progress=progress,
        declares=indices.forgetting(name),
    )
    return replace(done, changed=done.changed + bool(known[name].segments))
