"""The older layouts against DataFusion over the same rows in memory, before an upgrade and after it."""

from __future__ import annotations

import re
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.model import hive_path
from lancepart.model.draft import spec_to_array
from lancepart.model.hashing import hashable
from lancepart.model.schema import assign_field_ids, dumps, schema_to_json
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.values import logical_type
from lancepart.storage.manifest_rows import SCHEMA as MANIFEST
from tests.property import strategies as some
from tests.property.test_table_property import (
    DATED,
    EXAMPLES,
    TIMED,
    TINY,
    Universe,
    World,
    asked_of,
    assert_partitions_are_unique,
    brute_force,
    multiset,
    question,
    schemas,
)


def levels(schema: Any) -> st.SearchStrategy[list[str]]:
    """One to three levels of a Hive-style table; floats are left out of identity, which knows one zero and one NaN."""
    choices: list[str] = []
    for field in list(schema)[1:]:
        name, kind = some.identifier(field.name), field.type
        choices += [f"hash({name})"]
        if hive_path.stringifies(kind) and not pa.types.is_floating(kind):
            choices += [name, name]
        if hashable(kind):
            choices += [f"bucket(3, {name})", f"bucket(16, {name})"]
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            choices += [f"year({name})", f"month({name})", f"day({name})"]
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            choices += [f"hour({name})"]
        plain = kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or (plain and some.is_text(kind)):
            choices += [f"truncate(2, {name})", f"truncate(10, {name})"]
    return st.lists(st.sampled_from(choices), min_size=1, max_size=3, unique_by=lambda text: re.sub(r"\d+, ", "", text))


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 2, 10))
@given(data=st.data())
def test_a_hive_tree_holds_and_finds_what_the_same_rows_in_memory_do(data: Any) -> None:
    draw = data.draw
    schema = draw(schemas())
    with TemporaryDirectory() as directory:
        table = lp.create_table(f"{directory}/t", schema, draw(levels(schema)), layout="hive")
        check(draw, table, schema, past=False)


def draft_fields(schema: Any) -> st.SearchStrategy[list[PartitionField]]:
    """One to three expressions of document 000 over the columns of a schema."""
    choices: list[tuple[str, tuple[int, ...], Any]] = []
    for number, field in list(enumerate(schema))[1:]:
        kind = logical_type(field.type)
        choices += [("col0", (number,), kind)]
        if hashable(kind):
            choices += [("abs(md5_int(col0)) % 5", (number,), pa.int64())]
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            choices += [(f"date_part('{part}', col0)", (number,), pa.int32()) for part in ("year", "month", "day")]
        if pa.types.is_timestamp(kind):
            choices += [("date_part('hour', col0)", (number,), pa.int32())]
        if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
            choices += [("col0 - (col0 % 10)", (number,), kind)]
        if some.is_text(kind):
            choices += [("left(col0, 2)", (number,), pa.string()), ("upper(col0)", (number,), pa.string())]
    texts = [number for number, field in enumerate(schema) if some.is_text(field.type)]
    choices += [("abs(md5_int(concat(col0, col1))) % 4", (a, b), pa.int64()) for a in texts for b in texts if a < b]
    chosen = st.lists(st.sampled_from(choices), min_size=1, max_size=3, unique_by=lambda item: item[:2])
    return chosen.map(
        lambda items: [
            PartitionField(field_id=f"f{at}", source_ids=sources, expression=text, result_type=kind)
            for at, (text, sources, kind) in enumerate(items)
        ]
    )


def write_draft(root: str, schema: Any, fields: list[PartitionField]) -> None:
    """An empty table of the draft, by hand."""
    pointers = [pa.field("read_version", pa.uint64()), pa.field("read_branch", pa.string())]
    values = [pa.field(f"partition_field_{field.field_id}", field.result_type) for field in fields]
    handle = lance.write_dataset(
        pa.schema([*list(MANIFEST)[:5], *pointers, *values]).empty_table(), f"{root}/__manifest"
    )
    spec = spec_to_array(PartitionSpec(id=1, fields=tuple(fields)))
    handle.update_metadata({"partition_spec_v1": spec, "schema": dumps(schema_to_json(assign_field_ids(schema)))})


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 2, 10))
@given(data=st.data())
def test_a_draft_holds_and_finds_what_the_same_rows_in_memory_do(data: Any) -> None:
    draw = data.draw
    schema = draw(schemas())
    with TemporaryDirectory() as directory:
        write_draft(f"{directory}/t", schema, draw(draft_fields(schema)))
        check(draw, lp.open_table(f"{directory}/t"), schema, past=True)


def check(draw: Any, table: Any, schema: Any, *, past: bool) -> None:
    """Write, change and ask; then upgrade, and ask again."""
    world = World(table=table, rows=schema.empty_table())
    world.append(draw)
    world.append(draw)
    change(draw, world)
    ask(draw, world)
    if past and world.past:
        world.check_past(draw)
    world.table = lp.upgrade(table.root)
    assert world.table.metadata.layout == "manifest"
    ask(draw, world)
    assert_partitions_are_unique(world.table)
    world.append(draw)
    ask(draw, world)


def change(draw: Any, world: World) -> None:
    """Delete what some filter matches, or overwrite the partitions of some rows."""
    if draw(st.booleans()):
        where, doomed = question(draw, world.rows)
        world.table.delete(where)
        gone = set(doomed.column("id").to_pylist())
        kept = [number not in gone for number in world.rows.column("id").to_pylist()]
        world.rows = world.rows.filter(pa.array(kept, pa.bool_()))
    else:
        more = some.rows(draw, world.schema, 0, world.written)
        world.table.upsert(more, on=["id"])
        world.rows = more


def ask(draw: Any, world: World) -> None:
    world.check(draw)
    assert world.table.schema == world.schema
    assert multiset(world.table.scan().to_arrow()) == multiset(world.rows)
    assert world.table.scan().count() == world.rows.num_rows


HIVE_UNIVERSES: dict[str, Any] = {
    "identity": (TINY, ["u"], ["u", "b"]),
    "truncate": (TINY, ["b", "truncate(u, 16)"], ["u", "b"]),
    "bucket": (TINY, ["bucket(30, u)", "b"], ["u", "b"]),
    "hash": (TINY, ["hash(u)"], ["u"]),
    "month": (DATED, ["year(d)", "month(d)", "b"], ["d", "b"]),
    "date": (DATED, ["bucket(20, d)", "year(d)"], ["d", "b"]),
    "hour": (TIMED, ["year(t)", "month(t)", "day(t)", "hour(t)"], ["t"]),
}
DRAFT_UNIVERSES: dict[str, Any] = {
    "identity": (TINY, [("col0", 1, pa.int8())], ["u", "b"]),
    "truncate": (TINY, [("col0", 2, pa.bool_()), ("col0 - (col0 % 16)", 1, pa.int8())], ["u", "b"]),
    "md5": (TINY, [("abs(md5_int(col0)) % 30", 1, pa.int64()), ("col0", 2, pa.bool_())], ["u", "b"]),
    "month": (DATED, [(f"date_part('{part}', col0)", 1, pa.int32()) for part in ("year", "month")], ["d"]),
}


@pytest.fixture(
    scope="module", params=[("hive", name) for name in HIVE_UNIVERSES] + [("draft", n) for n in DRAFT_UNIVERSES]
)
def universe(request: Any, tmp_path_factory: Any) -> tuple[Universe, list[str]]:
    layout, name = request.param
    (schema, columns), fields, asked = (HIVE_UNIVERSES if layout == "hive" else DRAFT_UNIVERSES)[name]
    every = [dict(zip(schema.names, row, strict=True)) for row in product(*columns)]
    rows = pa.Table.from_pylist(every, schema=schema).add_column(0, "id", [pa.array(range(len(every)), pa.int64())])
    root = str(tmp_path_factory.mktemp("universe") / "t")
    if layout == "hive":
        table = lp.create_table(root, rows.schema, fields, layout="hive")
    else:
        made = [
            PartitionField(field_id=f"f{at}", source_ids=(source,), expression=text, result_type=kind)
            for at, (text, source, kind) in enumerate(fields)
        ]
        write_draft(root, rows.schema, made)
        table = lp.open_table(root)
    table.append(rows)
    leaf_of = {}
    for leaf in table.scan().plan().leaves:
        stored = lance.dataset(f"{root}/{leaf.location}", version=leaf.read_version).to_table(columns=["id"])
        leaf_of |= dict.fromkeys(stored.column("id").to_pylist(), leaf.object_id)
    return Universe(table=table, rows=rows, leaf_of=leaf_of), asked


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 2, 10))
@given(data=st.data())
def test_no_leaf_is_kept_that_could_not_hold_a_match(universe: tuple[Universe, list[str]], data: Any) -> None:
    world, columns = universe
    where = data.draw(some.nested(st.one_of([asked_of(column) for column in columns]), depth=2))
    matches = brute_force(world.rows, where)

    kept = {leaf.object_id for leaf in world.table.scan(where).plan().leaves}

    assert kept == {world.leaf_of[number] for number in matches.column("id").to_pylist()}
