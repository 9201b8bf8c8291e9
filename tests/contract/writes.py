"""Writes: every verb against plain rows, and what it refuses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, LanceNamespaceError, TableSchemaValidationError
from tests.contract.table import START, Contract, dicts, held


class Writes(Contract):
    """What a writer can do."""

    def returned(self, answer: int | None, table: lp.PartitionedTable) -> None:
        """Insist on what a verb returns: the new snapshot's version where there are such."""
        assert answer == (table.version if self.atomic else None)

    def test_append_adds_rows(self, table: lp.PartitionedTable) -> None:
        self.returned(table.append(dicts([(6, "US", 1, None), (7, "JP", None, "x")])), table)
        self.check(table, [*START, (6, "US", 1, None), (7, "JP", None, "x")])

    @pytest.mark.parametrize("nothing", [[], pa.table({"id": pa.array([], pa.int64())})], ids=["list", "table"])
    def test_no_rows_change_nothing(self, table: lp.PartitionedTable, nothing: Any) -> None:
        version = table.version
        table.append(nothing)
        table.overwrite(nothing)
        table.upsert(nothing, on=["id"])
        assert table.version == version
        self.check(table, START)
        table.overwrite(nothing, where="country = 'FR'")
        self.check(table, [row for row in START if row[1] != "FR"])

    def test_overwrite_replaces_the_partitions_that_it_touches(self, table: lp.PartitionedTable) -> None:
        self.returned(table.overwrite(dicts([(8, "US", 8, "h"), (9, None, 9, None)])), table)
        self.check(table, [START[2], START[4], (8, "US", 8, "h"), (9, None, 9, None)])

    def test_overwrite_where_replaces_the_rows_that_match(self, table: lp.PartitionedTable) -> None:
        self.returned(table.overwrite(dicts([(3, "DE", 31, "new")]), where="id IN (3, 4)"), table)
        kept = [START[0], START[1], START[4], (3, "DE", 31, "new")]
        self.check(table, kept)
        with pytest.raises(InvalidInputError, match="do not match"):
            table.overwrite(dicts([(99, "DE", 1, None)]), where="id = 5")
        self.check(table, kept)

    def test_delete_removes_the_rows_that_match(self, table: lp.PartitionedTable) -> None:
        self.returned(table.delete("n >= 30 OR country IS NULL"), table)
        self.check(table, START[:2])
        table.delete("true")
        self.check(table, [])
        table.append(dicts(START))
        self.check(table, START)

    @pytest.mark.parametrize("where", [None, "", "  ", 1, True, [], b"true"], ids=repr)
    def test_only_a_filter_that_is_written_out_deletes(self, table: lp.PartitionedTable, where: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"'true' to mean all rows|give SQL in a string"):
            table.delete(where)
        if where is not None:
            with pytest.raises(InvalidInputError, match=r"'true' to mean all rows|give SQL in a string"):
                table.update({"n": "1"}, where)
            with pytest.raises(InvalidInputError, match=r"'true' to mean all rows|give SQL in a string"):
                table.overwrite(dicts([(1, "US", 1, None)]), where)
        self.check(table, START)

    def test_update_sets_columns_and_moves_rows(self, table: lp.PartitionedTable) -> None:
        self.returned(table.update({"n": "n + 1", "country": "'DE'"}, "country = 'US' OR id = 5"), table)
        self.check(table, [(1, "DE", 11, "a"), (2, "DE", 21, None), *START[2:4], (5, "DE", 51, "e")])
        table.update({"note": "NULL", "country": "note"})
        self.check(
            table,
            [(1, "a", 11, None), (2, None, 21, None), (3, "c", 30, None), (4, "d", None, None), (5, "e", 51, None)],
        )

    @pytest.mark.parametrize(
        "values", [{}, {"n": 1}, {"n": None}, {"n": " "}, {"zz": "1"}, [("n", "1")], "n"], ids=repr
    )
    def test_update_takes_sql_for_columns(self, table: lp.PartitionedTable, values: Any) -> None:
        with pytest.raises(LanceNamespaceError):
            table.update(values, "id = 1")
        self.check(table, START)

    def test_update_refuses_what_would_end_the_process(self, table: lp.PartitionedTable) -> None:
        for value in ("+".join(["n"] * 20_000), "CASE WHEN " + "NOT (" * 60 + "true" + ")" * 60 + " THEN 1 END"):
            with pytest.raises(InvalidInputError, match="levels"):
                table.update({"n": value}, "id = 1")
        self.check(table, START)

    def test_upsert_replaces_and_adds(self, table: lp.PartitionedTable) -> None:
        self.returned(table.upsert(dicts([(1, "FR", 1, "moved"), (9, "JP", None, None)]), on=["id"]), table)
        self.check(table, [(1, "FR", 1, "moved"), *START[1:], (9, "JP", None, None)])

    def test_upsert_keeps_what_is_not_named(self, table: lp.PartitionedTable) -> None:
        table.upsert(pa.table({"n": pa.array([100, 400, 900]), "id": [1, 4, 9]}), on=["id"])
        expected = [(1, "US", 100, "a"), *START[1:3], (4, None, 400, "d"), START[4], (9, None, 900, None)]
        self.check(table, expected)
        table.upsert(pa.table({"id": [1], "country": ["JP"]}), on=["id"])
        self.check(table, [(1, "JP", 100, "a"), *expected[1:]])

    def test_upsert_keeps_what_a_row_does_not_name(self, table: lp.PartitionedTable) -> None:
        table.upsert([{"id": 1, "n": None}, {"id": 3, "note": "z"}, {"id": 8, "country": "US"}], on=["id"])
        self.check(table, [(1, "US", None, "a"), START[1], (3, "FR", 30, "z"), *START[3:], (8, "US", None, None)])

    def test_upsert_by_more_than_one_column(self, table: lp.PartitionedTable) -> None:
        table.upsert([{"country": "US", "id": 1, "n": 0}, {"country": "FR", "id": 1, "n": 0}], on=["country", "id"])
        self.check(table, [(1, "US", 0, "a"), *START[1:], (1, "FR", 0, None)])

    @pytest.mark.parametrize(
        ("data", "on", "reason"),
        [
            ([{"country": "US", "n": 1}], ["id"], "does not name 'id'"),
            ([{"id": 1, "n": 1}, {"n": 2}], ["id"], "does not name 'id'"),
            (pa.table({"n": [1]}), ["id"], "does not name 'id'"),
            ([{"id": 1}, {"id": 1}], ["id"], "more than once in the data"),
            ([{"country": "US", "n": 1}], ["country"], "is on 2 rows of the table"),
            ([{"country": "XX", "n": 1}], ["country"], "'id' is missing, and may not be null"),
            ([{"id": 1}], ["id", "id"], "twice"),
            ([{"id": 1}], [], "list of the columns"),
            ([{"id": 1}], "id", "list of the columns"),
            ([{"id": 1}], ["zz"], "no column 'zz'"),
        ],
    )
    def test_upsert_refuses_what_is_not_clear(
        self, table: lp.PartitionedTable, data: Any, on: Any, reason: str
    ) -> None:
        with pytest.raises(LanceNamespaceError, match=reason):
            table.upsert(data, on=on)
        self.check(table, START)

    @pytest.mark.parametrize(
        "data", [[{}], [{"id": 1}, {}], [{"id": None}], [{"id": 1, "zz": 2}], [{"id": 1.5}], [{"id": 1, "n": 2**40}]]
    )
    def test_rows_that_do_not_fit_are_refused(self, table: lp.PartitionedTable, data: Any) -> None:
        for verb in (table.append, table.overwrite):
            with pytest.raises(TableSchemaValidationError):
                verb(data)
        self.check(table, START)

    def test_a_distribution_that_there_is_not_is_refused(self, table: lp.PartitionedTable) -> None:
        for verb in (table.append, table.overwrite, lambda data, **more: table.upsert(data, ["id"], **more)):
            with pytest.raises(InvalidInputError, match="distribution is 'zz'"):
                verb(dicts(START), distribution="zz")
        self.check(table, START)

    def test_a_transaction_of_many_verbs_is_one_commit(self, table: lp.PartitionedTable) -> None:
        if not self.atomic:
            with self.refused(table, *self.names), table.transaction() as changes:
                changes.delete("true")
            return
        version = table.version
        with table.transaction() as changes:
            changes.append(dicts([(6, "US", 6, None)]))
            changes.upsert([{"id": 6, "note": "own"}, {"id": 1, "country": "JP"}], on=["id"])
            changes.update({"n": "n * 2"}, "country = 'US'")
            changes.delete("id = 2")
            changes.overwrite(dicts([(7, "FR", 7, None)]))
            changes.upsert([{"id": 7, "n": 8}], on=["id"])
            expected = [(1, "JP", 10, "a"), START[3], (6, "US", 12, "own"), (7, "FR", 8, None)]
            assert held(changes.scan().to_arrow()) == expected
            self.check(lp.open_table(table.root, version=version), START)
        self.check(table, expected)
        left = table.transaction()
        left.delete("true")
        self.check(table, expected)

    def test_a_verb_that_fails_in_a_transaction_changes_nothing_of_it(self, table: lp.PartitionedTable) -> None:
        if not self.atomic:
            return
        with table.transaction() as changes:
            changes.delete("id = 1")
            for wrong in (None, ""):
                with pytest.raises(InvalidInputError):
                    changes.delete(wrong)  # type: ignore[arg-type]
            with pytest.raises(TableSchemaValidationError):
                changes.append([{}])
        self.check(table, START[1:])

    def test_an_idempotency_key_commits_once(self, table: lp.PartitionedTable) -> None:
        if not self.atomic:
            with self.refused(table, *self.names):
                table.append(dicts(START), idempotency_key="k")
            return
        for _ in range(2):
            table.append(dicts([(6, "US", 6, None)]), idempotency_key="k")
        self.check(table, [*START, (6, "US", 6, None)])
