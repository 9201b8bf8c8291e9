"""The rules of joining partitionings: what two of them have in common over the join keys."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lancepart.model.hashing import murmur3
from lancepart.model.join_keys import common_type, hash_alike
from lancepart.model.partition_by import parse_partition_by
from lancepart.model.partition_keys import value_keys
from lancepart.model.schema import assign_field_ids
from lancepart.model.spec import PartitionSpec
from lancepart.model.transforms import Bucket, Truncate
from lancepart.model.transforms.hive import FloorBucket, FloorTruncate
from lancepart.plan.join_compatibility import JoinKey, KeyFunction, key_function_values, meet, offers

SCHEMA = assign_field_ids(
    pa.schema(
        [
            ("d", pa.date32()),
            ("n", pa.int64()),
            ("s", pa.string()),
            ("f", pa.float64()),
            ("other", pa.int64()),
        ]
    )
)
NAMES = ["d", "n", "s", "f"]
POSITIONS = {number: number for number in range(len(NAMES))}


def _spec(*fields: str) -> PartitionSpec:
    return PartitionSpec(id=1, fields=parse_partition_by(list(fields), SCHEMA))


def _keys(**types: Any) -> list[JoinKey]:
    keys = []
    for name in NAMES:
        left = SCHEMA.field(name).type
        right = types.get(name, left)
        keys.append(JoinKey(left=name, right=name, left_type=left, right_type=right, compared=common_type(left, right)))
    return keys


def _common(*specs: tuple[str, ...], **types: Any) -> list[str]:
    keys = _keys(**types)
    key_functions = meet([offers(_spec(*fields), POSITIONS, keys) for fields in specs], keys)
    return [function.describe(NAMES) for function in key_functions]


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (("d",), ("d",), ["d"]),
        (("year(d)",), ("year(d)",), ["year(d)"]),
        (("bucket(n, 16)",), ("bucket(n, 8)",), ["bucket(8, n)"]),
        (("bucket(n, 12)",), ("bucket(n, 8)",), ["bucket(4, n)"]),
        (("bucket(n, 8)",), ("bucket(n, 9)",), []),
        (("bucket(n, 8)",), ("bucket(s, 8)",), []),
        (("n",), ("bucket(n, 8)",), ["bucket(8, n)"]),
        (("d",), ("year(d)", "month(d)"), ["month(d)", "year(d)"]),
        (("year(d)", "month(d)", "day(d)"), ("year(d)", "month(d)"), ["month(d)", "year(d)"]),
        (("day(d)",), ("month(d)",), []),
        (("month(d)",), ("year(d)",), []),
        (("truncate(n, 4)",), ("truncate(n, 6)",), ["truncate(n, 12)"]),
        (("truncate(s, 4)",), ("truncate(s, 2)",), ["truncate(s, 2)"]),
        (("n",), ("truncate(n, 10)",), ["truncate(n, 10)"]),
        (("multi_bucket(8, n, s)",), ("multi_bucket(4, n, s)",), ["multi_bucket(4, n, s)"]),
        (("multi_bucket(8, n, s)",), ("multi_bucket(8, s, n)",), []),
        (("n", "s"), ("multi_bucket(8, n, s)",), ["multi_bucket(8, n, s)"]),
        (("n",), ("multi_bucket(8, n, s)",), []),
        (("expr(n % 7)",), ("expr(n % 7)",), ["expr(col0 % 7) of n"]),
        (("expr(n % 7)",), ("expr(n % 5)",), []),
        (("n",), ("expr(n % 7)",), ["expr(col0 % 7) of n"]),
        (("f",), ("expr(f > 0)",), []),
        (("f",), ("bucket(f, 4)",), ["bucket(4, f)"]),
        (("n", "year(d)"), ("bucket(n, 4)", "d"), ["year(d)", "bucket(4, n)"]),
        (("n", "other"), ("n",), ["n"]),
        (("other",), ("other",), []),
        (("n", "bucket(n, 4)"), ("n", "bucket(n, 4)"), ["n"]),
    ],
)
def test_what_two_partitionings_have_in_common(
    left: tuple[str, ...], right: tuple[str, ...], common: list[str]
) -> None:
    assert _common(left, right) == common
    assert _common(right, left) == common


def test_every_spec_version_counts() -> None:
    assert _common(("n",), ("bucket(n, 16)",), ("bucket(n, 24)",)) == ["bucket(8, n)"]
    assert _common(("d",), ("d", "n"), ("year(d)",)) == ["year(d)"]
    assert _common(("d",), ("n",), ("d", "n")) == []


def test_keys_of_different_types_have_only_in_common_what_does_not_depend_on_the_type() -> None:
    assert _common(("bucket(n, 4)",), ("bucket(n, 4)",), n=pa.int32()) == ["bucket(4, n)"]
    assert _common(("expr(n % 7)",), ("expr(n % 7)",), n=pa.int32()) == []
    assert _common(("n",), ("n",), n=pa.uint64()) == ["n"]


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint32(), pa.int8(), pa.int64()),
        (pa.uint64(), pa.int64(), pa.decimal128(20, 0)),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.int64(), pa.string(), None),
        (pa.int64(), pa.decimal128(20, 0), None),
        (pa.dictionary(pa.int8(), pa.string()), pa.large_string(), pa.string()),
        (pa.binary(4), pa.binary(), pa.binary()),
        (pa.date32(), pa.date64(), pa.date64()),
        (pa.date32(), pa.timestamp("us"), None),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("s", "UTC"), pa.timestamp("us", "Europe/Paris"), pa.timestamp("us", "UTC")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC"), None),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
        (pa.duration("s"), pa.duration("ms"), pa.duration("ms")),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
        (pa.decimal128(38, 0), pa.decimal128(38, 10), pa.decimal256(48, 10)),
        (pa.list_(pa.int8()), pa.list_(pa.int8()), None),
        (pa.null(), pa.null(), None),
    ],
)
def test_the_type_that_keys_are_compared_in(left: Any, right: Any, common: Any) -> None:
    assert common_type(left, right) == common
    assert common is None or pa.types.is_string(common) or common_type(right, left) == common


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([5, -1], pa.int8()), pa.array([5, -1], pa.int64())),
        (pa.array([5, 2**63 - 1], pa.uint64()), pa.array([5, 2**63 - 1], pa.int64())),
        (pa.array([0.5, -0.0, math.nan], pa.float32()), pa.array([0.5, 0.0, -math.nan], pa.float64())),
        (pa.array(["a", "é"]).dictionary_encode(), pa.array(["a", "é"], pa.large_string())),
        (pa.array([5, -5], pa.timestamp("s")), pa.array([5 * 10**9, -5 * 10**9], pa.timestamp("ns"))),
        (pa.array([5], pa.timestamp("s", "UTC")), pa.array([5_000], pa.timestamp("ms", "Europe/Paris"))),
        (pa.array([3], pa.date32()), pa.array([3 * 86_400_000], pa.date64())),
        (pa.array([3], pa.time32("s")), pa.array([3 * 10**9], pa.time64("ns"))),
        (pa.array([b"abc"], pa.binary(3)), pa.array([b"abc"], pa.binary())),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.array([Decimal("1.50")], pa.decimal128(30, 2))),
    ],
)
def test_equal_keys_of_types_that_hash_alike_do(left: Any, right: Any) -> None:
    assert common_type(left.type, right.type) is not None
    assert hash_alike(left.type, right.type)
    assert murmur3(left).to_pylist() == murmur3(right).to_pylist()


def test_decimals_of_different_scale_hash_differently_and_are_known_to() -> None:
    assert not hash_alike(pa.decimal128(10, 2), pa.decimal128(10, 3))


@pytest.mark.parametrize(
    ("field", "values", "other", "expected"),
    [
        ("bucket(n, 16)", pa.array([9, None], pa.int32()), "bucket(n, 8)", [1, None]),
        ("n", pa.array([34, None], pa.int64()), "bucket(n, 16)", [3, None]),
        ("n", pa.array([34, None], pa.int32()), "bucket(n, 16)", [3, None]),
        ("d", pa.array([19_723, None], pa.date32()), "year(d)", [2024, None]),
        ("truncate(n, 4)", pa.array([-8, 20, None], pa.int64()), "truncate(n, 6)", [0, 12, None]),
        ("truncate(s, 3)", pa.array(["héy", None]), "truncate(s, 2)", ["hé", None]),
        ("n", pa.array([10, None], pa.int64()), "expr(n % 7)", [3, None]),
    ],
)
def test_a_finer_value_gives_the_coarser_one(field: str, values: Any, other: str, expected: list[Any]) -> None:
    keys, spec = _keys(), _spec(field)
    (function,) = meet([offers(spec, POSITIONS, keys), offers(_spec(other), POSITIONS, keys)], keys)
    rows = pa.table({f"partition_field_{spec.fields[0].field_id}": values})

    found = key_function_values(function, spec, POSITIONS, [key.left_type for key in keys], rows)

    assert found.to_pylist() == expected


def test_truncated_twice_is_truncated_once_to_the_common_multiple() -> None:
    numbers = pa.array(range(-40, 40))
    by = {width: parse_partition_by([f"truncate(n, {width})"], SCHEMA)[0] for width in (4, 12)}

    assert by[12].apply([by[4].apply([numbers])]) == by[12].apply([numbers])


def test_partition_values_of_other_widths_have_the_same_key() -> None:
    assert value_keys(pa.array([5], pa.uint64())) == value_keys(pa.array([5], pa.int8()))


def test_transforms_that_are_alike_only_in_name_share_nothing() -> None:
    """A Hive-style bucket or truncation of a negative number is another one than the current layout's."""
    keys = [JoinKey(left="id", right="id", left_type=pa.int64(), right_type=pa.int64(), compared=pa.int64())]
    for hive, current in ((FloorBucket(num_buckets=4), Bucket(num_buckets=4)), (FloorTruncate(10), Truncate(10))):
        mine, theirs = (frozenset({KeyFunction(keys=(0,), transform=each)}) for each in (hive, current))
        assert meet([mine, theirs], keys) == ()


def test_truncations_of_a_tree_roll_up_by_their_own_rule() -> None:
    keys = [JoinKey(left="id", right="id", left_type=pa.int64(), right_type=pa.int64(), compared=pa.int64())]
    mine, theirs = (frozenset({KeyFunction(keys=(0,), transform=FloorTruncate(each))}) for each in (10, 20))
    assert meet([mine, theirs], keys) == (KeyFunction(keys=(0,), transform=FloorTruncate(20)),)
