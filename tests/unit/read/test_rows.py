"""Rows and results: ids, samples, order, offsets, batches, and every result in the forms that others read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.errors import InvalidInputError, TableColumnNotFoundError, UnsupportedOperationError

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int32()),
        ("name", pa.string()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)


def row(i: int) -> dict[str, Any]:
    return {"id": i, "k": i % 5, "name": None if i % 7 == 0 else f"n{i:03}", "s": {"a": i * 2, "b": f"b{i}"}}


ROWS = [row(i) for i in range(120)]


@pytest.fixture(scope="module", params=["manifest", "hive"])
def table(request: Any, tmp_path_factory: Any) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path_factory.mktemp("rows") / "t", SCHEMA, ["k"], layout=request.param)
    made.append(ROWS[:60])
    made.append(ROWS[60:])
    made.delete("id % 10 = 3")
    return made


KEPT = [each for each in ROWS if each["id"] % 10 != 3]


def test_every_row_id_takes_its_own_row(table: lp.PartitionedTable) -> None:
    found = table.scan(with_row_id=True).to_arrow()
    ids = found.column("_rowid").to_pylist()[::-3]

    taken = table.take(ids)

    assert len(set(found.column("_rowid").to_pylist())) == len(KEPT)
    assert taken.to_pylist() == found.drop_columns(["_rowid"]).to_pylist()[::-3]
    assert table.take(found.column("_rowid").slice(0, 2), ["s.b"]).to_pylist() == [
        {"s.b": each["s"]["b"]} for each in found.slice(0, 2).to_pylist()
    ]
    assert table.take([ids[0], ids[0]]).num_rows == 2
    assert table.take([]).num_rows == 0


def test_row_ids_that_no_row_has_are_refused(table: lp.PartitionedTable) -> None:
    known = table.scan("id = 5", with_row_id=True).to_arrow()["_rowid"].to_pylist()[0]
    for wrong in ([2**63], [known + 10_000], ["x"], None, [-1]):
        with pytest.raises(InvalidInputError):
            table.take(wrong)


def test_a_filter_and_columns_with_row_ids(table: lp.PartitionedTable) -> None:
    found = table.scan("s.a = 50", ["s.a", "id"], with_row_id=True).to_arrow()

    assert found.schema.names == ["s.a", "id", "_rowid"]
    assert table.take(found["_rowid"], ["id"]).to_pylist() == [{"id": 25}]


@pytest.mark.slow
@settings(max_examples=30)
@given(
    order=st.lists(st.sampled_from(["id", "k", "name", "s.a"]), min_size=1, max_size=3, unique=True),
    descending=st.lists(st.booleans(), min_size=3, max_size=3),
    limit=st.none() | st.integers(0, 130),
    offset=st.integers(0, 130),
    where=st.sampled_from([None, "id < 40", "s.a > 100"]),
)
def test_ordered_rows_are_those_of_a_sorted_list(
    table: lp.PartitionedTable, order: list[str], descending: list[bool], limit: int | None, offset: int, where: str
) -> None:
    items = [f"{name} {'DESC' if down else 'ASC'}" for name, down in zip(order, descending, strict=False)]
    scan = table.scan(where, ["id"], limit, order_by=[*items, "id"], offset=offset)

    matching = [each for each in KEPT if where is None or (each["id"] < 40 if "id" in where else each["id"] > 50)]
    for name, down in reversed(list(zip([*order, "id"], [*descending[: len(order)], False], strict=False))):
        value = (lambda each: each["s"]["a"]) if name == "s.a" else (lambda each, name=name: each[name])
        matching.sort(key=lambda each: (value(each) is None, value(each) or 0), reverse=down)
    expected = [each["id"] for each in matching][offset:][:limit]

    assert scan.to_arrow()["id"].to_pylist() == expected
    assert scan.count() == len(expected)


def test_order_by_row_id_and_nulls_first(table: lp.PartitionedTable) -> None:
    ids = table.scan(columns=["id"], with_row_id=True, order_by="_rowid DESC").to_arrow()["_rowid"].to_pylist()
    first = table.scan(columns=["name"], order_by="name ASC NULLS FIRST", limit=1).to_list()

    assert ids == sorted(ids, reverse=True)
    assert first == [{"name": None}]


@pytest.mark.parametrize("offset", [0, 1, 50, 1000])
@pytest.mark.parametrize("limit", [None, 0, 3, 70])
def test_an_offset_skips_rows(table: lp.PartitionedTable, offset: int, limit: int | None) -> None:
    everything = table.scan(columns=["id"]).to_list()
    found = table.scan(columns=["id"], limit=limit, offset=offset)

    assert found.to_list() == everything[offset:][:limit]
    assert found.count() == found.count_rows() == len(everything[offset:][:limit])


def test_batches_hold_no_more_rows_than_asked_for(table: lp.PartitionedTable) -> None:
    for options in ({}, {"order_by": "id"}, {"with_row_id": True}):
        sizes = [batch.num_rows for batch in table.scan(batch_size=7, **options).to_batches()]
        assert max(sizes) <= 7
        assert sum(sizes) == len(KEPT)


def test_a_sample_is_drawn_without_repetition_and_again_by_its_seed(table: lp.PartitionedTable) -> None:
    one, other = table.sample(40, seed=1), table.sample(40, seed=1)
    found = [each["id"] for each in one.to_pylist()]

    assert one == other
    assert len(set(found)) == 40
    assert table.sample(40, seed=2) != one
    assert sorted(each["id"] for each in table.sample(1000, seed=3).to_pylist()) == [each["id"] for each in KEPT]
    assert all(each["id"] < 30 for each in table.sample(10, where="id < 30").to_pylist())
    drawn = table.sample(5, ["id"], seed=4, with_row_id=True)
    assert table.take(drawn["_rowid"], ["id"]) == drawn.select(["id"])
    for wrong in (-1, 1.5, True):
        with pytest.raises(InvalidInputError, match="give a whole number"):
            table.sample(wrong)  # type: ignore[arg-type]


def test_every_result_becomes_pandas_polars_and_a_count(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(tmp_path / "t", schema, ["k"])
    before = table.version
    table.append([{"id": i, "k": i % 2, "v": [i, i]} for i in range(6)])
    results = {
        6: [table, table.scan(), table.join(table, on=["id", "k"]), table.changes(before)],
        2: [table.search([1.0, 1.0], k=2), table.scan("k = 1", limit=2)],
    }
    for rows, found in results.items():
        for result in found:
            assert result.count() == result.count_rows() == rows
            assert len(result.to_pandas()) == len(result.to_polars()) == len(result.to_list()) == rows
            assert pa.table(result).schema == result.schema
            assert isinstance(result.to_polars(), pl.DataFrame)
            assert result.to_reader().read_all().num_rows == rows
    assert table.count_rows("k = 0") == 3
    assert table.head(2).num_rows == 2
    assert table.head(2, ["id"]).schema.names == ["id"]


def test_what_is_wrong_is_named(table: lp.PartitionedTable, tmp_path: Path) -> None:
    with pytest.raises(TableColumnNotFoundError, match="'nam' to order by"):
        table.scan(order_by="nam DESC")
    for wrong in ({"offset": -1}, {"batch_size": 0}, {"order_by": [""]}, {"order_by": [3]}, {"offset": None}):
        with pytest.raises(InvalidInputError):
            table.scan(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedOperationError, match="order_by"):
        table.scan(order_by="id").to_spark(None)
    own = lp.create_table(tmp_path / "own", pa.schema([("_rowid", pa.int64()), ("k", pa.int64())]), ["k"])
    with pytest.raises(InvalidInputError, match="rename it"):
        own.scan(with_row_id=True)


def test_what_to_order_by_is_quoted_and_listed_as_in_sql(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "n": [3, None, 3], "a,b": [1, 2, 3], "s": [{"x": 1}, {"x": 2}, {"x": 0}]})
    made = lp.create_table_from(tmp_path / "t", data, ["id"])
    orders = {
        '"id" DESC': [3, 2, 1],
        "n, id DESC": [3, 1, 2],
        '"n" DESC NULLS LAST, id': [1, 3, 2],
        "a,b DESC": [3, 2, 1],
        '"a,b" DESC, id': [3, 2, 1],
        '"s"."x", `id`': [3, 1, 2],
    }

    for order, wanted in orders.items():
        assert made.scan(order_by=order).to_arrow()["id"].to_pylist() == wanted, order
        assert made.scan(columns=["id"], order_by=order, limit=2).to_arrow()["id"].to_pylist() == wanted[:2], order
    for wrong in (",", "nope, id"):
        with pytest.raises(TableColumnNotFoundError, match="to order by"):
            made.scan(order_by=wrong)
