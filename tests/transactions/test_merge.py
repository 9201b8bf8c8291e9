"""Merging: every clause against a model of plain dicts, in one commit, and what verbs say they did."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)

SCHEMA = pa.schema([pa.field("id", pa.int64()), ("k", pa.string()), ("n", pa.int64())])
ROWS = [{"id": i, "k": "abc"[i % 3], "n": i * 10} for i in range(6)]


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(ROWS)
    return made


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.scan().to_list()), key=repr)


def test_an_upsert_with_a_deletion_in_one_commit(table: lp.PartitionedTable) -> None:
    before = table.version
    source = [
        {"id": 1, "k": "c", "n": 100, "gone": False},
        {"id": 2, "k": "c", "n": 0, "gone": True},
        {"id": 9, "k": "z", "n": 9, "gone": False},
        {"id": 10, "k": "z", "n": 9, "gone": True},
    ]
    done = (
        table.merge(source, on=["id"])
        .when_matched_delete("source.gone")
        .when_matched_update({"k": "source.k", "n": "source.n + target.n"})
        .when_not_matched_insert({"id": "source.id", "k": "upper(source.k)", "n": "source.n"}, "NOT source.gone")
        .execute()
    )

    assert done is not None
    assert (done.rows_added, done.rows_updated, done.rows_deleted) == (1, 1, 1)
    assert done == table.version
    assert rows(table) == [(0, "a", 0), (1, "c", 110), (3, "a", 30), (4, "b", 40), (5, "c", 50), (9, "Z", 9)]
    assert table.inspect.snapshots().filter(pa.compute.field("version") > before).num_rows == 1


def test_rows_that_the_source_lacks(table: lp.PartitionedTable) -> None:
    done = (
        table.merge(pl.DataFrame({"id": [0, 1, 7], "n": [5, None, 7]}), on=["id"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete("target.n > 40")
        .when_not_matched_by_source_update({"n": "-target.n"})
        .execute()
    )

    assert rows(table) == [(0, "a", 5), (1, "b", None), (2, "c", -20), (3, "a", -30), (4, "b", -40), (7, None, 7)]
    assert done is not None
    assert (done.rows_added, done.rows_updated, done.rows_deleted) == (1, 5, 1)


KEYS = st.integers(0, 8) | st.none()
ROW = st.tuples(KEYS, st.sampled_from(["a", "b", None]), st.integers(-3, 3) | st.none())
CONDITIONS: dict[str, Any] = {
    "none": (None, lambda s, t: True),
    "source": ("source.n > 0", lambda s, t: s["n"] is not None and s["n"] > 0),
    "target": ("target.n < 2", lambda s, t: t["n"] is not None and t["n"] < 2),
}
MATCHED: dict[str, Any] = {
    "all": (lambda m, c: m.when_matched_update_all(c), lambda s, t: dict(s)),
    "some": (
        lambda m, c: m.when_matched_update({"n": "source.n - target.n", "k": "source.k"}, c),
        lambda s, t: {**t, "k": s["k"], "n": None if s["n"] is None or t["n"] is None else s["n"] - t["n"]},
    ),
    "delete": (lambda m, c: m.when_matched_delete(c), lambda s, t: None),
}
INSERT: dict[str, Any] = {
    "all": (lambda m, c: m.when_not_matched_insert_all(c), dict),
    "some": (
        lambda m, c: m.when_not_matched_insert({"id": "source.id", "n": "7"}, c),
        lambda s: {"id": s["id"], "k": None, "n": 7},
    ),
}
REST: dict[str, Any] = {
    "update": (lambda m, c: m.when_not_matched_by_source_update({"k": "'b'"}, c), lambda t: {**t, "k": "b"}),
    "delete": (lambda m, c: m.when_not_matched_by_source_delete(c), lambda t: None),
}


def _first(clauses: list[tuple[str, str]], kinds: Any, s: Any, t: Any, kept: Any, *given: Any) -> Any:
    """What the first clause whose condition holds makes of a row; what is kept if none does."""
    for kind, condition in clauses:
        if CONDITIONS[condition][1](s, t):
            return kinds[kind][1](*given)
    return kept


@pytest.mark.parametrize(
    "source", [list, iter, lambda rows: iter([rows])], ids=["list", "generator", "generator of lists"]
)
def test_a_row_keeps_the_columns_that_its_dict_leaves_out(table: lp.PartitionedTable, source: Any) -> None:
    given = [{"id": 1, "n": 9}, {"id": 2, "k": "z"}, {"id": 7, "n": 7}]

    table.merge(source(given), on=["id"]).when_matched_update_all().when_not_matched_insert_all().execute()

    assert [row for row in rows(table) if row[0] in (1, 2, 7)] == [(1, "b", 9), (2, "z", 20), (7, None, 7)]


def test_a_dict_without_the_key_is_refused_beside_others_that_have_it(table: lp.PartitionedTable) -> None:
    with pytest.raises(TableSchemaValidationError, match="'id', which is part of the key"):
        table.merge([{"id": 1, "n": 9}, {"n": 8}], on=["id"]).when_matched_update_all().execute()


@settings(max_examples=60)
@given(
    there=st.lists(ROW, max_size=8),
    come=st.lists(ROW, max_size=6, unique_by=lambda row: row[0] if row[0] is not None else object()),
    matched=st.lists(st.tuples(st.sampled_from(list(MATCHED)), st.sampled_from(list(CONDITIONS))), max_size=2),
    insert=st.lists(st.tuples(st.sampled_from(list(INSERT)), st.sampled_from(["none", "source"])), max_size=2),
    rest=st.lists(st.tuples(st.sampled_from(list(REST)), st.sampled_from(["none", "target"])), max_size=2),
)
@pytest.mark.slow
def test_a_merge_does_what_a_model_does(
    tmp_path_factory: Any,
    there: list[Any],
    come: list[Any],
    matched: list[Any],
    insert: list[Any],
    rest: list[Any],
) -> None:
    table = lp.create_table(tmp_path_factory.mktemp("m") / "t", SCHEMA, ["k"])
    table.append([dict(zip(SCHEMA.names, row, strict=True)) for row in there])
    source = [dict(zip(SCHEMA.names, row, strict=True)) for row in come]
    target = [dict(zip(SCHEMA.names, row, strict=True)) for row in there]
    by_key = {row["id"]: row for row in source if row["id"] is not None}
    met = {row["id"] for row in target} & set(by_key)
    expected = []
    for row in target:
        if row["id"] in by_key:
            s = by_key[row["id"]]
            expected.append(_first(matched, MATCHED, s, row, row, s, row))
        else:
            expected.append(_first(rest, REST, None, row, row, row))
    expected += [_first(insert, INSERT, row, None, None, row) for row in source if row["id"] not in met]
    merge = table.merge(pa.Table.from_pylist(source, schema=SCHEMA), on=["id"])
    for kinds, clauses in ((MATCHED, matched), (INSERT, insert), (REST, rest)):
        for kind, condition in clauses:
            merge = kinds[kind][0](merge, CONDITIONS[condition][0])
    if not merge.clauses:
        with pytest.raises(InvalidInputError, match="no clause"):
            merge.execute()
        return
    before = table.version

    done = merge.execute()

    assert Counter(rows(table)) == Counter(tuple(row.values()) for row in expected if row is not None)
    assert done is not None
    assert done == table.version
    assert done.rows_added - done.rows_deleted == table.count_rows() - len(there)
    assert table.changes(before).count() == done.rows_added + done.rows_deleted + 2 * done.rows_updated


def test_a_merge_inside_a_transaction_and_with_an_idempotency_key(table: lp.PartitionedTable) -> None:
    with table.transaction() as tx:
        tx.append([{"id": 50, "k": "a", "n": 1}])
        tx.merge([{"id": 50, "n": 2}], on=["id"]).when_matched_update_all().execute()
    assert (50, "a", 2) in rows(table)

    again = table.merge([{"id": 0, "n": 1}], on=["id"]).when_matched_update({"n": "target.n + source.n"})
    again.execute(idempotency_key="once")
    again.execute(idempotency_key="once")
    assert (0, "a", 1) in rows(table)


def test_a_condition_is_one_expression(table: lp.PartitionedTable) -> None:
    with pytest.raises(InvalidInputError, match="not understood"):
        table.merge(ROWS, on=["id"]).when_matched_delete("true THEN 0 WHEN false").execute()
    assert table.count_rows() == len(ROWS)


def test_values_are_computed_for_the_rows_of_their_clause_only(table: lp.PartitionedTable) -> None:
    source = [{"id": 1, "n": 0}, {"id": 4, "n": 5}, {"id": 7, "n": 0}, {"id": 8, "n": 4}]
    merge = (
        table.merge(source, on=["id"]).when_matched_delete("source.n = 0").when_matched_update({"n": "10 / source.n"})
    )
    merge.when_not_matched_insert({"id": "source.id", "n": "8 / source.n"}, "source.n <> 0").execute()

    assert [row for row in rows(table) if row[0] in (1, 4, 7, 8)] == [(4, "b", 2), (8, None, 2)]


BEYOND = ["(SELECT max(n) FROM {side})", "sum({side}.n) OVER ()", "unnest([1, 2])", "{side}.n IN (SELECT 1)"]


@pytest.mark.parametrize("expression", BEYOND)
def test_an_expression_uses_its_own_row_alone(table: lp.PartitionedTable, expression: str) -> None:
    before, named = rows(table), expression.format(side="target")
    acts = [
        lambda: table.update({"n": expression.format(side="rows")}),
        lambda: table.merge(ROWS, on=["id"]).when_matched_update({"n": named}).execute(),
        lambda: table.merge(ROWS, on=["id"]).when_matched_delete(f"{named} IS NOT NULL").execute(),
    ]
    for act in acts:
        with pytest.raises(InvalidInputError, match="own row"):
            act()
    assert rows(table) == before
    table.update({"k": "'<subquery> select unnest( over'"}, "id = 1")
    assert table.scan("id = 1").to_list()[0]["k"] == "<subquery> select unnest( over"


@pytest.mark.parametrize(
    ("condition", "words"),
    [("source.n", "of type Int64, not Boolean"), ("'yes'", "of type Utf8"), ("true -- all", "comment")],
)
def test_a_condition_is_true_or_false(table: lp.PartitionedTable, condition: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        table.merge(ROWS, on=["id"]).when_matched_delete(condition).execute()
    assert table.count_rows() == len(ROWS)


def test_a_merge_that_is_wrong_changes_nothing(table: lp.PartitionedTable, tmp_path: Path) -> None:
    before, version = rows(table), table.version
    good = [{"id": 1, "n": 1}]
    wrong = [
        (InvalidInputError, lambda: table.merge(good, on=["id"]).execute()),
        (TableColumnNotFoundError, lambda: table.merge(good, on=["x"]).when_matched_delete().execute()),
        (TableSchemaValidationError, lambda: table.merge([{"n": 1}], on=["id"]).when_matched_delete().execute()),
        (
            TableSchemaValidationError,
            lambda: table.merge(pa.table([[1], [2]], names=["id", "id"]), on=["id"]).when_matched_delete().execute(),
        ),
        (InvalidInputError, lambda: table.merge(good * 2, on=["id"]).when_matched_delete().execute()),
        (InvalidInputError, lambda: table.merge(good, on=["id"]).when_matched_delete("nothing > 1").execute()),
        (InvalidInputError, lambda: table.merge(good, on=["id"]).when_matched_update({}).execute()),
        (TableColumnNotFoundError, lambda: table.merge(good, on=["id"]).when_matched_update({"x": "1"}).execute()),
        (
            TableSchemaValidationError,
            lambda: table.merge([{"id": 1, "extra": 1}], on=["id"]).when_matched_update_all().execute(),
        ),
        (
            TableSchemaValidationError,
            lambda: table.merge(good, on=["id"]).when_matched_update({"n": "'text'"}).execute(),
        ),
        (
            TableSchemaValidationError,
            lambda: table.merge([{"id": 1, "n": 1.5}], on=["id"]).when_matched_update_all().execute(),
        ),
    ]
    for kind, act in wrong:
        with pytest.raises(kind):
            act()
    assert rows(table) == before
    assert table.version == version
    tree = lp.create_table(tmp_path / "h", SCHEMA, ["k"], layout="hive")
    with pytest.raises(UnsupportedOperationError, match="merge needs the current layout"):
        tree.merge(good, on=["id"])


def test_every_verb_says_what_it_did(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])

    def told(done: lp.CommitResult | None) -> tuple[int, int, int, int]:
        assert done is not None
        assert done == table.version
        return done.rows_added, done.rows_updated, done.rows_deleted, done.partitions

    assert told(table.append(ROWS)) == (6, 0, 0, 3)
    assert told(table.update({"n": "n + 1"}, "k = 'a'")) == (0, 2, 0, 1)
    assert told(table.upsert([{"id": 0, "k": "a", "n": 5}, {"id": 77, "k": "a", "n": 5}], on=["id"])) == (1, 1, 0, 1)
    assert told(table.delete("k = 'b'")) == (0, 0, 2, 1)
    assert told(table.delete("k = 'none'")) == (0, 0, 0, 0)
    assert told(table.overwrite([{"id": 1, "k": "c", "n": 1}])) == (1, 0, 2, 1)
    assert told(table.overwrite([{"id": 1, "k": "d", "n": 1}], whole_table=True)) == (1, 0, 4, 3)
    assert rows(table) == [(1, "d", 1)]
    with pytest.raises(InvalidInputError, match="give one of them"):
        table.overwrite(ROWS, "true", whole_table=True)
    done = table.append(pd.DataFrame({"id": [1], "k": ["e"], "n": [2]}))
    assert pickle.loads(pickle.dumps(done)) == done
    assert pickle.loads(pickle.dumps(done)).rows_added == 1
    assert repr(done).startswith(f"CommitResult({done}, rows_added=1")
    weak = lp.create_table(tmp_path / "w", SCHEMA, ["k"], transactions="weak")
    assert weak.append(ROWS) is None
    assert weak.merge([{"id": 1, "n": -1}], on=["id"]).when_matched_update_all().execute() is None
    assert weak.count_rows("n = -1") == 1
