"""Table-wide indices: over all leaves as one dataset, or a look-up of the leaves that hold a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np
import pyarrow as pa

from lancepart.commit.transaction import Transaction
from lancepart.errors import InvalidInputError
from lancepart.layout.declared_indices import TEXT_KIND, Index, declared
from lancepart.layout.leaves import Leaf
from lancepart.maintain import indices
from lancepart.maintain.local import LOCAL
from lancepart.model.schema import field_id
from lancepart.read import leaf as reading
from lancepart.read import union, union_sources
from lancepart.read.engine import Executor
from lancepart.read.key_lookup import HeldLeaves, compare, recorded_keys, spelled
from lancepart.read.leaf import LeafTask
from lancepart.read.search_union import numbering
from lancepart.storage import table_index
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.table_index import KEY, LEAF, Segment
from lancepart.storage.translate import UntrainedError, storage_errors

MOST_SEGMENTS = 4
LOOKUPS = ("BTREE",)


def check(index: Index) -> None:
    """Refuse a kind that can't be over a whole table."""
    if not index.is_over_rows and index.kind not in LOOKUPS:
        raise InvalidInputError(
            f"{index.kind} can't be over the whole table: vectors (IVF_…), texts (FTS) and single values "
            f"({', '.join(LOOKUPS)}) can"
        )


def built(opening: Transaction, index: Index, executor: Executor = LOCAL) -> Index:
    """An index with one part over all rows of its leaves."""
    return _extended(opening, index, (), executor)


def optimized(opening: Transaction, index: Index, executor: Executor = LOCAL) -> Index:
    """An index that also covers rows added since; merged into one segment if they are many, or segments are several."""
    segments = _segments(opening, index)
    lost = len(segments) < len(index.segments)
    if lost or not segments or len(segments) >= MOST_SEGMENTS or _counts_other_rows(opening, index, segments):
        fresh = _extended(opening, index, (), executor)
        return fresh if lost or fresh.segments else index
    return _extended(opening, index, segments, executor)


def followed(opening: Transaction, index: Index, executor: Executor = LOCAL) -> Index:
    """An index whose parts cover rows that moved, by a part over these alone; parts that cover none any more go.

    One of texts stays as it is: its scores are exact only after all of it is built again, which is for upkeep.
    """
    if index.kind == TEXT_KIND:
        return index
    leaves, parts = _leaves(opening), _segments(opening, index)
    if index.is_over_rows:
        keys = {key for pair in _fragment_keys(opening, leaves) for key in pair}
        used = [part for part in parts if keys & part.fragments.keys()]
    else:
        held = _held(opening, leaves, parts)
        used = [part for part, each in zip(parts, held, strict=True) if _holds_any(each, leaves)]
    return _extended(opening, index, used, executor)


def _segments(opening: Transaction, index: Index) -> tuple[Segment, ...]:
    found = (table_index.usable(opening.manifest.root, name) for name in index.segments)
    return tuple(each for each in found if each is not None)


def _leaves(opening: Transaction) -> list[Leaf]:
    found = opening.plan(None).leaves
    return [leaf for leaf in found if leaf.read_version is not None and (leaf.stats is None or leaf.stats.rows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBuilding:
    """A part of an index to build, over what those of its parts that stay do not cover at a snapshot."""

    root: Root
    version: int
    index: Index


def build_part(work: PartBuilding) -> str | None:
    """Build a part of an index where this runs; its name, None if there is nothing to index."""
    opening = Transaction(manifest=Manifest(work.root), operation="index", version=work.version)
    return _part(opening, work.index, _segments(opening, work.index))


def _part(opening: Transaction, index: Index, before: Sequence[Segment]) -> str | None:
    return _over_union(opening, index, before) if index.is_over_rows else _lookup(opening, index, before)


def _extended(opening: Transaction, index: Index, before: Sequence[Segment], executor: Executor) -> Index:
    """An index with a part more, which one task of the executor builds if others do its work."""
    kept = replace(index, segments=tuple(each.name for each in before))
    if executor.is_distributed:
        work = PartBuilding(root=opening.manifest.root, version=opening.snapshot.version, index=kept)
        made = executor.map(build_part, [work], "indexing")[0]
    else:
        made = _part(opening, index, before)
    return kept if made is None else replace(kept, segments=(*kept.segments, made))


def _over_union(opening: Transaction, index: Index, before: Sequence[Segment]) -> str | None:
    """Index the fragments that no part covers yet; the name of the new part, None if these are too few."""
    root, metadata, leaves, name = opening.manifest.root, opening.metadata, _leaves(opening), _new_name()
    covered = {key for segment in before for key in segment.fragments}
    if before and not _has_new(opening, leaves, covered):
        return None
    known = numbering(root, [each for each in declared(opening.snapshot) if before or each.name != index.name])
    uri = root.uri_of(table_index.place_of(name))
    shown = union.UnionRows(root=root, metadata=metadata, leaves=leaves, snapshot=opening.snapshot)
    whole = union.of_leaves(shown, union.UnionOptions(uri=uri, known=known, by_table=True))
    fresh = {keys[1]: number for number, keys in whole.states.items() if union.covered_key(keys, covered) is None}
    rows = _rows(whole, fresh)
    params = indices.fitted(index, rows)
    if params is None or not fresh:
        return None
    column = _physical(whole, opening, index)
    try:
        with storage_errors("build an index over the table", root):
            made = table_index.build(whole.dataset, column, index.kind, sorted(fresh.values()), params)
    except UntrainedError:
        return None
    table_index.write(root, name, made, fresh)
    return name


def _new_name() -> str:
    """A name for a part; collectors of earlier releases, which do not know who declares it, leave such names alone."""
    return f"p{uuid4().hex}"


def _has_new(opening: Transaction, leaves: Sequence[Leaf], covered: set[str]) -> bool:
    """Whether a leaf has a fragment that no part covers."""
    return any(union.covered_key(each, covered) is None for each in _fragment_keys(opening, leaves))


def _fragment_keys(opening: Transaction, leaves: Sequence[Leaf]) -> list[tuple[str, str]]:
    """The keys of all fragments of leaves."""
    return [each for found in union_sources.over(leaves, lambda leaf: _keys_of(opening, leaf)) for each in found]


def _keys_of(opening: Transaction, leaf: Leaf) -> list[tuple[str, str]]:
    handle = reading.open_leaf(_task(opening, leaf))
    return [union.fragment_keys(leaf.location, item.metadata) for item in handle.get_fragments()]


def _held(opening: Transaction, leaves: Sequence[Leaf], parts: Sequence[Segment]) -> list[HeldLeaves]:
    """The leaves of which the parts of a look-up hold just the keys that they have now."""
    found = [HeldLeaves(part, exactly=True) for part in parts]
    compare(opening.snapshot, leaves, found)
    return found


def _holds_any(held: HeldLeaves, leaves: Sequence[Leaf]) -> bool:
    return any(held.number_of(leaf) is not None for leaf in leaves)


def _counts_other_rows(opening: Transaction, index: Index, segments: Sequence[Segment]) -> bool:
    """Whether an index of texts counts rows in its scores that were deleted or rewritten since."""
    if index.kind != TEXT_KIND:
        return False
    now = {keys[1] for keys in _fragment_keys(opening, _leaves(opening))}
    return any(key not in now for segment in segments for key in segment.fragments)


def _rows(whole: union.Union, fresh: Mapping[str, int]) -> int:
    numbers = set(fresh.values())
    return sum(item.count_rows() for item in whole.dataset.get_fragments() if item.fragment_id in numbers)


def _physical(whole: union.Union, opening: Transaction, index: Index) -> str:
    names = {
        field_id(field): name for field, name in zip(opening.metadata.schema, whole.dataset.schema.names, strict=True)
    }
    return str(names[index.column])


def _task(opening: Transaction, leaf: Leaf, columns: tuple[str, ...] = ()) -> LeafTask:
    return LeafTask(root=opening.manifest.root, metadata=opening.metadata, leaf=leaf, columns=columns, predicate=None)


def _lookup(opening: Transaction, index: Index, before: Sequence[Segment]) -> str | None:
    """Write the keys of leaves of which no part holds just these."""
    found = _leaves(opening)
    held = _held(opening, found, before)
    leaves = [leaf for leaf in found if all(each.number_of(leaf) is None for each in held)]
    if not leaves:
        return None
    column = opening.metadata.columns[index.column].name
    name = _new_name()
    parts = union_sources.over(list(enumerate(leaves)), lambda item: _keys(opening, column, *item))
    versions = [(leaf.location, leaf.read_version or 0) for leaf in leaves]
    known = recorded_keys(opening.snapshot, leaves)
    fragments = [spelled(leaf, known.get(leaf.location) or _keys_of(opening, leaf)) for leaf in leaves]
    table_index.write_lookup(opening.manifest.root, name, pa.concat_tables(parts), versions, fragments)
    return name


def _keys(opening: Transaction, column: str, number: int, leaf: Leaf) -> pa.Table:
    """The distinct keys of a leaf."""
    kind = opening.metadata.plain_schema.field(column).type
    found = list(reading.read(_task(opening, leaf, (column,))))
    values = pa.chunked_array([batch.column(0) for batch in found], kind).unique()
    return pa.table({KEY: values, LEAF: pa.array(np.full(len(values), number, dtype=np.int32))})
