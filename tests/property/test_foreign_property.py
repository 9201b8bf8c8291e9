"""Tables that another client wrote by the document's words, against DataFusion over the same rows in memory.

Field ids, the order and encoding of columns in leaves, declared types, the zone in which times were taken, numbers of
versions and what stands in rows' metadata are all as a client might choose them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.model.partition_keys import value_keys
from lancepart.model.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Year
from tests.conformance.partitioned.handmade import Leaf, column, make, partition_field, publish

EXAMPLES = 600 if os.environ.get("LANCEPART_TORTURE") else 25
ZONES = [None, "UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/Los_Angeles"]
START = datetime(2024, 12, 30)
INTEGERS = [pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(12, 0)]
TEXTS = [pa.string(), pa.large_string()]
TIMES = ["s", "us", "ns"]
ENCODINGS = {
    pa.int32(): [pa.int16(), pa.int32(), pa.int64()],
    pa.float64(): [pa.float64()],
    pa.string(): [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
}
EXTRA = st.dictionaries(
    st.sampled_from(["n", "rows", "bytes", "fragments", "moved", "owner", "lancepart.n", "lancepart.rows"]),
    st.one_of(st.integers(0, 3), st.text(max_size=3), st.none(), st.lists(st.integers(0, 3), max_size=2)),
    max_size=4,
)


@dataclass(frozen=True)
class Field:
    """A partition field, and how this client takes its values."""

    column: str
    transform: Transform
    result: Any
    zone: str | None = None

    def stored(self, rows: pa.Table) -> Any:
        """The value of each row, as it stands in the manifest."""
        array = rows.column(self.column).combine_chunks()
        if self.zone is not None and pa.types.is_timestamp(array.type):
            array = pc.local_timestamp(array.cast(pa.timestamp(array.type.unit, self.zone)))
        return self.transform.apply([array]).cast(self.result, safe=False)


@st.composite
def fields(draw: Any, zone: str | None) -> Field:
    kind = draw(st.sampled_from(["n", "f", "s", "t", "part"]))
    if kind == "n":
        transform = draw(st.sampled_from([Identity(), Truncate(3), Bucket(3)]))
        return Field("n", transform, draw(st.sampled_from(INTEGERS)))
    if kind == "f":
        return Field("f", Identity(), draw(st.sampled_from([pa.float32(), pa.float64()])))
    if kind == "s":
        return Field("s", draw(st.sampled_from([Identity(), Truncate(1)])), draw(st.sampled_from(TEXTS)))
    if kind == "t":
        return Field("t", Identity(), pa.timestamp(draw(st.sampled_from(TIMES)), zone))
    part = draw(st.sampled_from([Year(), Month(), Day(), Hour()]))
    result = draw(st.sampled_from([pa.int32(), pa.int64(), pa.float64()]))
    return Field("t", part, result, draw(st.sampled_from([None, zone])))


@st.composite
def tables(draw: Any, zone: str | None) -> pa.Table:
    size = draw(st.integers(1, 8))

    def some(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(st.one_of(st.none(), values), min_size=size, max_size=size))

    hours = some(st.integers(0, 96))
    return pa.table(
        {
            "id": pa.array(range(size), pa.int64()),
            "n": pa.array(some(st.integers(-7, 7)), pa.int32()),
            "f": pa.array(some(st.sampled_from([0.0, -0.0, 0.1, 0.25, 1e9 + 0.5])), pa.float64()),
            "s": pa.array(some(st.sampled_from(["", "a", "ab", "b", "n"])), pa.string()),
            "t": pa.array([None if h is None else START + timedelta(hours=h) for h in hours], pa.timestamp("us")).cast(
                pa.timestamp("us", zone)
            ),
        }
    )


@st.composite
def filters(draw: Any, zone: str | None) -> str:
    operator = draw(st.sampled_from(["=", "<", ">=", "<>"]))
    moment = (START + timedelta(hours=draw(st.integers(0, 96)))).isoformat()
    text = f"'{moment}'" if zone is None else f"'{moment}Z'"
    return str(
        draw(
            st.sampled_from(
                [
                    f"n {operator} {draw(st.integers(-7, 7))}",
                    f"f {operator} {draw(st.sampled_from(['0.1', '0.25', '0.0', '1000000000.5']))}",
                    f"s {operator} '{draw(st.sampled_from(['', 'a', 'ab']))}'",
                    f"t {operator} {text}",
                    "n IS NULL OR s IS NULL",
                    f"t {operator} {text} AND n > -3",
                    f"NOT (t {operator} {text}) OR f = 0.1",
                ]
            )
        )
    )


def encoded(draw: Any, rows: pa.Table) -> pa.Table:
    """Rows as one leaf may have them: columns in any order, in any encoding that holds them."""
    order = draw(st.permutations(rows.column_names))
    arrays = []
    for name in order:
        kind = rows.schema.field(name).type
        arrays.append(rows.column(name).cast(draw(st.sampled_from(ENCODINGS.get(kind, [kind])))))
    return pa.table(arrays, names=order)


def write(draw: Any, root: str, rows: pa.Table, partitioning: Sequence[Field]) -> None:
    """The table by hand; its leaves' rows are written in two versions where there are two or more."""
    numbers = draw(st.permutations(range(12)))[: len(rows.column_names)]
    columns = [column(each.name, each.type, number) for each, number in zip(rows.schema, numbers, strict=True)]
    ids = dict(zip(rows.column_names, numbers, strict=True))
    names = [f"p{at}" for at in range(len(partitioning))]
    spec = [
        partition_field(name, [ids[each.column]], each.transform.to_json().to_dict(), each.result)
        for name, each in zip(names, partitioning, strict=True)
    ]
    values = [each.stored(rows) for each in partitioning]
    keys = list(zip(*map(value_keys, values), strict=True))
    leaves, later = [], []
    for number, key in enumerate(dict.fromkeys(keys)):
        places = [at for at, other in enumerate(keys) if other == key]
        held = {name: array[places[0]].as_py() for name, array in zip(names, values, strict=True)}
        part = encoded(draw, rows.take(places))
        cut = draw(st.integers(1, len(places)))
        leaves.append(Leaf(values=held, rows=part.slice(0, cut), name=f"leaf{number}", metadata=draw(EXTRA)))
        later.append(part.slice(cut))
    make(root, columns, spec, leaves, results=[each.result for each in partitioning])
    found = lance.dataset(f"{root}/__manifest").to_table(filter="object_type = 'table'").column("object_id").to_pylist()
    for leaf, part in zip(leaves, later, strict=True):
        if part.num_rows:
            name = next(item for item in found if item.startswith(f"v1${leaf.name}x"))
            publish(root, name, draw(st.sampled_from([2, 3, 9, 10, 10**6])), part)


def expected(rows: pa.Table, where: str) -> list[int]:
    context = SessionContext()
    context.register_record_batches("rows", [rows.to_batches()])
    found = context.sql(f"SELECT id FROM rows WHERE {where}").collect()
    return sorted(number for batch in found for number in batch.column("id").to_pylist())


def ids(table: lp.PartitionedTable, where: str) -> list[int]:
    return sorted(table.scan(where).to_arrow().column("id").to_pylist())


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_table_by_hand_reads_as_its_rows(data: Any) -> None:
    draw: Callable[..., Any] = data.draw
    zone = draw(st.sampled_from(ZONES))
    rows = draw(tables(zone))
    unlike = st.lists(fields(zone), min_size=1, max_size=2, unique_by=lambda each: (each.column, each.transform))
    partitioning = draw(unlike)
    with TemporaryDirectory() as root:
        write(draw, root, rows, partitioning)
        table = lp.open_table(root)
        assert table.scan().to_arrow().sort_by("id").equals(rows)
        assert table.scan().count() == rows.num_rows
        for where in draw(st.lists(filters(zone), min_size=1, max_size=4)):
            assert ids(table, where) == expected(rows, where), where
        more = draw(tables(zone)).slice(0, 2)
        more = more.set_column(0, "id", pa.array(range(100, 100 + more.num_rows), pa.int64()))
        table.append(more)
        all_rows = pa.concat_tables([rows, more])
        for where in ["true", *draw(st.lists(filters(zone), min_size=1, max_size=2))]:
            assert ids(lp.open_table(root), where) == expected(all_rows, where), where
        where = draw(filters(zone))
        table.delete(where)
        left = sorted(set(all_rows.column("id").to_pylist()) - set(expected(all_rows, where)))
        assert ids(lp.open_table(root), "true") == left, where
