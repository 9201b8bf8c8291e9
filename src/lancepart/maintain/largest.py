"""Some leaves, the largest or named ones, found without a value for each of the others: there may be a million."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.format.names import OBJECT_ID, of_ids
from lancepart.layout import create
from lancepart.layout.layouts import as_leaves, candidates
from lancepart.layout.leaves import Leaf, recorded_sizes
from lancepart.layout.metadata import TableMetadata
from lancepart.plan import planner
from lancepart.storage.snapshot import Snapshot, literals


def largest(snapshot: Snapshot, most: int) -> list[Leaf]:
    """So many leaves of a snapshot, the largest first; a leaf of which the manifest records no rows counts as empty."""
    metadata = create.load(snapshot)
    found = _by_columns(snapshot, metadata, most)
    leaves = planner.plan(snapshot, metadata, None).leaves if found is None else found
    return sorted(leaves, key=_rows, reverse=True)[:most]


def named(snapshot: Snapshot, ids: Sequence[str]) -> list[Leaf]:
    """The leaves with these ids, in this order."""
    if not ids:
        return []
    metadata = create.load(snapshot)
    found: dict[str, Leaf] = {}
    for spec in metadata.specs:
        rows = candidates(snapshot, spec, of_ids(literals(ids)))
        mine = rows.filter(pc.is_in(rows.column(OBJECT_ID), value_set=pa.array(ids, pa.string())))
        found |= {leaf.object_id: leaf for leaf in as_leaves(snapshot, spec, mine, metadata)}
    if missing := [each for each in ids if each not in found]:
        raise InvalidInputError(f"there is no leaf {missing[0]!r}: give the object_id of inspect.partitions()")
    return [found[each] for each in ids]


def _by_columns(snapshot: Snapshot, metadata: TableMetadata, most: int) -> list[Leaf] | None:
    """The largest leaves of each spec version; ``None`` where the manifest does not record all sizes."""
    leaves: list[Leaf] = []
    for spec in metadata.specs:
        rows = candidates(snapshot, spec, None)
        sizes = recorded_sizes(snapshot, rows, metadata)
        if sizes is None:
            return None
        counts = sizes.column("rows").to_numpy()
        chosen = rows.take(pa.array(np.argsort(-counts, kind="stable")[:most]))
        leaves += as_leaves(snapshot, spec, chosen, metadata)
    return leaves


def _rows(leaf: Leaf) -> int:
    return 0 if leaf.stats is None else leaf.stats.rows
