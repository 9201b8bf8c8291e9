"""Document 000, Partition Expression and Appendix D: the common expressions, and what they ask of a value."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.model import draft, functions
from lancepart.model.expressions import Expression
from lancepart.model.hashing import md5_int
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Day, Hour, Identity, Month, Truncate, Year
from tests.conformance.draft import appendix
from tests.support.catalogs import Place


def first_eight(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:8], "big", signed=True)


def test_md5_int_is_the_digests_first_eight_bytes_big_endian_and_signed() -> None:
    values = pa.array(["a", "iceberg", "", None])

    assert md5_int(values).to_pylist() == [first_eight("a"), first_eight("iceberg"), first_eight(""), None]


def test_the_other_wording_of_the_document_gives_other_values() -> None:
    digits = int(hashlib.md5(b"a", usedforsecurity=False).hexdigest()[:8], 16)

    assert md5_int(pa.array(["a"])).to_pylist() != [digits]


@pytest.mark.parametrize(
    ("expression", "sources", "expected"),
    [
        ("abs(md5_int(col0)) % 16", [["a", None]], [abs(first_eight("a")) % 16, None]),
        (
            "abs(md5_int(concat(col0, col1))) % 16",
            [["a", "a", None], ["b", None, "b"]],
            [abs(first_eight(text)) % 16 for text in ("ab", "a", "b")],
        ),
        ("left(col0, 3)", [["abcdef", "é", None]], ["abc", "é", None]),
        ("col0 - (col0 % 10)", [[123, -7, None]], [120, 0, None]),
        ("date_part('month', col0)", [[date(2025, 12, 10), None]], [12, None]),
    ],
)
def test_a_common_expression(expression: str, sources: list[list[Any]], expected: list[Any]) -> None:
    arrays = [pa.array(values) for values in sources]
    result = pa.string() if isinstance(expected[0], str) else pa.int64()

    assert Expression(expression, len(arrays)).apply(arrays, result).to_pylist() == expected


def test_abs_of_the_smallest_hash_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    smallest = pa.array([-(2**63)], pa.int64())
    monkeypatch.setitem(functions._BOUND, "md5_int", lambda array: smallest)

    found = Expression("abs(md5_int(col0)) % 97", 1).apply([pa.array([7.25], pa.float64())], pa.int64())

    assert found.to_pylist() == [(2**63 - 1) % 97]


@pytest.mark.parametrize("expression", ["abs(md5_int(col0)) % 16", "col0 - (col0 % 10)", "col0"])
def test_the_width_of_a_number_does_not_matter(expression: str) -> None:
    values = [0, 5, 34, -7]
    narrow, wide = (
        Expression(expression, 1).apply([pa.array(values, kind)], pa.int64()) for kind in (pa.int32(), pa.int64())
    )

    assert narrow == wide


def test_hours_are_in_utc() -> None:
    moment = pa.array([datetime(2025, 12, 10, 23, 30, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo"))

    assert Expression("date_part('hour', col0)", 1).apply([moment], pa.int32()).to_pylist() == [23]


@pytest.mark.parametrize(
    ("expression", "kind", "transform"),
    [
        ("col0", pa.date32(), Identity()),
        ("date_part('year', col0)", pa.date32(), Year()),
        ("DATE_PART('month', col0)", pa.timestamp("us"), Month()),
        ("date_part('day', col0)", pa.date32(), Day()),
        ("date_part('hour', col0)", pa.timestamp("us", "UTC"), Hour()),
        ("extract(year from col0)", pa.date32(), Year()),
        ("left(col0, 3)", pa.string(), Truncate(3)),
        ("col0 - (col0 % 10)", pa.int64(), Truncate(10)),
        ("col0 - (col0 % 10)", pa.float64(), None),
        ("date_part('hour', col0)", pa.date32(), None),
        ("date_part('week', col0)", pa.date32(), None),
        ("abs(md5_int(col0)) % 16", pa.string(), None),
        ("left(col0, 0)", pa.string(), None),
        ("upper(col0)", pa.string(), None),
    ],
)
def test_well_known_expressions_are_recognised(expression: str, kind: Any, transform: Any) -> None:
    assert draft.transform_of(expression, kind) == transform


def one_field(expression: str, source_ids: list[int], result: str) -> dict[str, Any]:
    return {
        "partition_spec_v1": [
            {
                "field_id": "p",
                "source_ids": source_ids,
                "expression": expression,
                "result_type": {"type": result},
            }
        ],
        "schema": appendix.METADATA["schema"],
    }


def draft_table(local: Place, metadata: dict[str, Any], kind: Any) -> lp.PartitionedTable:
    appendix.write_manifest(local.root, [], metadata, values=[pa.field("partition_field_p", kind)])
    return lp.open_table(local.root)


def values_of(table: lp.PartitionedTable) -> set[Any]:
    return {leaf.values[0] for leaf in table.scan().plan().leaves}


def test_md5_buckets_are_written_and_pruned(local: Place) -> None:
    table = draft_table(local, one_field("abs(md5_int(col0)) % 16", [2], "int64"), pa.int64())
    table.append(appendix.events(*((i, appendix.DAY, f"c{i}") for i in range(40)), (40, appendix.DAY, None)))

    scan = table.scan("country = 'c7'")

    assert [leaf.values for leaf in scan.plan().leaves] == [(str(abs(first_eight("c7")) % 16),)]
    assert scan.to_arrow()["id"].to_pylist() == [7]
    assert None in values_of(table)
    assert len(table.scan("country > 'c1'").plan().leaves) == len(values_of(table))


def test_a_removed_column_is_passed_over(local: Place) -> None:
    some = draft_table(local, one_field("abs(md5_int(concat(col0, col1))) % 16", [2, 9], "int64"), pa.int64())
    some.append(appendix.events((1, appendix.DAY, "a")))

    assert values_of(some) == {str(abs(first_eight("a")) % 16)}


@pytest.mark.parametrize("expression", ["abs(md5_int(concat(col0, col1))) % 16", "coalesce(col0, col1)"])
def test_all_columns_removed_give_null(local: Place, expression: str) -> None:
    table = draft_table(local, one_field(expression, [8, 9], "int64"), pa.int64())
    table.append(appendix.events((1, appendix.DAY, "a")))

    assert values_of(table) == {None}
    assert appendix.ids(table) == [1]


def test_a_spec_of_the_draft_is_spelled_as_it_is_read() -> None:
    field = PartitionField(field_id="y", source_ids=(1,), expression="date_part('year', col0)", result_type=pa.int32())
    spec = PartitionSpec(id=3, fields=(field,))

    assert draft.spec_from_array(3, draft.spec_to_array(spec)) == spec
