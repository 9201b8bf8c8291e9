"""SQL without Spark: over tables by name and over a warehouse, with pruning, parameters and partition functions."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from lance_namespace import CreateTableRequest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.queries import kept_columns
from lancepart.queries import sources as query_sources
from lancepart.read.dataset import PartitionedDataset
from lancepart.storage import lance_tables
from tests.support.catalogs import ipc

EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("person", pa.int64()),
        ("country", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("amount", pa.float64()),
    ]
)
ROWS = [
    {
        "id": i,
        "person": i % 7,
        "country": ["US", "FR", "DE"][i % 3],
        "ts": datetime(2023, 6, 1, tzinfo=UTC) + timedelta(days=i * 20),
        "amount": i * 1.5,
    }
    for i in range(60)
]


@pytest.fixture(autouse=True)
def natively(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables as small as those of the tests are read as large ones are the first time, unless a test says otherwise."""
    monkeypatch.setattr(query_sources, "_SMALL", -1)
    monkeypatch.setattr(query_sources.kept_columns, "would_fit", lambda *given: False)


@pytest.fixture(scope="module")
def events(tmp_path_factory: Any) -> lp.PartitionedTable:
    table = lp.create_table(tmp_path_factory.mktemp("sql") / "events", EVENTS, ["country", "year(ts)"])
    table.append(ROWS)
    return table


@pytest.fixture(scope="module")
def people(tmp_path_factory: Any) -> lp.PartitionedTable:
    schema = pa.schema([("person", pa.int64()), ("name", pa.string())])
    table = lp.create_table(tmp_path_factory.mktemp("sql") / "people", schema, ["bucket(4, person)"])
    table.append([{"person": i, "name": f"p{i}"} for i in range(7)])
    return table


def test_a_join_with_groups(events: lp.PartitionedTable, people: lp.PartitionedTable) -> None:
    query = """
        SELECT name, count(*) AS n, sum(amount) AS total  -- a comment
        FROM events JOIN people ON events.person = people.person
        WHERE country = 'US' GROUP BY name ORDER BY name
    """
    found = lp.sql(query, events=events, people=people)
    expected = {}
    for row in ROWS:
        if row["country"] == "US":
            n, total = expected.get(f"p{row['person']}", (0, 0.0))
            expected[f"p{row['person']}"] = (n + 1, total + row["amount"])

    assert found.to_list() == [{"name": k, "n": n, "total": t} for k, (n, t) in sorted(expected.items())]
    assert found.schema.names == ["name", "n", "total"]
    assert found.to_list() == found.to_polars().to_dicts()
    assert len(found.to_pandas()) == found.count() == len(expected)
    assert "events: 4 of 12 partitions" in found.explain()


@pytest.mark.parametrize(
    ("where", "partitions"),
    [
        ("country = 'US'", 4),
        ("country IN ('US', 'FR') AND ts >= '2025-01-01T00:00:00Z'", 4),
        ("year(ts) = 2024", 3),
        ("year(e.ts) = 2024 AND country = 'DE'", 1),
        ("bucket(4, id) = 1", 12),
        ("truncate(country, 1) = 'U'", 4),
        ("month(ts) = 6", 12),
        ("country = 'XX'", 0),
        ("country = (SELECT max(country) FROM events)", 12),
        ("id = $id", 12),
    ],
)
def test_a_query_prunes_as_a_scan_does_and_finds_the_same(
    events: lp.PartitionedTable, where: str, partitions: int
) -> None:
    params = {"id": 17} if "$" in where else None
    found = lp.sql(f"SELECT id FROM events AS e WHERE {where} ORDER BY id", params=params, events=events)

    assert f"events: {partitions} of 12 partitions" in found.explain()
    if "SELECT" in where:
        assert len(found.to_list()) == 20
        return
    scan = events.scan(where.replace("e.ts", "ts"), ["id"], order_by="id", params=params)
    assert found.to_list() == scan.to_list()
    assert bool(found.to_list()) == (partitions > 0)


def test_a_table_scanned_twice_keeps_the_partitions_of_both(events: lp.PartitionedTable) -> None:
    query = """
        SELECT a.id FROM e AS a, e AS b
        WHERE a.country = 'US' AND b.country = 'FR' AND a.id + 1 = b.id AND a.ts < '2024-01-01T00:00:00Z'
    """
    found = lp.sql(query, e=events)

    assert sorted(row["id"] for row in found.to_list()) == [
        row["id"] for row in ROWS if row["country"] == "US" and row["ts"] < datetime(2024, 1, 1, tzinfo=UTC)
    ]
    union = lp.sql("SELECT id FROM e WHERE country = 'US' UNION ALL SELECT id FROM e WHERE country = 'DE'", e=events)
    assert union.count() == 40
    assert "8 of 12 partitions" in union.explain()


def test_everything_with_rows_can_be_named_in_a_query(events: lp.PartitionedTable, tmp_path: Path) -> None:
    plain = lance.write_dataset(pa.table({"n": [1, 2]}), str(tmp_path / "plain.lance"))
    given: dict[str, Any] = {
        "a": pa.table({"n": [1, 2]}),
        "b": pl.DataFrame({"n": [1, 2]}),
        "c": pa.table({"n": [1, 2]}).to_pandas(),
        "d": plain,
        "e": tmp_path / "plain.lance",
        "f": [{"n": 1}, {"n": 2}],
        "g": events.scan("id IN (1, 2)", ["id"]),
        "h": events.scan("id IN (1, 2)"),
        "i": events.scan(limit=2, order_by="id DESC"),
        "j": events.root,
        "k": events.to_dataset("id < 2"),
        "l": pa.RecordBatch.from_pydict({"n": [1, 2]}),
        "m": pl.LazyFrame({"n": [1, 2]}),
        "o": ({"n": n} for n in (1, 2)),
    }
    counts = lp.sql(" UNION ALL ".join(f"SELECT '{name}' AS t, count(*) AS n FROM {name}" for name in given), **given)

    assert {row["t"]: row["n"] for row in counts.to_list()} == {**dict.fromkeys(given, 2), "j": 60}
    with pytest.raises(InvalidInputError, match="x is a int"):
        lp.sql("SELECT 1 FROM x", x=3)


def test_a_query_is_at_the_snapshot_it_was_made_at_and_can_be_read_again(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("n", pa.int64())]), ["n"])
    table.append([{"n": 1}])
    query = lp.sql("SELECT n FROM t", t=table)
    table.append([{"n": 2}])

    assert query.to_list() == query.to_list() == [{"n": 1}]
    assert lp.sql("SELECT n FROM t ORDER BY n", t=table).to_list() == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    "query",
    ["", "SELECT x FROM t", "SELECT * FROM nothing", "CREATE TABLE a AS SELECT 1", "COPY t TO '/tmp/x'", "SELEC 1"],
)
def test_what_is_wrong_or_writes_is_refused(query: str) -> None:
    with pytest.raises(InvalidInputError):
        lp.sql(query, t=pa.table({"n": [1]}))


def test_parameters_are_values_and_never_sql(events: lp.PartitionedTable) -> None:
    text = "x' OR '1' = '1"
    assert events.scan("country = $c", params={"c": text}).count() == 0
    assert events.count_rows("country IN $c AND id < $n", params={"c": ["US", "FR"], "n": 10}) == 7
    assert events.scan("country <> '$c' AND ts >= $t", params={"t": datetime(2025, 1, 1, tzinfo=UTC)}).count() == 31
    for where, params in (("id = $id", {}), ("id = 1", {"id": 1}), ("id IN $id", {"id": []}), ("id = $id", 3)):
        with pytest.raises(InvalidInputError):
            events.scan(where, params=params)  # type: ignore[arg-type]


def test_expressions_of_pyarrow_and_polars_are_filters(events: lp.PartitionedTable) -> None:
    for where in (
        (pc.field("country") == "US") & (pc.field("ts") >= datetime(2025, 1, 1, tzinfo=UTC)),
        (pl.col("country") == "US") & (pl.col("ts") >= datetime(2025, 1, 1, tzinfo=UTC)),
    ):
        scan = events.scan(where)
        assert scan.count() == events.count_rows("country = 'US' AND ts >= '2025-01-01T00:00:00Z'") > 0
        assert len(scan.plan().leaves) == 2
    for wrong in (pc.field("country").cast("int64") == 3, pl.col("country").str.len_bytes() > 3):
        with pytest.raises(InvalidInputError, match="SQL"):
            events.scan(wrong)
    with pytest.raises(InvalidInputError, match="params are for filters in SQL"):
        events.scan(pc.field("id") == 1, params={"a": 1})


def test_a_warehouse_is_made_filled_asked_renamed_and_emptied(tmp_path: Path) -> None:
    db = lp.connect(tmp_path / "w")
    db.create_namespace("sales")
    db.create_namespace("sales", exist_ok=True)
    orders = db.create_table("sales.orders", EVENTS, ["country"])
    orders.append(ROWS)
    db.create_table("people", pa.schema([("person", pa.int64()), ("name", pa.string())]), ["bucket(2, person)"]).append(
        [{"person": i, "name": f"p{i}"} for i in range(7)]
    )
    catalog = lp.DirectoryNamespace(root=str(tmp_path / "w"))
    catalog.create_table(CreateTableRequest(id=["plain"]), ipc(pa.table({"id": [1, 2, 3]})))

    assert db.list_tables() == ["people", "plain", "sales.orders"]
    assert db.list_tables("sales") == ["sales.orders"]
    assert db.list_namespaces() == ["sales"]
    assert db.table("sales.orders").count_rows() == 60
    assert db.lance_table("plain").count_rows() == 3
    query = db.sql(
        "SELECT p.name, count(*) AS n FROM sales.orders o JOIN people p ON o.person = p.person "
        "JOIN plain ON plain.id = o.id WHERE o.country <> 'XX' GROUP BY p.name ORDER BY p.name"
    )
    assert query.to_list() == [{"name": f"p{i}", "n": 1} for i in (1, 2, 3)]
    assert db.sql("SELECT count(*) AS n FROM t", t=orders.scan("id < 5")).to_list() == [{"n": 5}]

    assert db.create_table("sales.orders", EVENTS, ["country"], exist_ok=True).count_rows() == 60
    with pytest.raises(TableAlreadyExistsError):
        db.create_table("sales.orders", EVENTS, ["country"])
    with pytest.raises(TableAlreadyExistsError, match="another partitioning"):
        db.create_table("sales.orders", EVENTS, ["person"], exist_ok=True)
    with pytest.raises(TableNotFoundError, match=r"'sales.order' does not exist in the warehouse.*sales.orders"):
        db.rename_table("sales.order", "bought")
    db.rename_table("sales.orders", "bought")
    assert db.exists("bought")
    assert not db.exists("sales.orders")
    with pytest.raises(TableNotFoundError):
        db.table("sales.orders")
    with pytest.raises(UnsupportedOperationError, match="plain Lance table"):
        db.table("plain")
    for name in ("bought", "people", "plain"):
        db.drop_table(name)
    assert db.list_tables() == []
    db.drop_table("bought", missing_ok=True)
    with pytest.raises(TableNotFoundError):
        db.drop_table("bought")


def test_every_name_of_a_warehouse_is_that_of_one_table(tmp_path: Path) -> None:
    db = lp.connect(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    names = [("x",), ("public", "x"), ("datafusion", "public", "x"), ("information_schema", "x"), ('a"b',)]
    for namespace in ("public", "datafusion", "datafusion.public", "information_schema", "a", "a.b", "a.b.c"):
        db.create_namespace(namespace)
    for at, name in enumerate(names):
        db.create_table(name, schema, ["k"]).append([{"id": at, "k": "y"}, {"id": -1, "k": "n"}])
    db.create_table("a.b.c.x", schema)

    for at, name in enumerate(names):
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in name)
        found = db.sql(f"SELECT id FROM {quoted} WHERE k = 'y'")
        assert found.to_list() == [{"id": at}]
        assert "1 of 2 partitions" in found.explain()
    both = "SELECT a.id AS a, b.id AS b FROM x a JOIN public.x b USING (k) WHERE a.k = 'y'"
    assert db.sql(both).to_list() == [{"a": 0, "b": 1}]
    with pytest.raises(InvalidInputError, match=r"no table 'y': the tables are a\"b, a\.b\.c\.x, datafusion"):
        db.sql("SELECT * FROM y")
    with pytest.raises(InvalidInputError, match=r"'a\.b\.c\.x' is nested too deep for SQL"):
        db.sql("SELECT * FROM a.b.c.x")
    assert pickle.loads(pickle.dumps(db)).list_tables() == db.list_tables()


def test_dates_without_zone_and_older_layouts_are_read(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32())])
    table = lp.create_table(tmp_path / "h", schema, ["d"], layout="hive")
    table.append([{"id": i, "d": date(2024, 1, 1 + i)} for i in range(5)])

    found = lp.sql("SELECT id FROM h WHERE d > DATE '2024-01-03' ORDER BY id", h=table)

    assert found.to_list() == [{"id": 3}, {"id": 4}]
    assert "2 of 5 partitions" in found.explain()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM events WHERE 1 = 0", []),
        ("SELECT count(*) AS n FROM events WHERE false", [{"n": 0}]),
        ("SELECT id FROM events WHERE country = 'US' AND country = 'FR'", []),
        ("SELECT e.id FROM events e JOIN people p ON e.person = p.person WHERE false", []),
        (
            "SELECT name, id FROM people p LEFT JOIN (SELECT * FROM events WHERE 1=0) e ON id = 1 ORDER BY 1 LIMIT 1",
            [{"name": "p0", "id": None}],
        ),
        ("SELECT id FROM events WHERE false UNION ALL SELECT person FROM people WHERE person = 2", [{"id": 2}]),
        ("SELECT id FROM events WHERE id = 3 UNION ALL SELECT id FROM events WHERE 1 = 0", [{"id": 3}]),
    ],
)
def test_a_filter_that_holds_for_no_row_gives_an_answer(
    events: lp.PartitionedTable, people: lp.PartitionedTable, query: str, expected: list[dict[str, Any]]
) -> None:
    found = lp.sql(query, events=events, people=people)

    assert found.to_list() == expected
    assert found.explain()


FLOATS = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "p": ["a", "a", "b", "b", "a"],
        "f": [0.0, -0.0, float("nan"), 1.0, None],
        "s": [{"f": 0.0}, {"f": -0.0}, {"f": float("nan")}, {"f": 1.0}, {"f": None}],
    }
)


@pytest.fixture(scope="module")
def floats(tmp_path_factory: Any) -> lp.PartitionedTable:
    table = lp.create_table(tmp_path_factory.mktemp("sql") / "floats", FLOATS.schema, ["p"])
    table.append(FLOATS)
    return table


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("f > 1", [3]),
        ("NOT (f < 1)", [3, 4]),
        ("f = 0", [1]),
        ("f < 0", [2]),
        ("f >= 0", [1, 3, 4]),
        ("f <> 0", [2, 3, 4]),
        ("f IN (0, 1)", [1, 4]),
        ("f > 0 AND id > 0 AND p = 'b'", [3, 4]),
        ("(f = 0 OR id = 5) AND p = 'a'", [1, 5]),
        ("s['f'] = 0", [1]),
        ("s['f'] = s['f'] * -1 OR s['f'] > 1", [3]),
        ("id * -0.0 = 0", []),
        ("p <> 'x\nTableScan: y' AND f < 0", [2]),
        ("id IN (SELECT u.id FROM t u WHERE u.f < 0)", [2]),
        ("(SELECT count(*) FROM t u WHERE u.id = t.id AND u.f = 0) = 1", [1]),
    ],
)
def test_floats_are_compared_alike_wherever_the_rows_come_from(
    floats: lp.PartitionedTable, tmp_path: Path, where: str, expected: list[int]
) -> None:
    sources: dict[str, Any] = {
        "rows": FLOATS,
        "table": floats,
        "scan": floats.scan("id > 0"),
        "columns": floats.scan(columns=["id", "p", "f", "s"]),
        "dataset": floats.to_dataset(),
        "lance": lance.write_dataset(FLOATS, str(tmp_path / "floats.lance")),
    }
    text = f"SELECT id FROM t WHERE {where} ORDER BY id"
    found = {name: [row["id"] for row in lp.sql(text, t=source).to_list()] for name, source in sources.items()}

    assert found == dict.fromkeys(sources, expected)
    if "SELECT" not in where:
        assert [row["id"] for row in floats.scan(where, ["id"], order_by="id").to_list()] == expected


def test_filters_beside_one_on_floats_are_still_pushed_down(events: lp.PartitionedTable) -> None:
    found = lp.sql("SELECT id FROM e WHERE amount > 30 AND id < 30 AND country = 'US'", e=events)

    assert sorted(row["id"] for row in found.to_list()) == [21, 24, 27]
    assert "e: 4 of 12 partitions" in found.explain()
    assert "FilterExec: amount@1 > 30, projection" in found.explain()


def test_a_small_table_is_read_once_and_kept_in_memory(
    events: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT country, count(*) AS n, sum(amount) AS total FROM e WHERE id < 50 GROUP BY country ORDER BY country"
    native = lp.sql(text, e=events)
    assert "12 of 12 partitions, read natively" in native.explain()
    monkeypatch.setattr(query_sources, "_SMALL", 1 << 20)
    kept = lp.sql(text, e=events)

    assert "12 of 12 partitions, kept in memory" in kept.explain()
    assert kept.to_list() == native.to_list()


def test_of_a_small_table_that_is_not_kept_only_the_columns_of_the_query_are_read(
    events: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT country, sum(amount) AS total FROM e WHERE id < 50 GROUP BY country ORDER BY country"
    expected = lp.sql(text, e=events).to_list()
    monkeypatch.setattr(query_sources, "_SMALL", 1 << 20)
    monkeypatch.setattr(query_sources.cache, "_capacity", 0)
    plain, read = lance_tables.read_whole, []

    def counted(dataset: Any, columns: Any = None) -> pa.Table:
        read.append(columns)
        return plain(dataset, columns)

    monkeypatch.setattr(lance_tables, "read_whole", counted)
    for _ in range(2):
        assert lp.sql(text, e=events).to_list() == expected
    assert lp.sql("SELECT count(*) AS n FROM e", e=events).to_list() == [{"n": events.count_rows()}]

    assert len(read) == 3
    assert all(set(columns) <= {"id", "country", "amount"} for columns in read)
    assert "12 of 12 partitions, columns read into memory" in lp.sql(text, e=events).explain()


def test_the_sample_of_a_filter_is_read_once_a_snapshot(
    events: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_sources, "_SAMPLED", 1)
    monkeypatch.setattr(query_sources.cache, "_capacity", 0)
    plain, drawn = lance_tables.sample, []
    monkeypatch.setattr(lance_tables, "sample", lambda *given: drawn.append(given) or plain(*given))
    for _ in range(3):
        assert lp.sql("SELECT count(*) AS n FROM e WHERE id < 50", e=events).to_list() == [{"n": 50}]
    assert len(drawn) == 1


def test_rows_of_a_small_table_are_those_of_the_newest_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_sources, "_SMALL", 1 << 20)
    table = lp.create_table(tmp_path / "t", pa.schema([("k", pa.int64()), ("n", pa.int64())]), ["k"])
    for count in range(1, 4):
        table.append([{"k": count % 2, "n": count}])
        assert lp.sql("SELECT sum(n) AS n FROM t", t=table).to_list() == [{"n": sum(range(count + 1))}]
    table.delete("n = 2")

    assert lp.sql("SELECT sum(n) AS n FROM t", t=table).to_list() == [{"n": 4}]


@pytest.mark.parametrize(
    ("where", "pushed"),
    [
        ("n >= 100", False),
        ("n < 5", True),
        ("n % 7 = 0", False),
        ("k = 1 AND n <> 3", False),
        ("n BETWEEN 1000 AND 1100 AND s <> 'x'", True),
    ],
)
def test_a_filter_that_keeps_many_rows_is_left_to_datafusion(
    tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch, where: str, pushed: bool
) -> None:
    monkeypatch.setattr(query_sources, "_SAMPLED", 1)
    rows = pa.table({"k": [n % 2 for n in range(4_000)], "n": range(4_000), "s": [f"row {n}" for n in range(4_000)]})
    table = lp.create_table(tmp_path_factory.mktemp("many") / "t", rows.schema, ["k"])
    table.append(rows)
    query = lp.sql(f"SELECT n, s FROM t WHERE {where} ORDER BY n", t=table)

    assert query.to_arrow().equals(lp.sql(f"SELECT n, s FROM t WHERE {where} ORDER BY n", t=rows).to_arrow())
    assert ("FilterExec" not in query.explain()) == pushed


@pytest.mark.parametrize("small", [-1, 1 << 20], ids=["natively", "in memory"])
def test_a_query_follows_the_columns_as_they_are_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(query_sources, "_SMALL", small)
    schema = pa.schema([("k", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    table = lp.create_table(tmp_path / "t", schema, ["k"])
    table.append([{"k": 1, "a": "from a", "b": "from b"}])
    older = table.version

    def found(version: int | None = None) -> dict[str, Any]:
        opened = lp.open_table(table.root, version=version)
        (row,) = lp.sql("SELECT * FROM t", t=opened).to_list()
        assert row == opened.scan().to_list()[0]
        return row

    assert found() == {"k": 1, "a": "from a", "b": "from b"}
    for name, new in (("a", "c"), ("b", "a"), ("c", "b")):
        table.rename_column(name, new)
    assert (found()["a"], found()["b"]) == ("from b", "from a")
    table.drop_column("a")
    table.add_column(pa.field("a", pa.string()))
    assert found()["a"] is None
    assert found(older) == {"k": 1, "a": "from a", "b": "from b"}


def test_a_query_sees_what_its_transaction_did(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"])
    table.append([{"id": number, "k": "xy"[number % 2]} for number in range(4)])
    with table.transaction() as transaction:
        transaction.append([{"id": 9, "k": "x"}, {"id": 10, "k": "new"}])
        transaction.delete("id = 0")
        for where in (None, "id > 1", "k = 'x'", "k = 'new' OR id = 1", "k = 'none'"):
            expected = sorted(transaction.scan(where).to_arrow()["id"].to_pylist())
            kept = "" if where is None else f"WHERE {where}"
            for query, scan in ((f"SELECT id FROM t {kept}", None), ("SELECT id FROM t", where)):
                found = lp.sql(query, t=transaction.scan(scan)).to_arrow()["id"].to_pylist()
                assert sorted(found) == expected, (query, scan)
            dataset = PartitionedDataset(transaction.scan(where)).to_table(columns=["id"])
            assert sorted(dataset["id"].to_pylist()) == expected


WOULD_FIT = kept_columns.would_fit
KEPT = (
    "SELECT count(*) AS n FROM e",
    "SELECT country, count(*) AS n, sum(amount) AS total FROM e WHERE id < 50 GROUP BY country ORDER BY country",
    "SELECT * FROM e ORDER BY id",
    "SELECT max(id) AS m FROM e WHERE amount > 30 OR amount IS NULL",
    "SELECT id FROM e WHERE id > (SELECT avg(id) FROM e) ORDER BY id",
    "SELECT a.id FROM e a JOIN e b ON a.id = b.id + 1 WHERE b.country = 'US' ORDER BY a.id",
    "SELECT count(*) AS n FROM (SELECT * FROM e UNION ALL SELECT * FROM e) u",
    "SELECT id FROM e WHERE country IN (SELECT country FROM e WHERE id = 3) ORDER BY id",
)


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that are read again are kept in memory, as by default."""
    monkeypatch.setattr(kept_columns, "would_fit", WOULD_FIT)
    kept_columns.cache.clear()


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("text", KEPT)
def test_columns_that_are_read_again_are_kept_in_memory(events: lp.PartitionedTable, text: str) -> None:
    expected = lp.sql(text, e=events).to_list()
    again = lp.sql(text, e=events)

    assert again.to_list() == expected
    assert "columns kept in memory" in again.explain()
    assert lp.sql(text, e=events).to_list() == expected == lp.sql(text, e=events.scan().to_arrow()).to_list()


@pytest.mark.usefixtures("keeping")
def test_all_rows_of_kept_columns_are_read_and_large_ones_are_not_kept(tmp_path: Path) -> None:
    count = 50_000
    numbers = pa.table({"k": pa.array(range(count), pa.int64()), "n": pa.array(range(count), pa.int64())})
    table = lp.create_table_from(tmp_path / "t", numbers, ["bucket(k, 2)"])
    for _ in range(3):
        found = lp.sql("SELECT count(*) AS c, sum(n) AS n FROM t", t=table)
        assert found.to_list() == [{"c": count, "n": count * (count - 1) // 2}]
    assert "columns kept in memory" in found.explain()

    leaves, usual = table.scan().plan().leaves, lp.config.cache_bytes
    try:
        for room, fits in ((4 * 8 * count, True), (4 * 8 * count - 4, False)):
            lp.config.cache_bytes = room
            assert WOULD_FIT(leaves, table.schema, ["n"], lambda texts: 0) == fits
    finally:
        lp.config.cache_bytes = usual


@pytest.mark.usefixtures("keeping")
def test_kept_columns_are_those_of_the_newest_snapshot(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("k", pa.int64()), ("n", pa.int64())]), ["k"])
    for count in range(1, 4):
        table.append([{"k": count % 2, "n": count}])
        for _ in range(3):
            assert lp.sql("SELECT sum(n) AS n FROM t", t=table).to_list() == [{"n": sum(range(count + 1))}]
    query = lp.sql("SELECT max(n) AS n FROM t WHERE k = 1", t=table)
    assert [query.to_list(), "read natively" in query.explain()] == [[{"n": 3}], True], "what is read once is not kept"
    assert [query.to_list(), "kept in memory" in query.explain()] == [[{"n": 3}], True]
    table.rename_column("n", "m")
    table.add_column(pa.field("n", pa.int64()))
    for _ in range(3):
        assert lp.sql("SELECT sum(n) AS n, sum(m) AS m FROM t", t=table).to_list() == [{"n": None, "m": 6}]


@pytest.mark.usefixtures("keeping")
def test_a_column_that_was_thought_not_to_be_needed_is_read_after_all(
    events: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_columns, "read_before", lambda *given: True)
    plain = query_sources.TableSource.in_memory
    monkeypatch.setattr(
        query_sources.TableSource, "in_memory", lambda self, where, columns, **how: plain(self, where, ["id"], **how)
    )

    found = lp.sql("SELECT id, country FROM e WHERE id < 3 ORDER BY id", e=events).to_list()

    assert found == events.scan("id < 3", ["id", "country"], order_by="id").to_list()


@pytest.mark.usefixtures("keeping")
def test_what_does_not_fit_is_not_kept(events: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_columns.cache, "_capacity", 64)

    for _ in range(3):
        assert lp.sql("SELECT count(id) AS n FROM e", e=events).to_list() == [{"n": events.count_rows()}]
    assert "read natively" in lp.sql("SELECT count(id) AS n FROM e", e=events).explain()


@pytest.mark.usefixtures("keeping")
def test_a_sample_tells_whether_texts_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": range(5_000), "short": ["a", "b"] * 2_500, "long": [f"{at:0100}" for at in range(5_000)]})
    table = lp.create_table_from(tmp_path / "t", rows, [])
    stored = table.describe().bytes or 0
    monkeypatch.setattr(kept_columns.cache, "_capacity", 8 * 5_000 + 2 * stored)

    def explained(column: str) -> str:
        query = lp.sql(f"SELECT max({column}) AS m FROM t", t=table)
        assert [query.to_list() for _ in range(3)] == [[{"m": max(rows[column].to_pylist())}]] * 3
        return query.explain()

    assert "columns kept in memory" in explained("short")
    assert "read natively" in explained("long")


@pytest.mark.parametrize("kept", [False, True], ids=["natively", "in memory"])
def test_joins_build_on_the_smaller_table_whichever_is_named_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(kept_columns, "would_fit", lambda *given: kept)
    sizes = {"small": 50, "large": 400_000}
    tables = {
        name: lp.create_table_from(tmp_path / name, pa.table({name[0]: range(rows), "p": [0] * rows}), ["p"])
        for name, rows in sizes.items()
    }
    for text in ("small JOIN large ON s = l", "large JOIN small ON s = l"):
        query = lp.sql(f"SELECT count(*) AS n FROM {text}", **tables)
        assert [query.to_list(), query.to_list()] == [[{"n": 50}]] * 2
        join = next(line for line in query.explain().splitlines() if "HashJoinExec" in line)
        assert "on=[(s@" in join, "the left side is built"


def test_a_partition_function_takes_the_type_that_its_argument_has_where_it_stands() -> None:
    numbers, texts = pa.table({"k": [101], "s": ["x"]}), pa.table({"k": ["101"]})
    of_number = lp.sql("SELECT bucket(7, k) AS b FROM n", n=numbers).to_list()[0]["b"]
    of_text = lp.sql("SELECT bucket(7, k) AS b FROM t", t=texts).to_list()[0]["b"]
    assert of_number != of_text

    def answers(query: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in lp.sql(query, n=numbers, t=texts).to_list())

    assert answers("SELECT bucket(7, s), truncate(10, s) FROM (SELECT k AS s FROM n)") == [(of_number, 100)]
    assert answers("SELECT bucket(7, k) FROM n UNION ALL SELECT bucket(7, k) FROM t") == sorted(
        [(of_number,), (of_text,)]
    )
    assert answers("SELECT bucket(7, t.k), bucket(7, n.k) FROM n AS t CROSS JOIN t AS n") == [(of_number, of_text)]
    assert answers("SELECT year(m) FROM (SELECT max(DATE '2024-05-06') AS m FROM n)") == [(2024,)]
    assert answers("SELECT truncate(1, upper(truncate(2, k || s))) FROM (SELECT k, 'a' AS s FROM t)") == [("1",)]
    assert answers("SELECT multi_bucket(7, s, k) = multi_bucket(7, 'x', 101), bucket(7, NULL) FROM n") == [(True, None)]
    grouped = "SELECT Bucket(7, k) AS b, count(*) FROM n GROUP BY bucket(7,K) ORDER BY bucket(7, k)"
    assert answers(grouped) == [(of_number, 1)]


def test_columns_have_the_names_of_the_partition_functions_as_they_were_written() -> None:
    found = lp.sql("SELECT year(d), bucket(4, d) FROM t", t=pa.table({"d": [date(2024, 1, 1)]})).to_arrow()

    assert found.schema.names == ["year(t.d)", "bucket(4, t.d)"]
    assert found.to_pylist()[0]["year(t.d)"] == 2024


@pytest.mark.parametrize("query", ["SELECT year(nothing) FROM t", "SELECT year(s) FROM t", "SELECT bucket(s) FROM t"])
def test_a_partition_function_of_what_is_no_column_of_its_kind_is_refused(query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"nothing|year is not defined|bucket takes"):
        lp.sql(query, t=pa.table({"s": [True]}))


def test_columns_of_one_name_are_refused_where_one_would_be_lost() -> None:
    query = lp.sql("SELECT a.id, b.id FROM t a JOIN t b ON a.id + 1 = b.id", t=pa.table({"id": [1, 2]}))

    for read in (query.to_list, query.to_polars):
        with pytest.raises(InvalidInputError, match="2 columns are called 'id'"):
            read()
    assert query.to_arrow().schema.names == ["id", "id"]
    assert query.to_pandas().values.tolist() == [[1, 2]]


def test_rows_that_are_of_no_table_can_be_queried(events: lp.PartitionedTable) -> None:
    assert lp.sql("SELECT sum(value) AS s FROM generate_series(1, 3)").to_list() == [{"s": 6}]
    joined = "SELECT count(*) AS n FROM t JOIN range(0, 2) g ON t.id = g.value WHERE t.id < 1"
    assert lp.sql(joined, t=events).to_list() == [{"n": 1}]
    deeper = "SELECT t.id FROM r JOIN t ON t.id = r.id + 1 WHERE r.id < 3"
    walked = f"WITH RECURSIVE r AS (SELECT id FROM t WHERE id = 1 UNION ALL {deeper}) SELECT id FROM r ORDER BY id"
    assert lp.sql(walked, t=events).to_list() == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_files_are_named_by_their_paths(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2], "f": [float("nan"), 1.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"n": [3], "f": [2.0]}), tmp_path / "2.parquet")
    (tmp_path / "1.csv").write_text("n\n4\n")
    (tmp_path / "1.json").write_text('[{"n": 5}]')
    for given, total in {tmp_path / "1.parquet": 3, f"{tmp_path}/*.parquet": 6, "1.csv": 4, "1.json": 5}.items():
        path = given if str(given).startswith("/") else tmp_path / given
        assert lp.sql("SELECT sum(n) AS s FROM t WHERE n > 0", t=path).to_list() == [{"s": total}]
    assert lp.sql("SELECT n FROM t WHERE f > 1.5 ORDER BY n", t=[f"{tmp_path}/*.parquet"]).to_list() == [
        {"n": 1},
        {"n": 3},
    ]
    with pytest.raises(InvalidInputError, match=r"no file matches .*none\.parquet"):
        lp.sql("SELECT 1 FROM t", t=tmp_path / "none.parquet")
    for column in (pd.Series([1]), pl.Series([1])):
        with pytest.raises(InvalidInputError, match="t is a Series, which has no columns"):
            lp.sql("SELECT 1 FROM t", t=column)


@pytest.mark.parametrize("name", ["runs[1]/t", "old.parquet", "rows.csv"])
def test_a_table_whose_path_looks_like_that_of_files_is_a_table(tmp_path: Path, name: str) -> None:
    table = lp.create_table(tmp_path / name, pa.schema([("n", pa.int64())]))
    table.append([{"n": 7}])
    lance.write_dataset(pa.table({"n": [8]}), tmp_path / "t[2].lance")
    for path, n in ((tmp_path / name, 7), (tmp_path / "t[2].lance", 8)):
        assert lp.sql("SELECT n FROM t WHERE n > 1", t=path).to_list() == [{"n": n}]


MIXED = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        "n": pa.array([None if i % 11 == 0 else i % 17 - 8 for i in range(60)], pa.int32()),
        "f": pa.array([[1.5, float("nan"), None, -2.0][i % 4] for i in range(60)], pa.float64()),
        "s": pa.array([["a", "Ab", "", None, "x.y", "o'b"][i % 6] for i in range(60)]),
        "d": pa.array([None if i % 13 == 0 else date(2023, 12, 1) + timedelta(days=i * 9) for i in range(60)]),
        "ts": pa.array([datetime(2024, 1, 1) + timedelta(hours=i * 7) for i in range(60)], pa.timestamp("us")),
        "at": pa.array(
            [datetime(2024, 1, 1) + timedelta(hours=i) for i in range(60)], pa.timestamp("us", "Asia/Tokyo")
        ),
    }
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: Any) -> lp.PartitionedTable:
    return lp.create_table_from(tmp_path_factory.mktemp("mixed") / "t", MIXED, ["year(d)", "bucket(3, id)"])


@pytest.mark.parametrize(
    "where",
    [
        pl.col("n").is_between(-3, 3),
        pl.col("n").is_between(-3, pl.col("id"), closed="none"),
        ~pl.col("n").is_between(-3, 3, closed="left"),
        pl.col("d").is_between(date(2024, 1, 1), date(2024, 6, 1), closed="right"),
        pl.col("d").dt.year() == 2024,
        (pl.col("d").dt.month() > 6) & (pl.col("ts").dt.hour() < 5),
        pl.col("ts").dt.day() == 2,
        pl.col("n") % 3 == 2,
        pl.col("n") % 5 != 0,
        pl.col("n").cast(pl.Float64) > 2.5,
        pl.col("n").cast(pl.Int64) == pl.col("id"),
        pl.col("s").str.contains("a"),
        pl.col("s").str.contains(".", literal=True),
        pl.col("s").str.contains("^[aA]b?$"),
        ~pl.col("s").str.contains("'"),
        pl.col("f").is_nan(),
        pl.col("f").is_not_nan(),
        pl.col("s").eq_missing(None),
        pl.col("n").ne_missing(3),
    ],
    ids=str,
)
def test_more_of_polars_means_the_same_as_a_filter(mixed: lp.PartitionedTable, where: pl.Expr) -> None:
    wanted = sorted(pl.DataFrame(MIXED).filter(where)["id"].to_list())

    assert sorted(mixed.scan(where).to_arrow()["id"].to_pylist()) == wanted
    assert sorted(mixed.lazy().filter(where).collect()["id"].to_list()) == wanted


@pytest.mark.parametrize(
    "where",
    [
        pc.year(pc.field("d")) == 2024,
        (pc.month(pc.field("d")) > 6) | (pc.hour(pc.field("ts")) == 7),
        ~(pc.day(pc.field("ts")) == 2),
        pc.field("n").cast(pa.float64()) > 2.5,
        pc.field("f").is_nan(),
        pc.field("f").is_null(nan_is_null=True),
    ],
    ids=str,
)
def test_more_of_pyarrow_means_the_same_as_a_filter(mixed: lp.PartitionedTable, where: pc.Expression) -> None:
    wanted = sorted(MIXED.filter(where)["id"].to_pylist())

    assert sorted(mixed.scan(where).to_arrow()["id"].to_pylist()) == wanted
    assert sorted(mixed.to_dataset().to_table(filter=where)["id"].to_pylist()) == wanted


def test_parts_of_dates_prune_and_those_in_another_zone_are_refused(mixed: lp.PartitionedTable) -> None:
    assert len(mixed.scan(pl.col("d").dt.year() == 2025).plan().leaves) == 3
    assert len(mixed.scan(pc.year(pc.field("d")) == 2025).plan().leaves) == 3
    for where in (pl.col("at").dt.hour() == 3, pc.hour(pc.field("at")) == 3, pl.col("n") % -3 == 0):
        with pytest.raises(InvalidInputError, match=r"has SQL for|has no SQL"):
            mixed.scan(where)


@pytest.mark.parametrize("field", [pl.col, pc.field])
@pytest.mark.parametrize("layout", ["manifest", "hive"])
def test_every_verb_takes_expressions(tmp_path: Path, field: Any, layout: str) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"], layout=layout)
    table.append([{"id": i, "k": "ab"[i % 2]} for i in range(10)])

    table.delete(field("id") == 0)
    table.update({"id": "id + $step"}, field("id") > 7, params={"step": 100})
    table.overwrite([{"id": 3, "k": "z"}], field("id") == 3)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7, 108, 109]
    other = pa.table({"id": [1, 2, 3], "name": ["x", "y", "z"]})
    assert table.join(other, on=["id"], where=field("name") == "z").to_arrow()["k"].to_pylist() == ["z"]
    assert table.to_lance(field("id") > 100).count_rows() == 2
    if layout == "manifest":
        with table.transaction() as tx:
            tx.delete(field("id") == 1)
            tx.update({"k": "'w'"}, field("id") == 2)
            tx.overwrite([{"id": 4, "k": "v"}], field("id") == 4)
        assert sorted(table.scan((field("k") == "w") | (field("k") == "v")).to_arrow()["id"].to_pylist()) == [2, 4]
    with pytest.raises(InvalidInputError, match="put the values into it"):
        table.delete(field("id") == 1, params={"a": 1})


def test_outer_joins_filter_by_fields_of_structs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = pa.struct([("x", pa.int32()), ("f", pa.float64())])
    rows = pa.table({"i": [1, 2], "s": ["a", "b"], "o": pa.array([{"x": 4, "f": 2.0}, None], kind), "f": [2.0, 3.0]})
    table = lp.create_table_from(tmp_path / "t", rows, ["s"])
    text = "SELECT a.i, b.s FROM a FULL JOIN b ON a.s = b.s AND a.o['x'] >= 3 AND a.o['f'] < b.f + 1 ORDER BY a.i, b.s"
    expected = SessionContext()
    for name in ("a", "b"):
        expected.register_record_batches(name, [rows.to_batches()])
    for size in (lp.config.cache_bytes, 0):
        monkeypatch.setattr(lp.config, "cache_bytes", size)
        assert lp.sql(text, a=table, b=table).to_arrow().to_pylist() == expected.sql(text).to_arrow_table().to_pylist()


@pytest.mark.parametrize(("parts", "cores"), [(1, 2), (1_000_000, 2), (1_000_000, 1)])
@pytest.mark.parametrize("test", ["a.f IS NULL", "a.i IS NULL OR a.i > 3", "coalesce(a.f, 9) = 9"])
def test_a_right_join_is_filtered_by_the_columns_of_its_left_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int, cores: int, test: str
) -> None:
    generator = np.random.default_rng(3)
    rows = pa.table({"i": list(range(40)), "s": generator.integers(0, 8, 40), "f": [None, 1.0, 9.0, 4.0] * 10})
    table = lp.create_table_from(tmp_path / "t", rows, ["bucket(4, i)"])
    monkeypatch.setattr(query_sources, "_SMALL", 0)
    monkeypatch.setattr(query_sources, "_PART", parts)
    monkeypatch.setattr(query_sources.os, "cpu_count", lambda: cores)
    text = f"SELECT b.i FROM a RIGHT JOIN b ON a.s = b.s AND a.i < 9 AND b.f > 0 WHERE b.f > 0 AND ({test}) ORDER BY 1"
    a = b = rows  # noqa: F841

    expected = [{"i": i} for (i,) in duckdb.sql(text).fetchall()]
    assert lp.sql(text, a=table, b=table).to_list() == expected


def test_a_large_table_is_read_in_parts_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"i": list(range(1_000)), "s": [f"text {i % 7}" for i in range(1_000)]})
    table = lp.create_table_from(tmp_path / "t", rows, ["bucket(8, i)"])
    monkeypatch.setattr(query_sources, "_SMALL", 0)
    monkeypatch.setattr(query_sources, "_PART", 100)
    monkeypatch.setattr(query_sources.os, "cpu_count", lambda: 3)
    for text in (
        "SELECT s, count(*) AS n, sum(i) AS x FROM t WHERE i % 2 = 0 GROUP BY s ORDER BY s",
        "SELECT a.i, b.s FROM t a JOIN t b ON a.i = b.i AND a.s < b.s || 'x' WHERE a.i > 990 ORDER BY a.i",
        "SELECT count(*) AS n FROM t",
        "SELECT i FROM t ORDER BY i DESC LIMIT 3 OFFSET 2",
        "SELECT max(i) AS m FROM (SELECT * FROM t LIMIT 2000) AS u",
    ):
        t = rows  # noqa: F841
        expected = duckdb.sql(text).to_arrow_table().to_pylist()
        assert lp.sql(text, t=table).to_list() == expected
    assert lp.sql("SELECT i FROM t WHERE s = 'text 3'", t=table).explain().count("FilteredReadExec") == 3
    assert lp.sql("SELECT i FROM t LIMIT 5", t=table).count() == 5


def _hidden() -> pa.Table:
    """Rows whose second struct is NULL and has a value beneath that."""
    inner = pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["n"], mask=pa.array([False, True, False]))
    outer = pa.StructArray.from_arrays([inner], ["s"])
    return pa.table({"id": [1, 2, 3], "s": inner, "o": outer}).slice(1)


@pytest.mark.parametrize("kind", ["rows", "dataset", "files"])
def test_what_lies_beneath_a_null_struct_is_null(tmp_path: Path, kind: str) -> None:
    source: Any = _hidden() if kind == "rows" else ds.dataset(_hidden())
    if kind == "files":
        with pa.OSFile(f"{tmp_path}/t.arrow", "wb") as file, pa.ipc.new_file(file, _hidden().schema) as written:
            written.write_table(_hidden())
        source = ds.dataset(f"{tmp_path}/t.arrow", format="ipc")

    found = lp.sql("SELECT id, s['n'] AS n, o['s']['n'] AS m FROM t ORDER BY id", t=source)

    assert found.to_list() == [{"id": 2, "n": None, "m": None}, {"id": 3, "n": 3, "m": 3}]
    assert lp.sql("SELECT id FROM t WHERE s['n'] = 2 OR o['s']['n'] = 2", t=source).to_list() == []


def test_partitions_and_merges_see_null_beneath_a_null_struct(tmp_path: Path) -> None:
    table = lp.create_table_from(tmp_path / "t", _hidden(), ["expr(get_field(s, 'n')) AS n"])
    kept = lp.create_table(tmp_path / "m", _hidden().schema, ["id"])

    kept.merge(_hidden(), on=["id"]).when_not_matched_insert_all("source.s['n'] IS NULL").execute()

    assert sorted(str(row["partition"]) for row in table.inspect.partitions().to_pylist()) == [
        "[('n', '3')]",
        "[('n', None)]",
    ]
    assert kept.scan(columns=["id"]).to_list() == [{"id": 2}]
