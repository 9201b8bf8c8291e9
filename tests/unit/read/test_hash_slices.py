from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancepart.model.hashing import bucket
from lancepart.read.hash_slices import WHOLE

PARTS = [finer for part in WHOLE.finer() for finer in part.finer()]


def test_the_whole_is_left_alone() -> None:
    batch = pa.record_batch({"k": [1, 2]})

    assert WHOLE.rows(batch, [(0, pa.int64())]) is batch


def test_parts_are_all_rows_once_and_about_even_though_the_rows_are_of_one_bucket() -> None:
    numbers = pa.array(range(160_000))
    batch = pa.record_batch({"k": numbers.filter(pc.equal(bucket(numbers, 16), 3))})
    sizes = [part.rows(batch, [(0, pa.int64())]).num_rows for part in PARTS]

    assert (len(PARTS), sum(sizes)) == (16, batch.num_rows)
    assert max(sizes) < 2 * min(sizes)


@pytest.mark.parametrize(
    ("left", "right", "compared"),
    [
        (pa.array([5, None], pa.int8()), pa.array([5, None], pa.int64()), pa.int64()),
        (pa.array([5], pa.duration("s")), pa.array([5_000], pa.duration("ms")), pa.duration("ms")),
        (pa.array(["a"]).dictionary_encode(), pa.array(["a"], pa.large_string()), pa.string()),
        (
            pa.array([5], pa.timestamp("s", "UTC")),
            pa.array([5_000], pa.timestamp("ms", "Asia/Tokyo")),
            pa.timestamp("ms", "UTC"),
        ),
        (
            pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
            pa.array([Decimal("1.500")], pa.decimal128(9, 3)),
            pa.decimal128(9, 3),
        ),
    ],
)
def test_equal_keys_are_in_one_part_whatever_their_types(left: Any, right: Any, compared: Any) -> None:
    for part in PARTS:
        found = [part.rows(pa.record_batch({"k": side}), [(0, compared)]).num_rows for side in (left, right)]
        assert found[0] == found[1]
