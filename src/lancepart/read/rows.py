"""Some rows of a table: those with given ids, or some drawn at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.read.hits import Hits
from lancepart.read.row_ids import FIELD, ROW_ID, decode, encode, leaves_of, parse_ids
from lancepart.read.scan import Scan
from lancepart.read.search_leaves import SearchLeaves
from lancepart.storage import search as storage


def take(scan: Scan, row_ids: object) -> pa.Table:
    """The rows with some ids, in their order; an id that no row has at the scan's snapshot is refused."""
    ids = parse_ids(row_ids)
    numbers, leaves = leaves_of(ids), SearchLeaves(scan)
    beyond = np.flatnonzero(numbers >= len(leaves.leaves))
    if len(beyond):
        raise InvalidInputError(
            f"there is no row with the id {int(ids[beyond[0]])} at snapshot {scan.snapshot.version}: ids are valid at "
            "the snapshot they were read at, so give its version"
        )
    return _shown(scan, leaves, Hits.of(numbers, decode(ids, leaves.leaves), np.zeros(len(ids))))


def sample(scan: Scan, n: int, seed: int | None) -> pa.Table:
    """Rows of a scan drawn at random without repetition, in random order; all of them if there are fewer than n."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidInputError(f"n is {n!r}: give a whole number from 0 up")
    generator = np.random.default_rng(seed)
    leaves = SearchLeaves(scan)
    allowed = leaves.over(leaves.positions, leaves.matching_addresses)
    counts = [_rows(leaves, at) if found is None else len(found) for at, found in enumerate(allowed)]
    ends = np.cumsum([0, *counts])
    drawn = generator.choice(int(ends[-1]), min(int(n), int(ends[-1])), replace=False)
    hits = []
    for at in sorted(set((np.searchsorted(ends, drawn, side="right") - 1).tolist())):
        own = np.flatnonzero((drawn >= ends[at]) & (drawn < ends[at + 1]))
        offsets = drawn[own] - ends[at]
        found, opened = allowed[at], leaves.opened(at)
        assert opened is not None
        addresses = storage.addresses_at(opened.handle, offsets) if found is None else found[offsets]
        hits.append(Hits.of(at, addresses, np.zeros(len(own)), own))
    chosen = Hits.together(hits)
    return _shown(scan, leaves, chosen.at(np.argsort(chosen.query)))


def _rows(leaves: SearchLeaves, at: int) -> int:
    stats = leaves.leaves[at].stats
    if stats is not None and leaves.leaves[at].read_version is not None:
        return stats.rows
    opened = leaves.opened(at)
    return 0 if opened is None else int(opened.handle.count_rows())


def _shown(scan: Scan, leaves: SearchLeaves, hits: Hits) -> pa.Table:
    rows = leaves.rows(hits, [name for name in scan.schema.names if name != ROW_ID or not scan.with_row_id])
    if not scan.with_row_id:
        return rows
    whole = SearchLeaves(replace(scan, where=None, planned=None)).leaves
    positions = {leaf.object_id: at for at, leaf in enumerate(whole)}
    ids = np.zeros(len(hits), dtype=np.uint64)
    for at in np.unique(hits.leaf):
        leaf = leaves.leaves[int(at)]
        own = hits.leaf == at
        ids[own] = encode(positions[leaf.object_id], hits.address[own], leaf)
    return rows.append_column(FIELD, pa.array(ids))
