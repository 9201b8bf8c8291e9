"""The table in other engines: DuckDB, Polars, pandas, DataFusion and pyarrow give the answers of a plain table."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
import lance
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pyarrow.acero import Declaration, ScanNodeOptions

import lancepart as lp
from lancepart.errors import UnsupportedOperationError
from lancepart.model.arrow_filter import translated
from lancepart.model.polars_filter import from_polars

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("x", pa.float64()),
        ("flag", pa.bool_()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)
FLOATS = [0.0, -0.0, float("nan"), 1.5, -2.0, None, float("inf")]


def _row(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "country": ["US", "FR", None, "DE"][i % 4],
        "day": date(2024, 1, 1) + timedelta(days=i * 9),
        "ts": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=i),
        "x": FLOATS[i % 7],
        "flag": [True, False, None][i % 3],
        "s": {"a": i * 2, "b": f"b{i}"},
    }


PLAIN = pa.Table.from_pylist([_row(i) for i in range(90)], schema=SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path_factory.mktemp("engines") / "t", SCHEMA, ["country", "year(day)"])
    made.append(PLAIN)
    return made


def rows(found: Any) -> list[str]:
    return sorted(map(repr, pa.table(found).to_pylist()))


QUERIES = [
    "SELECT count(*), sum(id) FROM t",
    "SELECT country, count(*), sum(id) FROM t WHERE day >= DATE '2025-01-01' GROUP BY country",
    "SELECT id, s.a FROM t WHERE country = 'US' AND s.b <> 'b8' ORDER BY id LIMIT 5",
    "SELECT id FROM t WHERE country IS NULL OR country IN ('DE', 'XX')",
    "SELECT id FROM t WHERE x > 1 OR flag",
    "SELECT id FROM t WHERE NOT (x > 1)",
    "SELECT id FROM t WHERE ts BETWEEN '2024-01-02 00:00:00+00' AND '2024-01-03 00:00:00+00'",
]


@pytest.mark.parametrize("query", QUERIES)
def test_duckdb_asks_the_dataset_and_the_stream_and_gets_what_a_plain_table_gives(
    table: lp.PartitionedTable, query: str
) -> None:
    t: Any = PLAIN
    expected = rows(duckdb.sql(query).to_arrow_table())

    for given_as in (table.to_dataset(), table, table.scan()):
        t = given_as
        assert rows(duckdb.sql(query).to_arrow_table()) == expected
    assert t is not PLAIN


def answer(query: str, t: Any) -> list[str]:
    """What DuckDB makes of a query over something that it finds under the name t."""
    return rows(duckdb.sql(query).to_arrow_table())


ON_LANCE = [each for each in QUERIES if "s.b" not in each]
"""Lance takes no filters on fields inside structs from DuckDB, of any dataset."""


def test_duckdb_reads_what_is_published_through_appends_deletions_and_new_columns(tmp_path: Path) -> None:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["country", "year(day)"])
    made.append(PLAIN)
    made.delete("id % 7 = 3")
    published = made.publish_lance(tmp_path / "published.lance").uri
    kept = pa.Table.from_pylist([_row(i) for i in range(90) if i % 7 != 3], schema=SCHEMA)
    made.rename_column("flag", "mark")
    made.add_column(pa.field("more", pa.int64()))
    made.append([{"mark" if name == "flag" else name: value for name, value in _row(i).items()} for i in range(90, 99)])
    made.append([{"id": 100, "country": "JP", "day": date(2026, 1, 1), "more": 7}])

    for query in ON_LANCE:
        assert answer(query, lance.dataset(published)) == answer(query, kept)
    made.publish_lance(tmp_path / "published.lance")
    for query in (
        *(each.replace("flag", "mark") for each in ON_LANCE),
        "SELECT country, sum(more) FROM t GROUP BY ALL",
    ):
        assert answer(query, lance.dataset(published)) == answer(query, made.scan().to_arrow())


def test_duckdb_prunes_partitions(table: lp.PartitionedTable) -> None:
    opened: list[int] = []

    class Watched(type(table.to_dataset())):  # type: ignore[misc]
        def scanner(self, *args: Any, **options: Any) -> Any:
            where = options.get("filter")
            found = None if where is None else translated(where, self.schema)
            opened.append(len(self._narrowed(["id"], found and found.sql).plan().leaves))
            assert list(options["columns"]) == ["id"]
            return super().scanner(*args, **options)

    t = Watched(table.scan())
    assert duckdb.sql("SELECT sum(id) FROM t WHERE country = 'US'").fetchall() == [(sum(range(0, 90, 4)),)]
    assert t is not None
    assert opened
    assert opened[-1] == 3 < len(table.scan().plan().leaves)


FILTERS = [
    pc.field("id") > 5,
    (pc.field("country") == "US") & (pc.field("day") < date(2024, 6, 1)),
    ~(pc.field("country") == "US"),
    pc.field("country").isin(["US", None]),
    ~pc.field("country").isin(["US", None]),
    ~pc.field("country").isin(["FR"]),
    pc.field("country").is_null() | pc.field("flag"),
    pc.field("country").is_valid(),
    pc.field("x") == 0.0,
    pc.field("x") > 1,
    ~(pc.field("x") > 1.0),
    pc.field("x") != 1.5,
    pc.field("x").is_nan(),
    pc.field("x").isin([0.0, float("nan")]),
    (pc.field("s", "a") > 20) & (pc.field("id") * 2 < 100),
    pc.starts_with(pc.field("country"), "U"),
    pc.field("ts") >= datetime(2024, 1, 3, tzinfo=UTC),
    pc.scalar(False),
    pc.field("id") == pc.field("s", "a"),
]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_a_filter_of_pyarrow_matches_the_rows_that_pyarrow_itself_matches(
    table: lp.PartitionedTable, where: pc.Expression
) -> None:
    dataset = table.to_dataset()
    expected = PLAIN.filter(where)

    assert rows(dataset.to_table(filter=where)) == rows(expected)
    assert rows(dataset.filter(where).to_table(columns=["id"])) == rows(expected.select(["id"]))
    assert dataset.count_rows(filter=where) == expected.num_rows
    found = [fragment.to_table(filter=where) for fragment in dataset.get_fragments(filter=where)]
    assert sum(part.num_rows for part in found) == expected.num_rows


def test_the_dataset_is_one_of_pyarrow(table: lp.PartitionedTable) -> None:
    dataset = table.to_dataset()

    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == SCHEMA
    assert dataset.count_rows() == 90
    assert dataset.head(3).num_rows == 3
    assert rows(dataset.to_table(columns={"n": pc.field("id") + 1, "a": pc.field("s", "a")}).slice(0)) == rows(
        pa.table({"n": pc.add(PLAIN["id"], 1), "a": pc.struct_field(PLAIN["s"], "a")})
    )
    assert dataset.to_table(columns=["s.a"]).schema.names == ["s.a"]
    assert dataset.scanner(columns=[]).count_rows() == 90
    assert dataset.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [89]
    other = ds.dataset(pa.table({"country": ["US"], "name": ["States"]}))
    assert table.to_dataset().filter(pc.field("id") >= 0).count_rows() == 90
    few = lp.PartitionedDataset(table.scan(columns=["id", "country"]))
    assert few.join(other, "country", join_type="inner").count_rows() == 23
    assert pa.RecordBatchReader.from_stream(dataset).read_all().num_rows == 90
    assert dataset.take(pa.array([0, 5])).num_rows == 2
    assert dataset.replace_schema(SCHEMA) is dataset
    assert dataset.replace_schema(SCHEMA.append(pa.field("new", pa.int8()))).to_table()["new"].null_count == 90
    older = table.to_dataset(version=table.version)
    assert older.count_rows(filter=pc.field("id") < 10) == 10


POLARS = [
    pl.col("id") > 5,
    (pl.col("country") == "US") & (pl.col("day") < date(2024, 6, 1)),
    ~(pl.col("country") == "US"),
    pl.col("country").is_in(["US", "FR"]),
    ~pl.col("country").is_in(["US", "FR"]),
    pl.col("country").is_null() | pl.col("flag"),
    pl.col("x") == 0.0,
    ~(pl.col("x") > 1.0),
    pl.col("x").is_nan(),
    (pl.col("country") == "US") & (pl.col("id") % 3 == 0),
    pl.col("s").struct.field("a") > 20,
    pl.col("country").str.starts_with("U"),
    pl.col("ts") >= datetime(2024, 1, 3, tzinfo=UTC),
]


def test_what_pyarrow_reads_without_the_methods_of_a_dataset_are_its_rows(table: lp.PartitionedTable) -> None:
    dataset = table.to_dataset("id < 40")
    kept = dataset.filter((pc.field("x") > 1) | pc.field("flag"))
    plain = ds.dataset(PLAIN).filter(pc.field("id") < 40)
    few = ds.dataset(pa.table({"id": [1, 2, 300]}))

    assert rows(ds.Scanner.from_dataset(dataset).to_table()) == rows(plain.to_table())
    found = ds.Scanner.from_dataset(kept, columns=["id"], filter=pc.field("country") == "US").to_table()
    wanted = plain.filter((pc.field("x") > 1) | pc.field("flag")).to_table(["id"], filter=pc.field("country") == "US")
    assert rows(found) == rows(wanted)
    assert ds.UnionDataset(SCHEMA, [dataset, dataset]).count_rows() == 80
    both = ds.dataset([table.to_dataset(), few]).to_table(filter=pc.field("id") == 2)
    assert sorted(map(str, both["country"].to_pylist())) == ["None", "None"]
    assert few.join(lp.PartitionedDataset(table.scan(columns=["id"])), keys="id", join_type="inner").to_table()[
        "id"
    ].to_pylist() == [1, 2]
    scanned = Declaration("scan", ScanNodeOptions(dataset)).to_table()
    assert sorted(scanned["id"].to_pylist()) == list(range(40))
    many = [table.to_dataset(f"id % 20 = {i}") for i in range(20)]
    assert ds.UnionDataset(SCHEMA, many).to_table().num_rows == 90


def test_datasets_and_scans_pickle_at_their_snapshot_and_other_results_say_what_to_do(tmp_path: Path) -> None:
    made = lp.create_table_from(tmp_path / "t", PLAIN.select(["id", "country"]), ["country"])
    dataset = made.to_dataset("id < 10").filter(pc.field("country") == "US")
    scan = made.scan("id < $most", ["id"], order_by="id DESC", limit=3, params={"most": 20})
    query, join = lp.sql("SELECT 1 FROM t", t=made), made.join(made, on=["id"])
    stored, again = pickle.dumps(dataset), pickle.dumps(scan)
    made.delete("id < 100")

    assert pickle.loads(stored).to_table()["id"].to_pylist() == [0, 4, 8]
    assert ds.Scanner.from_dataset(pickle.loads(stored)).to_table()["id"].to_pylist() == [0, 4, 8]
    assert pickle.loads(again).to_arrow()["id"].to_pylist() == [19, 18, 17]
    for result in (query, join):
        with pytest.raises(UnsupportedOperationError, match="not pickled: pickle the tables"):
            pickle.dumps(result)
    with made.transaction() as tx, pytest.raises(UnsupportedOperationError, match="scan of a transaction"):
        pickle.dumps(tx.scan())


@pytest.mark.parametrize("options", [{"layout": "hive"}, {"transactions": "weak"}])
def test_scans_of_every_kind_of_table_pickle(tmp_path: Path, options: Any) -> None:
    made = lp.create_table_from(tmp_path / "t", PLAIN.select(["id", "country"]), ["country"], **options)

    assert pickle.loads(pickle.dumps(made.scan("country = 'US'"))).count() == made.scan("country = 'US'").count()


@pytest.mark.parametrize("where", POLARS, ids=str)
def test_a_lazy_frame_gives_what_an_eager_one_gives(table: lp.PartitionedTable, where: pl.Expr) -> None:
    lazy = lp.scan_polars(table.root)
    eager = pl.DataFrame(PLAIN)

    found = lazy.filter(where).select("id", "x").sort("id").collect()

    assert_frame_equal(found, eager.filter(where).select("id", "x").sort("id"))


def test_a_lazy_frame_reads_and_prunes_only_what_is_needed(table: lp.PartitionedTable) -> None:
    assert from_polars((pl.col("country") == "US") & (pl.col("id").xor(3) == 0), SCHEMA, loosely=True) == (
        "((`country` = 'US'))"
    )
    assert from_polars(pl.col("id").xor(3) == 0, SCHEMA, loosely=True) is None
    assert lp.scan_polars(table.root).head(4).collect().height == 4
    assert lp.scan_polars(table.root).select(pl.len()).collect().item() == 90
    assert lp.scan_polars(table.root).filter(pl.col("id") < 50).head(7).collect().height == 7
    assert_frame_equal(pl.DataFrame(table).sort("id"), pl.DataFrame(PLAIN).sort("id"))


@pytest.mark.parametrize("query", [query for query in QUERIES if "BETWEEN" not in query and "> 1" not in query])
def test_datafusion_reads_the_provider_and_the_dataset(table: lp.PartitionedTable, query: str) -> None:
    plain = SessionContext()
    plain.register_record_batches("t", [PLAIN.to_batches()])
    native, dataset = SessionContext(), SessionContext()
    native.register_table("t", table)
    dataset.register_dataset("t", table.to_dataset())
    text = query.replace("s.a", "s['a']").replace("s.b", "s['b']")

    expected = rows(plain.sql(text).to_arrow_table())
    assert rows(native.sql(text).to_arrow_table()) == expected
    assert rows(dataset.sql(text).to_arrow_table()) == expected


def test_pandas_round_trips(table: lp.PartitionedTable) -> None:
    frame = table.scan("country = 'US'", ["id", "country"]).to_pandas()
    before = table.version
    table.append(frame.assign(id=frame["id"] + 1000))

    assert table.scan("id >= 1000").count() == 23
    assert len(table.changes(before).to_pandas()) == 23
    table.delete("id >= 1000")


_leaf = st.sampled_from([expr for expr in FILTERS if "scalar" not in str(expr)])


@pytest.mark.slow
@settings(max_examples=60)
@given(
    where=st.recursive(
        _leaf,
        lambda inner: st.tuples(st.sampled_from(["and", "or", "not"]), inner, inner).map(
            lambda made: made[1] & made[2] if made[0] == "and" else made[1] | made[2] if made[0] == "or" else ~made[1]
        ),
        max_leaves=5,
    )
)
def test_any_combination_of_filters_loses_no_row(table: lp.PartitionedTable, where: pc.Expression) -> None:
    found = table.to_dataset().to_table(columns=["id"], filter=where)

    assert sorted(found["id"].to_pylist()) == sorted(PLAIN.filter(where)["id"].to_pylist())


def test_a_list_without_values_negated_leaves_nulls_out_as_polars_does(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "i": pa.array([None, 1], pa.int32())})
    table = lp.create_table(tmp_path / "t", rows.schema, ["id"])
    table.append(rows)

    for where in (~pl.col("i").is_in([]), ~pl.col("i").is_in([None]), pl.col("i").is_in([])):
        assert table.scan(where).to_list() == cast(pl.DataFrame, pl.from_arrow(rows)).filter(where).to_dicts()


def test_a_list_of_floats_finds_zeros_of_both_signs_inside_structs_too(tmp_path: Path) -> None:
    inside = pa.array([{"f": -0.0}, {"f": 0.0}, {"f": 1.0}, None], pa.struct([("f", pa.float64())]))
    rows = pa.table({"id": [1, 2, 3, 4], "s": inside})
    table = lp.create_table_from(tmp_path / "t", rows, ["id"])
    field = pl.col("s").struct.field("f")

    for where in (field.is_in([0.0]), field >= -field, ~field.is_in([0.0])):
        assert_frame_equal(
            table.lazy().filter(where).sort("id").collect(), cast(pl.DataFrame, pl.from_arrow(rows)).filter(where)
        )
