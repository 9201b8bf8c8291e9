from __future__ import annotations

import hashlib
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import mmh3
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from lancepart.errors import InvalidInputError
from lancepart.model import hashing
from lancepart.model.functions import bind_functions, register_functions
from lancepart.model.hashing import bucket, md5_int, multi_bucket, murmur3, murmur3_multi, safe_abs

HASHES_TO_INT32_MIN = 6018035362574630912
INT64 = st.integers(-(2**63), 2**63 - 1)


def hash_of(array: pa.Array) -> list[int | None]:
    return murmur3(array).to_pylist()


def long_bytes(value: int) -> bytes:
    return struct.pack("<q", value)


def shortest_bytes(unscaled: int) -> bytes:
    return unscaled.to_bytes((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, signed=True)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([34], pa.int32()), 2017239379),
        (pa.array([34], pa.int64()), 2017239379),
        (pa.array([Decimal("14.20")]), -500754589),
        (pa.array([date(2017, 11, 16)]), -653330422),
        (pa.array([time(22, 31, 8)], pa.time64("us")), -662762989),
        (pa.array([datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us")), -2047944441),
        (pa.array([datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("s")), -2047944441),
        (pa.array(["iceberg"]), 1210000089),
        (pa.array([bytes([0, 1, 2, 3])], pa.binary()), -188683207),
        (pa.array([bytes([0, 1, 2, 3])], pa.binary(4)), -188683207),
        (pa.array([True]), 1392991556),
        (pa.array([1.0], pa.float32()), -142385009),
        (pa.array([-0.0]), 1669671676),
    ],
)
def test_the_published_vectors_of_iceberg_hold(array: pa.Array, expected: int) -> None:
    assert hash_of(array) == [expected]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.text(max_size=40) | st.text(min_size=200, max_size=400)), st.integers(0, 3))
def test_text_hashes_as_its_utf8_in_every_layout(values: list[str | None], skipped: int) -> None:
    expected = [None if value is None else mmh3.hash(value) for value in values][skipped:]

    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert hash_of(pa.array(values, kind)[skipped:]) == expected
    assert hash_of(pa.array(values, pa.string()).dictionary_encode()[skipped:]) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=300)))
def test_bytes_hash_as_they_are(values: list[bytes | None]) -> None:
    expected = [None if value is None else mmh3.hash(value) for value in values]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert hash_of(pa.array(values, kind)) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | INT64), st.integers(0, 3))
def test_integers_hash_as_eight_bytes(values: list[int | None], skipped: int) -> None:
    expected = [None if value is None else mmh3.hash(long_bytes(value)) for value in values]
    assert hash_of(pa.array(values, pa.int64())[skipped:]) == expected[skipped:]


@given(st.integers(0, 127))
def test_the_width_of_an_integer_does_not_matter(value: int) -> None:
    kinds = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    assert {hash_of(pa.array([value], kind))[0] for kind in kinds} == {mmh3.hash(long_bytes(value))}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)))
def test_decimals_hash_as_their_shortest_unscaled_bytes(unscaled: list[int | None]) -> None:
    values = [None if value is None else Decimal(value) for value in unscaled]
    expected = [None if value is None else mmh3.hash(shortest_bytes(value)) for value in unscaled]
    assert hash_of(pa.array(values, pa.decimal128(38, 0))) == expected
    assert hash_of(pa.array(values, pa.decimal256(50, 0))) == expected


def test_floats_have_one_zero_and_one_nan() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    zeros = pa.array([0.0, -0.0])
    nans = pa.array([float("nan"), other_nan])

    assert len(set(hash_of(zeros))) == 1
    assert len(set(hash_of(nans))) == 1
    assert hash_of(pa.array([0.5], pa.float16())) == hash_of(pa.array([0.5], pa.float32())) == hash_of(pa.array([0.5]))


def test_times_hash_as_microseconds_in_every_unit_and_zone() -> None:
    moment = datetime(1965, 3, 4, 5, 6, 7, tzinfo=UTC)
    berlin = moment.astimezone(timezone(timedelta(hours=1)))
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    expected = [mmh3.hash(long_bytes(micros))]

    for unit in ("s", "ms", "us", "ns"):
        assert hash_of(pa.array([berlin], pa.timestamp(unit, "Europe/Berlin"))) == expected
        assert hash_of(pa.array([moment.replace(tzinfo=None)], pa.timestamp(unit))) == expected
    assert hash_of(pa.array([-1], pa.timestamp("ns"))) == [mmh3.hash(long_bytes(-1))]
    assert hash_of(pa.array([date(1965, 1, 1)], pa.date64())) == hash_of(pa.array([date(1965, 1, 1)], pa.date32()))
    assert hash_of(pa.array([time(1)], pa.time32("s"))) == hash_of(pa.array([time(1)], pa.time64("ns")))


def test_null_stays_null_for_every_encoding() -> None:
    with_null_value = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None]))

    assert hash_of(pa.nulls(2)) == [None, None]
    assert hash_of(with_null_value) == [mmh3.hash("a"), None, None]
    assert hash_of(pa.array([], pa.string())) == []
    assert hash_of(pa.array(["", "null", None])) == [0, mmh3.hash("null"), None]


def test_chunks_and_pieces_hash_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_ROWS", 7)
    values = [None if number % 5 == 0 else f"value {number}" for number in range(40)]
    expected = [None if value is None else mmh3.hash(value) for value in values]

    assert hash_of(pa.chunked_array([values[:3], values[3:30], values[30:]])) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.none() | INT64, st.none() | st.text(max_size=9), st.none() | st.booleans()), min_size=1))
def test_many_columns_hash_as_the_joined_bytes_of_those_that_are_there(rows: list[tuple[int, str, bool]]) -> None:
    def joined(number: int | None, text: str | None, flag: bool | None) -> int | None:
        parts = [None if number is None else long_bytes(number), None if text is None else text.encode()]
        parts += [None if flag is None else long_bytes(flag)]
        there = [part for part in parts if part is not None]
        return mmh3.hash(b"".join(there)) if there else None

    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), KINDS, strict=True)]

    assert murmur3_multi(columns).to_pylist() == [joined(*row) for row in rows]


KINDS = (pa.int64(), pa.string(), pa.bool_())


def test_a_bucket_survives_the_smallest_hash() -> None:
    worst = pa.array([HASHES_TO_INT32_MIN])

    assert hash_of(worst) == [-(2**31)]
    assert safe_abs(murmur3(worst)).to_pylist() == [2**31]
    assert bucket(worst, 7).to_pylist() == [2**31 % 7]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | INT64), st.integers(1, 2**31 - 1))
def test_a_bucket_is_the_distance_from_zero_modulo_the_number(values: list[int | None], num_buckets: int) -> None:
    expected = [None if v is None else abs(mmh3.hash(long_bytes(v))) % num_buckets for v in values]
    column = pa.array(values, pa.int64())

    assert bucket(column, num_buckets).to_pylist() == expected
    assert multi_bucket([column], num_buckets).to_pylist() == expected
    assert bucket(column, num_buckets).type == pa.int32()


def test_md5_is_the_head_of_the_digest() -> None:
    expected = int.from_bytes(hashlib.md5(b"lance").digest()[:8], signed=True)
    five = int.from_bytes(hashlib.md5(b"5").digest()[:8], signed=True)

    assert md5_int(pa.array(["lance", None])).to_pylist() == [expected, None]
    assert md5_int(pa.array([5], pa.int8())).to_pylist() == md5_int(pa.array([5])).to_pylist() == [five]
    assert md5_int(pa.array([0.5], pa.float32())) == md5_int(pa.array([0.5]))
    assert md5_int(pa.array([], pa.string())).type == pa.int64()


def test_what_cannot_be_hashed_says_so() -> None:
    with pytest.raises(InvalidInputError, match="list<item: int64>"):
        murmur3(pa.array([[1]]))
    with pytest.raises(InvalidInputError, match="at least 1"):
        bucket(pa.array([1]), 0)
    with pytest.raises(InvalidInputError, match="different lengths"):
        murmur3_multi([pa.array([1]), pa.array([1, 2])])
    with pytest.raises(InvalidInputError, match="at least one column"):
        murmur3_multi([])


def test_datafusion_knows_the_functions_for_any_types_and_number_of_arguments() -> None:
    ctx = SessionContext()
    register_functions(ctx)
    batch = pa.record_batch({"id": pa.array([34, None], pa.int32()), "name": ["iceberg", None]})
    ctx.register_record_batches("t", [[batch]])

    sql = "murmur3(id) AS a, murmur3(name) AS b, murmur3_multi(name, 'x', id) AS c, md5_int(murmur3(id)) AS d"
    bound = bind_functions(ctx, sql, batch.schema)
    row = ctx.sql(f"SELECT {bound} FROM t").to_pylist()[0]

    assert (row["a"], row["b"]) == (2017239379, 1210000089)
    assert row["c"] == mmh3.hash(b"icebergx" + long_bytes(34))
    assert row["d"] == md5_int(pa.array(["2017239379"]))[0].as_py()
