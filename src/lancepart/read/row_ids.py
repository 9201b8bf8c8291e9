"""Row ids: one number for the leaf, the fragment and the offset of a row, valid at one snapshot.

The leaf is given by its position among all leaves of the snapshot, so an id is invalid once leaves are added, removed
or compacted.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.nested import path_of, project
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.read.leaf import ADDRESS, LeafTask
from lancepart.storage.snapshot import Snapshot

ROW_ID = "_rowid"
FIELD = pa.field(ROW_ID, pa.uint64(), nullable=False)

_LEAF_BITS, _FRAGMENT_BITS, _OFFSET_BITS = 20, 20, 24
_ADDRESS_OFFSET = 32

Ids = npt.NDArray[np.uint64]


def leaf_numbers(snapshot: Snapshot, metadata: TableMetadata) -> dict[str, int]:
    """The number of each leaf of a snapshot by its object id."""
    return {item.object_id: at for at, item in enumerate(planner.numbered(snapshot, metadata))}


def encode(number: int, addresses: Ids, leaf: Leaf) -> Ids:
    """The ids of rows of one leaf, given their addresses.

    Fragments that have numbers of the table are counted from the first of these that the leaf has.
    """
    fragments = (addresses >> np.uint64(_ADDRESS_OFFSET)) - np.uint64(leaf.first_fragment)
    offsets = addresses & np.uint64((1 << _ADDRESS_OFFSET) - 1)
    fits = number < 1 << _LEAF_BITS
    if len(addresses):
        fits = fits and fragments.max() < 1 << _FRAGMENT_BITS and offsets.max() < 1 << _OFFSET_BITS
    if not fits:
        raise UnsupportedOperationError(
            f"rows of leaf {leaf.object_id!r} have no row id: ids hold {1 << _LEAF_BITS:,} leaves, "
            f"{1 << _FRAGMENT_BITS:,} fragments of each and {1 << _OFFSET_BITS:,} rows of each fragment"
        )
    high = np.uint64(number << (_FRAGMENT_BITS + _OFFSET_BITS))
    return high | (fragments << np.uint64(_OFFSET_BITS)) | offsets


def leaves_of(ids: Ids) -> npt.NDArray[np.int64]:
    """The numbers of the leaves that ids are of."""
    return (ids >> np.uint64(_FRAGMENT_BITS + _OFFSET_BITS)).astype(np.int64)


def decode(ids: Ids, leaves: Sequence[Leaf]) -> Ids:
    """The address in its leaf of each id."""
    firsts = np.array([leaf.first_fragment for leaf in leaves], dtype=np.uint64)
    fragments = (ids >> np.uint64(_OFFSET_BITS)) & np.uint64((1 << _FRAGMENT_BITS) - 1)
    fragments += firsts[leaves_of(ids)]
    return (fragments << np.uint64(_ADDRESS_OFFSET)) | (ids & np.uint64((1 << _OFFSET_BITS) - 1))


def parse_ids(row_ids: object) -> Ids:
    """Ids as a user gives them: a list, a numpy array, or a column of Arrow, pandas or Polars."""
    given: object = row_ids.to_pylist() if isinstance(row_ids, pa.Array | pa.ChunkedArray) else row_ids
    try:
        if not isinstance(given, Iterable):
            raise TypeError(type(given).__name__)
        return np.array([operator.index(value) for value in given], dtype=np.uint64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(
            f"row_ids is {row_ids!r}: give a list of the numbers in {ROW_ID!r} of a scan(with_row_id=True)"
        ) from None


def read_with_ids(task: LeafTask, numbers: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """The matching rows of a leaf in the columns of the task, one of which may be their ids."""
    plain = task.metadata.plain_schema
    wanted = [name for name in task.columns if name != ROW_ID]
    tops = tuple(dict.fromkeys((path_of(name, plain) or (name,))[0] for name in wanted))
    for batch in reading.with_addresses(replace(task, columns=tops)):
        ids = encode(numbers[task.leaf.object_id], batch.column(ADDRESS).to_numpy(), task.leaf)
        rows = project(batch.drop_columns([ADDRESS]), wanted).append_column(FIELD, pa.array(ids))
        yield rows.select(list(task.columns))


def refuse_taken(names: Sequence[str]) -> None:
    """Refuse row ids in a table that has a column of their name."""
    if ROW_ID in names:
        raise InvalidInputError(f"the table has a column {ROW_ID!r} of its own: rename it to read row ids")
