"""The indices that a table's owner declared, recorded so that maintenance can build them again."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.layout.declared_indices import Index, check_params
from lancepart.model.aliases import JsonMapping
from lancepart.model.values import logical_type


def _is_single(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(logical_type(kind)) and not pa.types.is_dictionary(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_vector(kind: pa.DataType) -> bool:
    stored = logical_type(kind)
    if not pa.types.is_fixed_size_list(stored):
        return False
    return bool(pa.types.is_floating(stored.value_type) or pa.types.is_uint8(stored.value_type))


_KINDS: tuple[tuple[tuple[str, ...], str, Callable[[pa.DataType], bool]], ...] = (
    (("ZONEMAP",), "single values", lambda kind: not pa.types.is_nested(logical_type(kind))),
    (("BTREE", "BITMAP", "BLOOMFILTER"), "single values without an encoding", _is_single),
    (("INVERTED",), "text", lambda kind: _is_text(kind) or (_is_list(kind) and _is_text(kind.value_type))),
    (("NGRAM",), "text", _is_text),
    (
        ("LABEL_LIST",),
        "lists of single values",
        lambda kind: _is_list(kind) and not pa.types.is_nested(kind.value_type),
    ),
    (
        ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"),
        "vectors, which are lists of a fixed length of floats or of uint8",
        _is_vector,
    ),
)


LEAST_VECTORS = 4_096
"""Leaves with fewer rows are searched faster one by one.

CPU ms of a leaf row by row and by its index: 1.6 and 1.7 for 1,000 rows of 64 numbers, 2.0 and 1.9 for 4,000, 3.6 and
2.7 for 8,000 (``python -m benchmarks.search_rules memory``).
"""
_LEAST_TRAINED = 256
_SHARE, _PART_ROWS, _MOST_ROWS = 4, 350, 2_048
"""An index has the root of its rows / 4 parts, and more where these would be larger: a search reads 20 of them.

Those of a leaf have about 350 rows while that makes no more parts than the root of the rows. Where a search reads the
parts of one leaf only, these are still a larger share than 20 parts of one index over all leaves.
"""


def fitted(index: Index, rows: int, *, in_leaf: bool = False) -> JsonMapping | None:
    """The parameters of an index over a number of rows; None where they are too few for it to pay off.

    An explicit number of partitions is used as given, except for quantizers that need rows to train on.
    """
    if not index.is_vector:
        return index.params if rows else None
    if rows < least_rows(index):
        return None
    finer = min(round(rows**0.5), rows // _PART_ROWS) if in_leaf else 0
    return {"num_partitions": max(1, round(rows**0.5 / _SHARE), rows // _MOST_ROWS, finer), **index.params}


def least_rows(index: Index) -> int:
    """The number of rows from which an index pays off."""
    if not index.is_vector:
        return 1
    if "num_partitions" not in index.params:
        return LEAST_VECTORS
    return 1 if index.kind in ("IVF_FLAT", "IVF_HNSW_FLAT") else _LEAST_TRAINED


def default_kind(data_type: pa.DataType) -> str:
    """The default kind of index for a column of a type; text columns get one for equality and ranges."""
    for kind, test in (("IVF_FLAT", _is_vector), ("LABEL_LIST", _is_list), ("BITMAP", pa.types.is_boolean)):
        if test(data_type):
            return kind
    return "BTREE"


def check(index: Index, data_type: pa.DataType) -> None:
    """Refuse a kind that no filter or search could use on a column of a type, and what can't be written down."""
    wanted = {kind: what for kinds, what, _ in _KINDS for kind in kinds}
    if index.kind not in wanted:
        raise InvalidInputError(f"index kind {index.kind!r} is unknown: use {', '.join([*wanted, 'FTS'])}")
    if not fits(index.kind, data_type):
        raise InvalidInputError(f"{index.kind} is an index on {wanted[index.kind]}, and not on {data_type}")
    check_params(index.params)
    try:
        json.dumps(dict(index.params))
    except TypeError:
        raise InvalidInputError(f"the parameters of index {index.name!r} must be numbers, texts or lists") from None


def fits(kind: str, data_type: pa.DataType) -> bool:
    """Whether a known kind of index can be on values of a type."""
    return any(kind in kinds and test(data_type) for kinds, _, test in _KINDS)


Declaring = Callable[[tuple[Index, ...]], tuple[Index, ...]]
"""How a commit changes the declared indices, as the latest snapshot has them."""


def declaring(index: Index) -> Declaring:
    """Declare an index, in place of one of the same name."""
    return lambda known: (*(each for each in known if each.name != index.name), index)


def replacing(index: Index, newer: Index) -> Declaring:
    """Declare an index in place of another, unless others changed or dropped that meanwhile."""
    return lambda known: tuple(newer if each == index else each for each in known)


def forgetting(name: str) -> Declaring:
    """Declare an index no longer."""
    return lambda known: tuple(each for each in known if each.name != name)
