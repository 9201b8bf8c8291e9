"""An index of key values, for finding the rows of a leaf that have one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.commit.dense_keys import DenseKeys
from lancepart.errors import InvalidInputError
from lancepart.model.values import decoded, logical_type

Level: TypeAlias = tuple[pa.Array, npt.NDArray[np.int64]]
"""The distinct values of one column, and the pairs with the columns before it that occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIndex:
    """Distinct keys of one or more columns; a key with a NULL in it is like no other, as in SQL.

    For each column its distinct values, and the pairs of a number for the columns before it and of a value's position
    that occur: so a key becomes one number column by column, without collisions. ``rows`` are the positions in the data
    of the last numbers. ``dense`` finds keys of one integer column without all that, if they lie close together.
    """

    levels: tuple[Level, ...]
    rows: npt.NDArray[np.int64]
    dense: DenseKeys | None = None

    @classmethod
    def of(cls, keys: pa.Table) -> KeyIndex:
        """Index the keys of some rows, which must not repeat."""
        levels: list[Level] = []
        codes = np.zeros(keys.num_rows, dtype=np.int64)
        whole = np.ones(keys.num_rows, dtype=bool)
        columns = _columns(keys)
        for column in columns:
            distinct = column.unique().drop_null()
            pairs, valid = _pairs(codes, column, distinct)
            whole &= valid
            known = np.unique(pairs[whole])
            levels.append((distinct, known))
            codes = np.searchsorted(known, pairs)
        _refuse_doubles(keys, codes, whole)
        rows = np.full(len(levels[-1][1]), -1, dtype=np.int64)
        rows[codes[whole]] = np.flatnonzero(whole)
        return cls(levels=tuple(levels), rows=rows, dense=DenseKeys.of(columns[0]) if len(columns) == 1 else None)

    def contains(self, keys: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows of a table have one of the keys."""
        found: npt.NDArray[np.bool_] = self.find(keys) >= 0
        return found

    def find(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        """The positions in the data of the keys of a table's rows; -1 for keys that it lacks."""
        columns = _columns(keys)
        if self.dense is not None and self.dense.kind == columns[0].type:
            return self.dense.find(columns[0])
        codes = np.zeros(keys.num_rows, dtype=np.int64)
        whole = np.ones(keys.num_rows, dtype=bool)
        for column, (distinct, known) in zip(columns, self.levels, strict=True):
            pairs, valid = _pairs(codes, column, distinct)
            codes = np.searchsorted(known, pairs)
            there = codes < len(known)
            there[there] &= known[codes[there]] == pairs[there]
            whole &= valid & there
        found = np.full(keys.num_rows, -1, dtype=np.int64)
        found[whole] = self.rows[codes[whole]]
        return found


def check_types(schema: pa.Schema, on: Sequence[str]) -> None:
    """Refuse columns whose values can't be compared for equality."""
    for name in on:
        kinds = list(_leaves(logical_type(schema.field(name).type)))
        wrong = [kind for kind in kinds if pa.types.is_nested(kind)]
        if wrong:
            raise InvalidInputError(
                f"column {name!r} can't be part of a key, since it holds {wrong[0]}: use columns of single values"
            )


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    if not pa.types.is_struct(kind) or not kind.num_fields:
        yield kind
        return
    for at in range(kind.num_fields):
        yield from _leaves(logical_type(kind.field(at).type))


def _columns(keys: pa.Table) -> list[pa.Array]:
    """The columns of a key without encodings, those of structs one by one, in types that Arrow can look up."""
    return [part for column in keys.columns for part in _parts(decoded(column))]


def _parts(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(array.type):
        inner = [decoded(pc.struct_field(array, [at])) for at in range(array.type.num_fields)]
        return [part for each in inner for part in _parts(each)]
    return [array.cast(pa.float32()) if pa.types.is_float16(array.type) else array]


def _pairs(
    codes: npt.NDArray[np.int64], column: pa.Array, distinct: pa.Array
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    positions = pc.index_in(column, distinct)
    valid = positions.is_valid().to_numpy(zero_copy_only=False) & column.is_valid().to_numpy(zero_copy_only=False)
    filled = pc.fill_null(positions, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes.astype(np.int64) * (len(distinct) + 1) + filled, valid


def _refuse_doubles(keys: pa.Table, codes: npt.NDArray[np.int64], whole: npt.NDArray[np.bool_]) -> None:
    found, counts = np.unique(codes[whole], return_counts=True)
    if (counts > 1).any():
        at = int(np.flatnonzero(whole & (codes == found[counts > 1][0]))[0])
        raise InvalidInputError(
            f"the key {keys.slice(at, 1).to_pylist()[0]} appears more than once in the data: keep one row of each key, "
            "or name more columns in on"
        )
