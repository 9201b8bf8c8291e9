"""Partial aggregates beside the same ones over Python's own numbers, which neither round nor overflow."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.spark import partial_aggregates
from lancepart.spark.aggregates import aggregated
from lancepart.spark.partial_aggregates import PartialAggregates
from lancepart.spark.planning import plan
from lancepart.spark.running import rows
from lancepart.spark.table_messages import ScanRequest

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("day", pa.date32()),
        ("a", pa.decimal128(15, 2)),
        ("b", pa.decimal128(18, 4)),
        ("n", pa.int32()),
    ]
)
A, B, ONE = {"column": "a"}, {"column": "b"}, {"literal": "1", "scale": 0}
DIFFERENCE = {"op": "-", "left": ONE, "right": A}
PRODUCT = {"op": "*", "left": {"op": "*", "left": A, "right": DIFFERENCE}, "right": B}
BUFFERS = (
    {"kind": "sum", "value": A, "precision": 25, "scale": 2},
    {"kind": "is_empty", "value": A},
    {"kind": "sum", "value": DIFFERENCE, "precision": 27, "scale": 2},
    {"kind": "sum", "value": PRODUCT, "precision": 38, "scale": 8},
    {"kind": "is_empty", "value": PRODUCT},
    {"kind": "sum", "value": {"column": "n"}},
    {"kind": "count", "values": []},
    {"kind": "count", "values": [A, B]},
    {"kind": "min", "column": "day"},
    {"kind": "max", "column": "b"},
)


def decimal(number: random.Random, digits: int, scale: int) -> Decimal | None:
    return None if number.random() < 0.2 else Decimal(number.randint(-(10**digits), 10**digits)).scaleb(-scale)


def batches(seed: int, digits: tuple[int, int], *, count: int = 5, nulls: bool = True) -> list[pa.RecordBatch]:
    number = random.Random(seed)

    def row() -> dict[str, Any]:
        found = {
            "k": number.choice(["x", "y", None]),
            "day": number.choice([1, 2, 3, None]),
            "a": decimal(number, digits[0], 2),
            "b": decimal(number, digits[1], 4),
            "n": number.choice([None, -(2**31), 7]),
        }
        return found if nulls else {key: found[key] or {"k": "z"}.get(key, 0) for key in found}

    sizes = [number.randint(0, 9) for _ in range(count)]
    return [pa.RecordBatch.from_pylist([row() for _ in range(size)], SCHEMA).slice(size // 3) for size in sizes]


def value(tree: dict[str, Any], row: dict[str, Any]) -> Decimal | None:
    if "column" in tree:
        return row[tree["column"]]
    if "literal" in tree:
        return Decimal(int(tree["literal"])).scaleb(-tree["scale"])
    left, right = value(tree["left"], row), value(tree["right"], row)
    if left is None or right is None:
        return None
    return left * right if tree["op"] == "*" else left - right if tree["op"] == "-" else left + right


def expected(buffer: dict[str, Any], group: list[dict[str, Any]]) -> Any:
    kind = buffer["kind"]
    if kind == "count":
        return sum(all(value(each, row) is not None for each in buffer["values"]) for row in group)
    of = [found for row in group if (found := value(buffer.get("value") or buffer, row)) is not None]
    if kind == "is_empty":
        return not of
    if kind in ("min", "max"):
        return {"min": min, "max": max}[kind](of, default=None)
    if "precision" not in buffer:
        return sum(of) if of else None
    total = sum(of, Decimal(0))
    return total if abs(total.scaleb(buffer["scale"])) < 10 ** buffer["precision"] else None


def merged(found: Iterator[pa.RecordBatch], keys: int) -> dict[tuple[Any, ...], list[Any]]:
    """The groups of batches, none of which comes twice."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for batch in found:
        for row in batch.to_pylist():
            held = list(row.values())
            assert tuple(held[:keys]) not in groups
            groups[tuple(held[:keys])] = held[keys:]
    return groups


@pytest.mark.parametrize("keys", [(), ("k",), ("k", "day")])
@pytest.mark.parametrize("digits", [(5, 5), (9, 9), (12, 11), (15, 1), (1, 18)])
def test_sums_and_counts_are_those_of_exact_arithmetic(keys: tuple[str, ...], digits: tuple[int, int]) -> None:
    """With values whose products and sums need one word, two, or more than that."""
    partial = PartialAggregates(keys=keys, buffers=BUFFERS)
    for seed in range(12):
        given = batches(seed, digits, nulls=seed % 3 > 0)
        groups = defaultdict(list)
        for row in pa.Table.from_batches(given, SCHEMA).to_pylist():
            groups[tuple(row[key] for key in keys)].append(row)

        found = merged(partial.of_batches(given, SCHEMA), len(keys))

        with localcontext(prec=200):
            assert found == {key: [expected(each, group) for each in BUFFERS] for key, group in groups.items()}


def counted(number: int, keys: list[int]) -> list[pa.RecordBatch]:
    """The groups of so many batches with these keys each, in as many batches as they come."""
    given = [pa.record_batch([pa.array(keys)], names=["k"])] * number
    partial = PartialAggregates(keys=("k",), buffers=({"kind": "count", "values": []},))
    return list(partial.of_batches(given, given[0].schema))


def test_rows_are_grouped_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """In small ones where a group has many rows, else, after the first, in large ones."""
    monkeypatch.setattr(partial_aggregates, "_FEW_ROWS", 64)
    monkeypatch.setattr(partial_aggregates, "_MOST_BYTES", 200 * 64)

    few, many = counted(10, [1, 2] * 32), counted(10, list(range(64)))

    assert [batch.num_rows for batch in few] == [2] * 10
    assert [batch.num_rows for batch in many] == [64, 64]
    assert [sum(batch.column("buffer_0").to_pylist()) for batch in many] == [64, 9 * 64]


def test_a_sum_with_more_digits_than_its_type_is_null_and_not_empty() -> None:
    nines = pa.array([Decimal("9" * 13 + ".99")] * 200_000, pa.decimal128(15, 2))
    given = pa.record_batch([nines], names=["a"])
    buffers = tuple({**each, "precision": 17} if each["kind"] == "sum" else each for each in BUFFERS[:2])

    (found,) = PartialAggregates(keys=(), buffers=buffers).of_batches([given], given.schema)

    assert found.to_pylist() == [{"buffer_0": None, "buffer_1": False}]


def test_a_value_with_more_digits_than_any_decimal_is_refused() -> None:
    given = pa.record_batch([pa.array([Decimal("9" * 13 + ".99")], pa.decimal128(15, 2))], names=["a"])
    cube = {"op": "*", "left": {"op": "*", "left": A, "right": A}, "right": A}
    partial = PartialAggregates(keys=(), buffers=({"kind": "sum", "value": cube, "precision": 38, "scale": 6},))
    with pytest.raises(InvalidInputError, match="more than 38 digits"):
        list(partial.of_batches([given], given.schema))


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("ns")])
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_a_day_or_moment_that_python_has_no_value_for_can_be_the_least_or_greatest(
    kind: pa.DataType, keys: tuple[str, ...]
) -> None:
    bits = pa.int32() if kind == pa.date32() else pa.int64()
    ends = [-(2 ** (bits.bit_width - 1)), 2 ** (bits.bit_width - 1) - 1]
    given = pa.record_batch({"k": [1, 1, 1], "at": pa.array([*ends, None], bits).cast(kind)})
    partial = PartialAggregates(keys=keys, buffers=tuple({"kind": each, "column": "at"} for each in ("min", "max")))

    (begun,) = partial.of_batches([given], given.schema)
    whole = aggregated(
        [given],
        [{"name": each, "column": "at"} for each in ("min", "max")],
        pa.schema([("least", kind), ("greatest", kind)]),
    )

    unit = 1 if kind != pa.timestamp("ns") else 1000
    assert [begun.column(at).cast(bits)[0].as_py() for at in (-2, -1)] == [each // unit for each in ends]
    assert [each.cast(bits)[0].as_py() for each in whole.columns] == ends


def test_what_the_jar_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no partial aggregate 'median'"):
        PartialAggregates.of({"keys": [], "buffers": [{"kind": "median"}]})


def test_a_plan_aggregates_the_rows_that_its_filter_keeps(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["bucket(2, id)"])
    table.append([{"id": n, "k": f"k{n % 3}"} for n in range(30)])
    where = {"name": "<", "children": [{"column": ["id"]}, {"type": "bigint", "value": "9"}]}
    partial = {"keys": ["k"], "buffers": [{"kind": "count", "values": []}]}
    request = ScanRequest(version=table.version, columns=("k",), handled=(where,), partial=partial)

    found = plan(table, request)

    assert found.schema.names == ["key_0", "buffer_0"]
    assert not found.parts
    counts: dict[str, int] = defaultdict(int)
    for task in found.tasks:
        for batch in rows(found.scan, task):
            for row in batch.to_pylist():
                counts[row["key_0"]] += row["buffer_0"]
    assert counts == {"k0": 3, "k1": 3, "k2": 3}
