"""What changes a table itself: its columns, its partitioning, and its upkeep."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import LanceNamespaceError
from tests.contract.table import START, Contract, dicts, held, in_order


class Changes(Contract):
    """Evolution and maintenance."""

    def test_columns_come_and_go(self, table: lp.PartitionedTable) -> None:
        if not self.current:
            with self.refused(table, *self.names):
                table.add_column(pa.field("more", pa.int64()))
            with self.refused(table, *self.names):
                table.rename_column("n", "m")
            with self.refused(table, *self.names):
                table.drop_column("n")
            with self.refused(table, *self.names):
                table.widen_column("n", pa.int64())
            return
        table.add_column(pa.field("more", pa.int64()))
        table.widen_column("n", pa.int64())
        table.rename_column("country", "land")
        table.drop_column("note")
        table.upsert([{"id": 1, "more": 2**40}, {"id": 6, "land": "US", "n": 2**40}], on=["id"])
        rows = [(1, "US", 10, 2**40), *((row[0], row[1], row[2], None) for row in START[1:]), (6, "US", 2**40, None)]
        assert held(table.scan().to_arrow()) == in_order(rows)
        assert held(table.scan("land = 'US'", columns=["id"]).to_arrow()) == [(1,), (2,), (6,)]

    def test_names_that_no_filter_could_use_are_refused(self, table: lp.PartitionedTable) -> None:
        with pytest.raises(LanceNamespaceError):
            table.add_column(pa.field("", pa.int64()))
        with pytest.raises(LanceNamespaceError):
            table.rename_column("n", "")
        self.check(table, START)

    def test_rows_move_to_another_partitioning(self, table: lp.PartitionedTable) -> None:
        if not self.current:
            with self.refused(table, *self.names):
                table.update_spec(["bucket(id, 2)"])
            return
        table.update_spec(["bucket(id, 2)"])
        table.upsert([{"id": 1, "n": 11}, {"id": 7, "country": "US"}], on=["id"])
        self.check(table, [(1, "US", 11, "a"), *START[1:], (7, "US", None, None)])
        if self.upkeep:
            table.maintenance.rewrite(progress=False)
            self.check(table, [(1, "US", 11, "a"), *START[1:], (7, "US", None, None)])

    def test_upkeep_changes_no_row(self, table: lp.PartitionedTable) -> None:
        calls = {
            "compact": lambda: table.maintenance.compact(progress=False),
            "rewrite": lambda: table.maintenance.rewrite(progress=False),
            "expire": lambda: table.maintenance.expire(timedelta(hours=1), progress=False),
            "orphans": lambda: table.maintenance.remove_orphans(timedelta(days=1), progress=False),
            "index": lambda: table.maintenance.create_index("n", "BTREE", progress=False),
        }
        if not self.upkeep:
            for call in calls.values():
                with self.refused(table, *self.names):
                    call()
            with self.refused(table, *self.names):
                table.maintenance.rollback(table.version)
            return
        version = table.version
        table.append(dicts([(6, "US", 6, None)]))
        table.delete("id = 2")
        now = [START[0], *START[2:], (6, "US", 6, None)]
        for call in calls.values():
            call()
            self.check(table, now)
        assert held(table.scan("n = 10").to_arrow()) == [START[0]]
        table.maintenance.rollback(version)
        self.check(table, START)
