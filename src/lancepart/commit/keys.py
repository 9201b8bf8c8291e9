"""Keys of rows, for telling which rows of a leaf have one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIndex:
    """Distinct keys of one or more columns; a key with a NULL in it is like no other, as in SQL.

    For each column its distinct values, and which pairs of a number for the columns before it and of a value's
    place occur: so a key becomes one number column by column, and none can be mistaken for another.
    """

    levels: tuple[tuple[Any, Any], ...]

    @classmethod
    def of(cls, keys: Any) -> KeyIndex:
        """Index the keys of some rows, which must not repeat."""
        levels: list[tuple[Any, Any]] = []
        codes = np.zeros(keys.num_rows, dtype=np.int64)
        whole = np.ones(keys.num_rows, dtype=bool)
        for name in keys.schema.names:
            column = keys.column(name).combine_chunks()
            distinct = column.unique().drop_null()
            pairs, valid = _pairs(codes, column, distinct)
            whole &= valid
            known = np.unique(pairs[whole])
            levels.append((distinct, known))
            codes = np.searchsorted(known, pairs)
        _refuse_doubles(keys, codes, whole)
        return cls(levels=tuple(levels))

    def contains(self, keys: Any) -> Any:
        """Which rows of a table have one of the keys."""
        codes = np.zeros(keys.num_rows, dtype=np.int64)
        whole = np.ones(keys.num_rows, dtype=bool)
        for name, (distinct, known) in zip(keys.schema.names, self.levels, strict=True):
            pairs, valid = _pairs(codes, keys.column(name).combine_chunks(), distinct)
            codes = np.searchsorted(known, pairs)
            there = codes < len(known)
            there[there] &= known[codes[there]] == pairs[there]
            whole &= valid & there
        return whole


def _pairs(codes: Any, column: Any, distinct: Any) -> tuple[Any, Any]:
    places = pc.index_in(column, distinct)
    valid = places.is_valid().to_numpy(zero_copy_only=False) & column.is_valid().to_numpy(zero_copy_only=False)
    filled = pc.fill_null(places, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes.astype(np.int64) * (len(distinct) + 1) + filled, valid


def _refuse_doubles(keys: Any, codes: Any, whole: Any) -> None:
    found, counts = np.unique(codes[whole], return_counts=True)
    if (counts > 1).any():
        at = int(np.flatnonzero(whole & (codes == found[counts > 1][0]))[0])
        raise InvalidInputError(f"the key {keys.slice(at, 1).to_pylist()[0]} stands more than once in the data")
