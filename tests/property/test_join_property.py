"""Joins of random tables, partitioned at random, beside one plain join of all their rows."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import event, given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.model.quoting import arrow_type_name
from tests.property import strategies as some

HOWS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}
KINDS: tuple[tuple[Any, ...], ...] = (
    (pa.int8(), pa.int32(), pa.int64(), pa.uint8()),
    (pa.int64(), pa.uint64()),
    (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
    (pa.date32(), pa.date64()),
    tuple(kind for kind in some.TIMESTAMPS if kind.tz is None),
    tuple(kind for kind in some.TIMESTAMPS if kind.tz is not None),
    (pa.float32(), pa.float64()),
    (pa.decimal128(10, 2), pa.decimal128(12, 2), pa.decimal128(12, 3)),
    (pa.binary(), pa.binary(3)),
    (pa.bool_(),),
)
MULTI = ("multi_bucket(4, a, b)", "multi_bucket(6, a, b)", "multi_bucket(4, b, a)")


@st.composite
def pairs_of_tables(draw: Any) -> Any:
    """Two schemas with keys ``a`` and ``b`` of comparable types, partitionings and rows for both."""
    families = [draw(st.sampled_from(KINDS)) for _ in range(2)]
    sides = []
    pool: dict[str, list[Any]] = {}
    shared = draw(st.sampled_from("ab"))
    for name in ("x", "y"):
        kinds = [draw(st.sampled_from(family)) for family in families]
        schema = pa.schema([("id", pa.int64()), ("a", kinds[0]), ("b", kinds[1]), (f"only_{name}", pa.int32())])
        sides.append(_side(draw, schema, shared, pool))
    return sides


def _side(draw: Any, schema: Any, shared: str, pool: dict[str, list[Any]]) -> Any:
    common = st.sampled_from(_fields(shared, schema.field(shared).type))
    more = st.lists(
        st.sampled_from([*_fields("a", schema.field("a").type), *_fields("b", schema.field("b").type), *MULTI]),
        max_size=2,
    )
    both = st.tuples(common, more).map(lambda drawn: list(dict.fromkeys([drawn[0], *drawn[1]])))
    specs = [draw(both) for _ in range(draw(st.integers(1, 2)))]
    parts = []
    for at in range(len(specs)):
        size = draw(st.integers(0, 8))
        columns = [pa.array(range(at * 100, at * 100 + size), pa.int64())]
        columns += [_column(draw, field, size, pool) for field in list(schema)[1:]]
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return schema, specs, parts


def _fields(name: str, kind: Any) -> list[str]:
    """What a key can be partitioned by, with a bias to what has something in common."""
    found = [name, name, f"bucket(4, {name})", f"bucket(6, {name})", f"bucket(2, {name})"]
    if pa.types.is_temporal(kind):
        found += [f"year({name})", f"month({name})", f"day({name})"]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        found += [f"truncate({name}, 4)", f"truncate({name}, 6)"]
    if kind in (pa.string(), pa.large_string(), pa.binary()):
        found += [f"truncate({name}, 1)", f"truncate({name}, 2)"]
    if pa.types.is_integer(kind):
        found += [f"expr({name} % 3)"]
    if pa.types.is_floating(kind):
        found += [f"expr({name} > 0)"]
    return found


def _column(draw: Any, field: Any, size: int, pool: dict[str, list[Any]]) -> Any:
    """Values of which many stand on both sides."""
    fresh = some.values(field.type)
    known = [value for value in pool.get(field.name, []) if _fits(value, field.type)]
    one = st.none() | fresh | (st.sampled_from(known) if known else fresh)
    items = draw(st.lists(one, min_size=size, max_size=size))
    if not pa.types.is_temporal(field.type):
        pool.setdefault(field.name, []).extend(item for item in items if item is not None)
    return some.array(field.type, items)


def _fits(value: Any, kind: Any) -> bool:
    try:
        return some.array(kind, [value])[0].as_py() == value
    except (pa.ArrowException, OverflowError, ValueError, RuntimeWarning):
        return False


def _made(folder: str, name: str, side: Any) -> lp.PartitionedTable:
    schema, specs, parts = side
    table = lp.create_table(f"{folder}/{name}", schema, specs[0])
    for at, (spec, rows) in enumerate(zip(specs, parts, strict=True)):
        if at:
            table.update_spec(spec)
        if rows.num_rows:
            table.append(rows)
    return table


def _plain(sides: Any, on: list[str], how: str, where: str | None, schema: Any) -> Counter[Any]:
    """The same join by DataFusion over all rows, the filter asked of its result."""
    context = SessionContext()
    for name, side in zip("lr", sides, strict=True):
        rows = pa.concat_tables(side[2])
        context.register_record_batches(
            name, [rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]]
        )
    tests = " AND ".join(f"l.{name} = r.{name}" for name in on)
    shown = ["l.id", *(f"{_key(name, how, schema)} AS {name}" for name in on)]
    shown += [] if how in ("semi", "anti") else ["r.id AS id_right"]
    kept = "" if where is None else f"WHERE {where}"
    found = context.sql(f"SELECT * FROM (SELECT {', '.join(shown)} FROM l {HOWS[how]} r ON {tests}) {kept}")
    return _counted(found.to_arrow_table(), how)


def _key(name: str, how: str, schema: Any) -> str:
    wanted = schema.field(name).type
    if how in ("semi", "anti") or pa.types.is_dictionary(wanted):
        return f"l.{name}"
    left, right = (f"arrow_cast({side}.{name}, '{arrow_type_name(wanted)}')" for side in "lr")
    return {"right": right, "full": f"coalesce({left}, {right})"}.get(how, left)


def _counted(rows: Any, how: str) -> Counter[Any]:
    names = ["id"] if how in ("semi", "anti") else ["id", "id_right"]
    return Counter(zip(*[rows.column(name).to_pylist() for name in names], strict=True))


def _filters(draw: Any, on: list[str], how: str, left: Any) -> str | None:
    tests = ["id > 2", "id IS NULL", "id % 2 = 0", *(f"{name} IS {word}NULL" for name in on for word in ("", "NOT "))]
    if how not in ("semi", "anti"):
        tests += ["id_right < 4", "id_right IS NULL", "id < id_right", "id_right IS NULL OR id > 1"]
    if how != "full" and not pa.types.is_temporal(left.field(on[0]).type):
        value = draw(some.values(left.field(on[0]).type))
        tests += [f"{on[0]} {sign} {some.literal(left.field(on[0]).type, value)}" for sign in ("=", "<=", "<>")]
    chosen = draw(st.lists(st.sampled_from(tests), max_size=2, unique=True))
    return " AND ".join(f"({test})" for test in chosen) or None


@pytest.mark.slow
@given(data=st.data(), sides=pairs_of_tables())
@settings(max_examples=60)
def test_a_join_is_that_of_all_rows(data: Any, sides: Any) -> None:
    on = data.draw(st.sampled_from([["a"], ["b"], ["a", "b"], ["b", "a"]]))
    how = data.draw(st.sampled_from([*HOWS]))
    with tempfile.TemporaryDirectory() as folder:
        left, right = _made(folder, "left", sides[0]), _made(folder, "right", sides[1])
        whole = left.join(right, on=on, how=how)
        schema = whole.schema
        if whole.plan().disagreement is not None and any(
            left.schema.field(name).type != right.schema.field(name).type for name in on
        ):
            event("compared in a type that plain DataFusion overflows in")
            return
        where = _filters(data.draw, on, how, sides[0][0])
        join = left.join(right, on=on, how=how, where=where)
        event(f"{len(join.plan().key_functions)} key functions")

        assert _counted(join.to_arrow(), how) == _plain(sides, on, how, where, schema)
