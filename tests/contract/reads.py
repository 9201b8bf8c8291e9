"""Reads: scans, joins, time travel, tags, changes, and what a table is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from tests.contract.table import SCHEMA, START, Contract, dicts, held, in_order
from tests.support import layouts
from tests.support.catalogs import Place


class Reads(Contract):
    """What a reader can ask."""

    def test_a_scan_gives_the_rows_that_match(self, table: lp.PartitionedTable) -> None:
        self.check(table, START)
        some = table.scan("country = 'FR' AND n > 30 OR id = 1", columns=["note", "id"])
        assert held(some.to_arrow()) == [("a", 1), ("e", 5)]
        assert some.count() == 2
        assert table.scan(limit=2).to_arrow().num_rows == 2
        assert len(table.scan("country = 'FR'").plan().leaves) == 1
        assert "leaves" in table.scan("country = 'FR'").explain()
        assert len(table.scan().to_pandas()) == len(START)

    def test_an_empty_table_answers(self, empty: lp.PartitionedTable) -> None:
        self.check(empty, [])
        assert empty.join(empty, on=["country"]).to_arrow().num_rows == 0
        assert empty.scan().to_arrow().schema == empty.schema

    @pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
    def test_a_join_gives_what_plain_rows_give(self, table: lp.PartitionedTable, how: str) -> None:
        table.delete("id = 1")
        table.append(dicts([(6, "DE", 1, None)]))
        kept = [row for row in START if row[0] != 1] + [(6, "DE", 1, None)]
        self.check(table, kept)

        joined = table.join(table, on=["country"], how=how, where="id <> 3").to_arrow()

        pairs = [(a, b) for a in kept for b in kept if a[1] == b[1] and a[1] is not None]
        alone = [row for row in kept if row[1] is None]
        left = {
            "inner": [a[0] for a, _ in pairs],
            "left": [a[0] for a, _ in pairs] + [row[0] for row in alone],
            "right": [a[0] for a, _ in pairs],
            "full": [a[0] for a, _ in pairs] + [row[0] for row in alone],
            "semi": [a[0] for a in kept if a[1] is not None],
            "anti": [row[0] for row in alone],
        }[how]
        assert sorted(joined["id"].to_pylist()) == sorted(number for number in left if number != 3)

    @pytest.mark.parametrize("other", layouts.LAYOUTS)
    def test_a_join_with_another_layout(self, table: lp.PartitionedTable, tmp_path: Any, other: str) -> None:
        theirs = layouts.make(other, Place(str(tmp_path / "other"), {}), SCHEMA, "country")
        theirs.append(dicts([(1, "US", 7, None), (2, None, 8, None)]))

        joined = table.join(theirs, on=["country"], columns=["id", "n_right"]).to_arrow()

        assert held(joined) == [(1, 7), (2, 7)]

    def test_older_snapshots_are_read_as_they_were(self, table: lp.PartitionedTable, store: Place) -> None:
        version = table.version
        moment = datetime.now(UTC)
        options = store.storage_options
        if not self.snapshots:
            table.delete("country = 'US'")
            for wanted in (version, moment):
                with self.refused(table, *self.names):
                    lp.open_table(store.root, version=wanted, storage_options=options)
                with self.refused(table, *self.names):
                    table.scan(version=wanted)
            return
        table.tags.create("first", version)
        table.delete("country = 'US'")
        table.append(dicts([(9, "JP", 9, "i")]))
        for wanted in (version, "first", moment):
            then = lp.open_table(store.root, version=wanted, storage_options=options)
            self.check(then, START)
            assert held(table.scan(version=wanted).to_arrow()) == in_order(START)
            assert then.join(then, on=["country"]).to_arrow().num_rows == 8
            with self.refused(table, "snapshot"):
                then.append(dicts([(7, "US", 1, "x")]))
        self.check(table, [*START[2:], (9, "JP", 9, "i")])

    def test_tags_name_snapshots(self, table: lp.PartitionedTable) -> None:
        if not self.snapshots:
            with self.refused(table, *self.names):
                table.tags.create("t", table.version)
            return
        table.tags.create("t", table.version)
        assert table.tags.list() == {"t": table.version}
        table.tags.delete("t")
        assert table.tags.list() == {}

    def test_changes_are_what_came_and_went(self, table: lp.PartitionedTable) -> None:
        version = table.version
        if not self.upkeep:
            with self.refused(table, *self.names):
                table.changes(version)
            return
        table.delete("id = 1")
        table.append(dicts([(9, "JP", 9, "i")]))
        found = table.changes(version).select(["id", "_change"])
        assert held(found) == [(1, "delete"), (9, "insert")]

    def test_the_history_tells_of_every_snapshot_that_can_be_read(self, table: lp.PartitionedTable) -> None:
        before = table.inspect.snapshots()["version"].to_pylist()
        version = table.delete("id = 1")
        told = table.inspect.snapshots()["version"].to_pylist()
        if not self.snapshots:
            assert not {table.version} & set(told)
            return
        assert before
        assert told == [*before, version]
        for version in told:
            assert table.scan(version=version).count() in (0, len(START) - 1, len(START))

    def test_a_table_tells_what_it_is_made_of(self, table: lp.PartitionedTable) -> None:
        sizes = table.inspect.partitions()
        assert in_order(dict(each).popitem()[1] for each in sizes["partition"].to_pylist()) == in_order(
            ["US", "FR", None]
        )
        assert in_order(sizes["rows"].to_pylist()) == [1, 2, 2]
        assert sum(table.inspect.fragments()["rows"].to_pylist()) == len(START)
        assert table.inspect.specs()["source"].to_pylist() == ["country"]
        assert table.inspect.indices().num_rows == 0
        assert table.inspect.unpublished_commits().num_rows == 0
        assert table.schema == SCHEMA
        assert "country" in table._repr_html_()

    def test_what_is_asked_wrongly_is_refused(self, table: lp.PartitionedTable) -> None:
        for wrong in ("", "  ", "nope = 1", "id +", 7):
            with pytest.raises(InvalidInputError):
                table.scan(wrong).to_arrow()  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="common type"):
            table.join(table, on=[("id", "country")])
        assert pa.table(table.scan().to_arrow()).num_rows == len(START)
