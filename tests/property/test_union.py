"""One Lance dataset over all leaves against the scan: same rows, for random tables, evolutions, filters, snapshots."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.format.numbers import FIRST
from tests.property import strategies as some
from tests.property import test_foreign_property as foreign
from tests.property.test_layouts_property import draft_fields, levels, write_draft
from tests.property.test_table_property import CHANGES, LONG, STEPS, World, multiset, question, schemas

EXAMPLES = 800 if LONG else 25


def delete(world: World, draw: Any) -> None:
    where, doomed = question(draw, world.rows)
    version = world.table.delete(where)
    gone = set(doomed.column("id").to_pylist())
    kept = [number not in gone for number in world.rows.column("id").to_pylist()]
    world.rows = world.rows.filter(pa.array(kept, pa.bool_()))
    if version is not None:
        world.past.append((version, world.rows))


def compact(world: World, draw: Any) -> None:
    if world.table.metadata.transactions == "strong":
        world.table.maintenance.compact()


def replace_column(world: World, draw: Any) -> None:
    """The last column gives way to another with its name, its type and its place."""
    last = world.schema.field(len(world.schema) - 1)
    if len(world.schema) > 2:
        world.table.drop_column(last.name)
        world.table.add_column(last)
        nothing = pa.nulls(world.rows.num_rows, last.type)
        world.rows = world.rows.set_column(len(world.schema) - 1, last, nothing)


def index(world: World, draw: Any) -> None:
    """An index on the column that filters name, new or kept up, in the leaves as they are by now."""
    if world.table.metadata.transactions == "strong":
        kind = draw(st.sampled_from(["BTREE", "BITMAP", "upkeep"]))
        if kind == "upkeep":
            world.table.maintenance.optimize_indices(progress=False)
        else:
            world.table.maintenance.create_index("id", kind, scope="leaf", name="by_id", progress=False)


def assert_finds_ids(draw: Any, union: Any, rows: Any) -> None:
    """A filter that an index answers gives the rows with those ids, each once."""
    known = rows.column("id").to_pylist()
    wanted = draw(st.lists(st.sampled_from([*known, -(1 << 40)]), min_size=1, max_size=5))
    found = union.to_table(filter=f"id IN ({', '.join(map(str, wanted))})", columns=["id"])
    assert sorted(found["id"].to_pylist()) == sorted(number for number in known if number in wanted)


def published(world: World) -> Any:
    """The rows of the published union, as whoever opens it by its address finds them."""
    uri = world.table.publish_lance().uri
    return lance.dataset(uri).to_table(blob_handling="all_binary")


def publish(world: World, draw: Any) -> None:
    found = published(world)
    assert found.schema.types == world.table.schema.types
    assert multiset(found) == multiset(world.rows)
    assert_finds_ids(draw, lance.dataset(world.table.publish_lance().uri), world.rows)


EVOLUTIONS = (
    *(step for step in CHANGES if step is not World.check),
    delete,
    delete,
    compact,
    index,
    index,
    replace_column,
)


def assert_union_is_scan(draw: Any, table: Any, rows: Any) -> None:
    """All rows and those that a filter leaves are the same as the scan's, and can be taken by their ids."""
    where, expected = question(draw, rows)
    union = table.to_lance().to_table(with_row_id=True, blob_handling="all_binary")
    ids, found = union.column("_rowid"), union.drop_columns(["_rowid"])

    assert found.schema.types == table.schema.types
    assert multiset(found) == multiset(rows)
    assert len(set(ids.to_pylist())) == union.num_rows
    assert multiset(table.to_lance(where).to_table()) == multiset(expected)
    assert table.to_lance(where).count_rows() == expected.num_rows
    assert_finds_ids(draw, table.to_lance(), rows)
    assert_finds_ids(draw, table.to_lance(where), expected)
    if union.num_rows:
        assert multiset(table.to_lance()._take_rows(ids.to_pylist())) == multiset(rows)


def assert_ids_last(table: Any, named: dict[int, int]) -> None:
    """An id that the table gave to a row in one snapshot is in no other one that of another row."""
    found = table.to_lance().to_table(columns=["id"], with_row_id=True)
    ids = zip(found["_rowid"].to_pylist(), found["id"].to_pylist(), strict=True)
    now = {number: key for number, key in ids if number >> 32 >= FIRST}
    assert table.metadata.transactions == "weak" or len(now) == found.num_rows
    assert all(named.get(number, key) == key for number, key in now.items())
    named |= now


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_union_holds_what_the_scan_finds(data: Any) -> None:
    draw = data.draw
    schema = draw(schemas())
    with TemporaryDirectory() as directory:
        mode = draw(st.sampled_from(["strong", "strong", "weak"]))
        table = lp.create_table(f"{directory}/t", schema, draw(some.partitionings(schema)), transactions=mode)
        world = World(table=table, rows=schema.empty_table())
        world.append(draw)
        named: dict[int, int] = {}
        for step in draw(st.lists(st.sampled_from(EVOLUTIONS), min_size=1, max_size=STEPS)):
            step(world, draw)
            assert_ids_last(table, named)

        assert_union_is_scan(draw, table, world.rows)
        if world.past:
            version, rows = draw(st.sampled_from(world.past))
            assert multiset(table.to_lance(version=version).to_table()) == multiset(rows)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_published_union_follows_the_table(data: Any) -> None:
    draw = data.draw
    schema = draw(schemas())
    with TemporaryDirectory() as directory:
        mode = draw(st.sampled_from(["strong", "strong", "weak"]))
        table = lp.create_table(f"{directory}/t", schema, draw(some.partitionings(schema)), transactions=mode)
        world = World(table=table, rows=schema.empty_table())
        world.append(draw)
        for step in draw(st.lists(st.sampled_from((*EVOLUTIONS, publish, publish)), min_size=1, max_size=STEPS)):
            step(world, draw)
        publish(world, draw)
        if world.past:
            version, rows = draw(st.sampled_from(world.past))
            table.maintenance.rollback(version)
            world.rows = rows
            assert multiset(published(world)) == multiset(table.scan().to_arrow())


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 3, 8))
@given(data=st.data())
def test_a_union_of_an_older_layout_holds_what_the_scan_finds(data: Any) -> None:
    draw = data.draw
    schema = draw(schemas())
    with TemporaryDirectory() as directory:
        if draw(st.booleans()):
            table = lp.create_table(f"{directory}/t", schema, draw(levels(schema)), layout="hive")
        else:
            write_draft(f"{directory}/t", schema, draw(draft_fields(schema)))
            table = lp.open_table(f"{directory}/t")
        world = World(table=table, rows=schema.empty_table())
        world.append(draw)
        world.append(draw)
        delete(world, draw)

        assert_union_is_scan(draw, table, world.rows)


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 3, 8))
@given(data=st.data())
def test_a_union_of_leaves_that_another_client_wrote_holds_what_the_scan_finds(data: Any) -> None:
    draw = data.draw
    zone = draw(st.sampled_from(foreign.ZONES))
    rows = draw(foreign.tables(zone))
    unlike = st.lists(
        foreign.fields(zone), min_size=1, max_size=2, unique_by=lambda each: (each.column, each.transform)
    )
    with TemporaryDirectory() as root:
        foreign.write(draw, root, rows, draw(unlike))
        where = draw(foreign.filters(zone))
        table = lp.open_table(root)

        assert table.to_lance().to_table().sort_by("id").equals(rows)
        assert sorted(table.to_lance(where).to_table()["id"].to_pylist()) == foreign.expected(rows, where)
