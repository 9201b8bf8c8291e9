"""Sample values that show how an expression behaves."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from lancepart.model.expression_plans import widest_type
from lancepart.model.values import logical_type

_INTEGERS = [0, 1, 5, 34, 100, 127, -1, -7]
_FLOATS = [0.0, 0.5, -1.25, float(np.float32(0.1)), 1e6]


def sample_of(source_type: pa.DataType) -> pa.Array | None:
    """Some value of a type, as an array; None if there is no sample of that type."""
    for plain in (pa.array(["a"]), pa.array([1], pa.int64()), pa.array([1], pa.int32()), pa.array([b"a"])):
        try:
            return plain.cast(source_type)
        except pa.ArrowException:
            continue
    return None


def probes(source_types: Sequence[pa.DataType]) -> tuple[list[pa.Array], list[pa.Array]]:
    """The same few values in a narrow and a wide form of each type."""
    pairs = [_probe(logical_type(source_type)) for source_type in source_types]
    rows = max(len(narrow) for narrow, _ in pairs)
    turns = [np.arange(position, position + rows) for position in range(len(pairs))]
    narrows = [narrow.take(pa.array(turn % len(narrow))) for (narrow, _), turn in zip(pairs, turns, strict=True)]
    wides = [wide.take(pa.array(turn % len(wide))) for (_, wide), turn in zip(pairs, turns, strict=True)]
    return narrows, wides


def _probe(kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_unsigned_integer(kind):
        return _both([value for value in _INTEGERS if value >= 0], pa.uint32(), pa.uint64())
    if pa.types.is_integer(kind):
        return _both(_INTEGERS, pa.int32(), pa.int64())
    if pa.types.is_floating(kind):
        return _both(_FLOATS, pa.float32(), pa.float64())
    if pa.types.is_decimal(kind) and kind.bit_width < 256:
        smallest = [Decimal(value).scaleb(-kind.scale) for value in (0, 1, -1)]
        return _both(smallest, pa.decimal128(kind.precision, kind.scale), pa.decimal128(38, kind.scale))
    return _both([None], widest_type(kind), widest_type(kind))


def _both(values: Sequence[object], narrow: pa.DataType, wide: pa.DataType) -> tuple[pa.Array, pa.Array]:
    return pa.array(values, narrow), pa.array(values, wide)
