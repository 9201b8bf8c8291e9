"""Whole tables against DataFusion over the same rows in memory: every type, partitioning, filter and evolution."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.model.partition_keys import value_keys
from lancepart.storage import manifest_maintenance
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.write.route import partition_values
from tests.property import strategies as some
from tests.support.tiers import slow

LONG = bool(os.environ.get("LANCEPART_TORTURE"))
EXAMPLES = 1500 if LONG else 30
STEPS = 10 if LONG else 5


@dataclass
class World:
    """A table, and what it ought to hold: the same rows in memory, in the table's schema as it stands."""

    table: Any
    rows: Any
    written: int = 0
    used: set[str] = field(default_factory=set)
    past: list[tuple[int, Any]] = field(default_factory=list)

    @property
    def schema(self) -> Any:
        return self.rows.schema

    def append(self, draw: Any) -> None:
        more = some.rows(draw, self.schema, self.written, draw(st.integers(1, 9)))
        version = self.table.append(more)
        self.written += more.num_rows
        self.rows = pa.concat_tables([self.rows, more])
        if version is not None:
            self.past.append((version, self.rows))
        assert_rows_are_in_their_leaves(self.table, more)

    def update_spec(self, draw: Any) -> None:
        self.table.update_spec(draw(some.partitionings(self.schema)))

    def add_column(self, draw: Any) -> None:
        added = pa.field(self.new_name(draw), draw(some.TYPES))
        self.table.add_column(added)
        self.rows = self.rows.append_column(added, pa.nulls(self.rows.num_rows, added.type))

    def rename_column(self, draw: Any) -> None:
        old, new = draw(st.sampled_from(self.schema.names[1:])), self.new_name(draw)
        self.table.rename_column(old, new)
        self.rows = self.rows.rename_columns([new if name == old else name for name in self.schema.names])

    def drop_column(self, draw: Any) -> None:
        if len(self.schema) > 2:
            name = draw(st.sampled_from(self.schema.names[1:]))
            self.table.drop_column(name)
            self.rows = self.rows.drop_columns([name])

    def widen_column(self, draw: Any) -> None:
        choices = [(each.name, kind) for each in list(self.schema)[1:] for kind in some.wider(each.type)]
        if choices:
            name, kind = draw(st.sampled_from(choices))
            self.table.widen_column(name, kind)
            at = self.schema.get_field_index(name)
            self.rows = self.rows.set_column(at, pa.field(name, kind), self.rows.column(at).cast(kind))

    def index_partitions(self, draw: Any) -> None:
        """Have the manifest look partition values up in an index, as it does once there are many."""
        manifest_maintenance.index(Manifest(Root.parse(self.table.root)), many=0)

    def new_name(self, draw: Any) -> str:
        """A name that no column has now; some column may have had it before."""
        self.used.update(self.schema.names)
        free = [name for name in some.NAMES if name not in self.schema.names]
        again = [name for name in free if name in self.used]
        return draw(st.sampled_from(again) if again and draw(st.booleans()) else st.sampled_from(free))

    def check(self, draw: Any) -> None:
        """Ask one question in every way that there is."""
        where, expected = question(draw, self.rows)
        scan = self.table.scan(where)

        assert multiset(scan.to_arrow()) == multiset(expected)
        assert scan.count() == expected.num_rows
        self.check_limit(where, expected, draw(st.integers(0, 6)))
        self.check_columns(where, expected, draw(st.lists(st.sampled_from(self.schema.names), min_size=1, unique=True)))

    def check_limit(self, where: str, expected: Any, limit: int) -> None:
        scan = self.table.scan(where, limit=limit)
        found = scan.to_arrow()

        assert found.num_rows == scan.count() == min(limit, expected.num_rows)
        assert multiset(found) <= multiset(expected)

    def check_columns(self, where: str, expected: Any, columns: list[str]) -> None:
        found = self.table.scan(where, columns=columns).to_arrow()

        assert found.column_names == columns
        assert multiset(found) == multiset(expected.select(columns))

    def check_past(self, draw: Any) -> None:
        """An older snapshot still reads as it did."""
        version, rows = draw(st.sampled_from(self.past))
        old = lp.open_table(self.table.root, version=version)
        where, expected = question(draw, rows)

        assert old.schema == rows.schema
        assert multiset(old.scan(where).to_arrow()) == multiset(expected)


CHANGES = (
    World.append,
    World.append,
    World.update_spec,
    World.add_column,
    World.rename_column,
    World.drop_column,
    World.widen_column,
    World.index_partitions,
    World.check,
)


def question(draw: Any, rows: Any, columns: list[str] | None = None) -> tuple[str, Any]:
    """A filter and its answer; one that DataFusion can't evaluate (overflows in its own coercions) does not count."""
    for _ in range(5):
        where = draw(some.filters(rows.schema if columns is None else rows.select(columns).schema))
        try:
            return where, brute_force(rows, where)
        except Exception:
            continue
    return reject()


def brute_force(rows: Any, where: str) -> Any:
    """What DataFusion finds in memory."""
    context = SessionContext()
    numbered = rows.append_column("row number", pa.array(range(rows.num_rows)))
    context.register_record_batches("t", [numbered.to_batches() or [pa.RecordBatch.from_pylist([], numbered.schema)]])
    found = context.sql(f'SELECT "row number" FROM t WHERE {where}').to_arrow_table()
    return rows.take(found.column(0).combine_chunks())


def multiset(rows: Any) -> Counter[Any]:
    """The rows with how often each stands there, floats by their bits and times by their ticks."""
    columns = [plain(column.combine_chunks()) for column in rows.columns]
    return Counter(zip(*columns, strict=True))


def plain(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_floating(kind):
        bits = column.to_numpy(zero_copy_only=False).astype(kind.to_pandas_dtype()).view(f"u{kind.bit_width // 8}")
        return [
            None if null else int(item)
            for item, null in zip(bits, column.is_null(nan_is_null=False).to_pylist(), strict=True)
        ]
    if pa.types.is_temporal(kind):
        return column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    return column.to_pylist()


def assert_rows_are_in_their_leaves(table: Any, rows: Any) -> None:
    """Each row that was just written stands in the leaf that has the values that the spec gives it."""
    spec, leaves = table.spec, table.scan().plan().leaves
    arrays = partition_values(rows, table.metadata.schema, spec)
    expected = dict(zip(rows.column("id").to_pylist(), zip(*map(value_keys, arrays), strict=True), strict=True))
    found = {}
    for leaf in leaves:
        if leaf.spec_id == spec.id:
            stored = lance.dataset(f"{table.root}/{leaf.location}", version=leaf.read_version)
            found |= dict.fromkeys(stored.to_table(columns=["id"]).column("id").to_pylist(), leaf.key)
    assert {key: found.get(key) for key in expected} == expected


def assert_partitions_are_unique(table: Any) -> None:
    partitions = table.inspect.partitions().select(["spec_id", "partition", "rows"]).to_pylist()
    values = Counter((each["spec_id"], tuple(each["partition"])) for each in partitions)
    assert not [value for value, times in values.items() if times > 1]
    assert sum(each["rows"] for each in partitions) == table.scan().count()


@st.composite
def schemas(draw: Any) -> Any:
    names = draw(st.lists(st.sampled_from(some.NAMES), min_size=2, max_size=5, unique=True))
    return pa.schema([("id", pa.int64()), *((name, draw(some.TYPES)) for name in names)])


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_table_holds_and_finds_what_the_same_rows_in_memory_do(data: Any) -> None:
    draw = data.draw
    schema = draw(schemas())
    with TemporaryDirectory() as directory:
        table = lp.create_table(
            f"{directory}/t",
            schema,
            draw(some.partitionings(schema)),
            transactions=draw(st.sampled_from(["strong", "strong", "weak"])),
        )
        world = World(table=table, rows=schema.empty_table())
        world.append(draw)
        for step in draw(st.lists(st.sampled_from(CHANGES), max_size=STEPS)):
            step(world, draw)
        world.check(draw)

        assert table.schema == world.schema
        assert multiset(table.scan().to_arrow()) == multiset(world.rows)
        assert table.scan().count() == world.rows.num_rows
        assert_partitions_are_unique(table)
        if world.past:
            world.check_past(draw)


GALLERY = (
    *(pa.int8(), pa.int64(), pa.uint64(), pa.bool_(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(10, 2), pa.decimal256(45, 3), pa.string(), pa.dictionary(pa.int8(), pa.string())),
    *(pa.binary(), pa.binary(3), pa.date32(), pa.date64(), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Paris")),
)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: Any) -> tuple[Any, Any]:
    """One table with a column of each kind, all edges of each in it, NULL among them."""
    edges = [[None, *some.edges(kind)] for kind in GALLERY]
    size = 2 * max(map(len, edges))
    columns = [
        some.array(kind, [found[row % len(found)] for row in range(size)])
        for kind, found in zip(GALLERY, edges, strict=True)
    ]
    fields = [pa.field(f"c{at}", kind) for at, kind in enumerate(GALLERY)]
    rows = pa.table([pa.array(range(size), pa.int64()), *columns], schema=pa.schema([("id", pa.int64()), *fields]))
    table = lp.create_table(str(tmp_path_factory.mktemp("gallery") / "t"), rows.schema, ["bucket(2, id)"])
    table.append(rows)
    return table, rows


@pytest.mark.slow
@settings(max_examples=EXAMPLES * 4)
@given(data=st.data())
def test_leaves_answer_as_datafusion_does(gallery: tuple[Any, Any], data: Any) -> None:
    table, rows = gallery
    chosen = data.draw(st.lists(st.sampled_from(rows.schema.names), min_size=1, max_size=3, unique=True))
    where, expected = question(data.draw, rows, chosen)

    assert multiset(table.scan(where).to_arrow()) == multiset(expected)
    assert table.scan(where).count() == expected.num_rows


@dataclass(frozen=True, kw_only=True, repr=False)
class Universe:
    """A table that holds every row that there can be, so that a leaf without a match could never have had one."""

    table: Any
    rows: Any
    leaf_of: dict[int, str]


FIRST, LAST = date(2024, 1, 1), date(2025, 12, 31)
DAYS = [FIRST + timedelta(days=days) for days in range((LAST - FIRST).days + 1)]
SECONDS = range(1_767_214_800, 1_767_214_800 + 6 * 3600)
TRUTHS = [None, True, False]
TINY = (pa.schema([("u", pa.int8()), ("b", pa.bool_())]), ([None, *range(-128, 128)], TRUTHS))
DATED = (pa.schema([("d", pa.date32()), ("b", pa.bool_())]), ([None, *DAYS], TRUTHS))
TIMED = (pa.schema([("t", pa.timestamp("s", "Europe/Paris"))]), ([None, *SECONDS],))
UNIVERSES = {
    "identity": (TINY, ["u"], ["u", "b"]),
    "truncate": (TINY, ["b", "truncate(u, 16)", "expr(u % 2) AS odd"], ["u", "b"]),
    "bucket": (TINY, ["bucket(30, u)", "b"], ["u", "b"]),
    "multi_bucket": (TINY, ["multi_bucket(40, u, b)"], ["u", "b"]),
    "month": (DATED, ["year(d)", "month(d)", "b"], ["d", "b"]),
    "day": (DATED, ["year(d)", "day(d)"], ["d"]),
    "date": (DATED, ["bucket(20, d)", "year(d)"], ["d", "b"]),
    "hour": (TIMED, ["year(t)", "month(t)", "day(t)", "hour(t)"], ["t"]),
}
QUICK = ("month", "multi_bucket")


@pytest.fixture(scope="module", params=[name if name in QUICK else slow(name) for name in UNIVERSES])
def universe(request: Any, tmp_path_factory: Any) -> tuple[Universe, list[str]]:
    (schema, columns), partition_by, filtered = UNIVERSES[request.param]
    every = [dict(zip(schema.names, row, strict=True)) for row in product(*columns)]
    rows = pa.Table.from_pylist(every, schema=schema).add_column(0, "id", [pa.array(range(len(every)), pa.int64())])
    table = lp.create_table(str(tmp_path_factory.mktemp("universe") / "t"), rows.schema, partition_by)
    table.append(rows)
    leaf_of = {}
    for leaf in table.scan().plan().leaves:
        stored = lance.dataset(f"{table.root}/{leaf.location}", version=leaf.read_version).to_table(columns=["id"])
        leaf_of |= dict.fromkeys(stored.column("id").to_pylist(), leaf.object_id)
    return Universe(table=table, rows=rows, leaf_of=leaf_of), filtered


def asked_of(column: str) -> st.SearchStrategy[str]:
    """Filters that tell of one column exactly what they ask."""
    if column == "b":
        return st.sampled_from(["b", "NOT b", "b IS NULL", "b IS NOT TRUE", "b = false", "b IS NOT NULL"])
    literals = {
        "u": st.integers(-128, 127).map(str),
        "d": st.sampled_from(DAYS).map(lambda day: f"DATE '{day}'"),
        "t": st.sampled_from(SECONDS).map(lambda at: f"to_timestamp_seconds({at})"),
    }[column]
    listed = st.lists(literals, min_size=1, max_size=4).map(", ".join)
    return (
        st.tuples(st.sampled_from(some.OPERATORS), literals).map(lambda t: f"{column} {t[0]} {t[1]}")
        | st.tuples(st.sampled_from(["", "NOT "]), listed).map(lambda t: f"{column} {t[0]}IN ({t[1]})")
        | st.tuples(literals, literals).map(lambda t: f"{column} BETWEEN {t[0]} AND {t[1]}")
        | st.just(f"{column} IS NULL")
    )


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_leaf_is_kept_that_could_not_hold_a_match(universe: tuple[Universe, list[str]], data: Any) -> None:
    world, columns = universe
    where = data.draw(some.nested(st.one_of([asked_of(column) for column in columns]), depth=2))
    matches = brute_force(world.rows, where)

    kept = {leaf.object_id for leaf in world.table.scan(where).plan().leaves}

    assert kept == {world.leaf_of[number] for number in matches.column("id").to_pylist()}
