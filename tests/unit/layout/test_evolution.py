"""Changes of schema over leaves old and new, with pruning right before and after each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableColumnNotFoundError, TableSchemaValidationError
from lancepart.storage.manifest import Manifest
from lancepart.storage.translate import ConflictError

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("country", pa.string()), ("n", pa.int32())]
)
DAY, NEXT = date(2025, 12, 10), date(2025, 12, 11)

Make = Callable[..., lp.PartitionedTable]


@pytest.fixture(params=["strong", "weak"])
def make(request: Any, tmp_path: Path) -> Make:
    def created(*partition_by: str, schema: Any = SCHEMA) -> lp.PartitionedTable:
        return lp.create_table(tmp_path / "t", schema, list(partition_by), transactions=request.param)

    return created


def _rows(table: lp.PartitionedTable, where: str | None = None) -> list[dict[str, Any]]:
    return table.scan(where).to_arrow().sort_by("id").to_pylist()


def _kept(table: lp.PartitionedTable, where: str | None = None) -> list[Any]:
    return sorted((leaf.values for leaf in table.scan(where).plan().leaves), key=str)


def test_a_new_column_is_null_in_old_rows_and_filtered_in_both(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US"}, {"id": 2, "country": "FR"}])

    table.add_column(pa.field("note", pa.string()))
    table.append([{"id": 3, "country": "US", "note": "x"}, {"id": 4, "country": "DE", "note": "y"}])

    assert [(row["id"], row["note"]) for row in _rows(table)] == [(1, None), (2, None), (3, "x"), (4, "y")]
    assert [row["id"] for row in _rows(table, "note IS NULL")] == [1, 2]
    assert [row["id"] for row in _rows(table, "note = 'x' AND country = 'US'")] == [3]
    assert table.scan("note IS NOT NULL").count() == 2


def test_a_new_column_can_partition_and_old_leaves_are_null_for_it(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US"}])
    table.add_column(pa.field("zone", pa.string()))
    table.update_spec(["zone"])
    table.append([{"id": 2, "country": "US", "zone": "a"}, {"id": 3, "zone": "b"}])

    assert _kept(table, "zone = 'a'") == [("US",), ("a",)]
    assert [row["id"] for row in _rows(table, "zone = 'a'")] == [2]
    assert [row["id"] for row in _rows(table, "zone IS NULL")] == [1]


def test_a_rename_keeps_old_partitions_prunable(make: Make) -> None:
    table = make("day", "country")
    table.append([{"id": 1, "day": DAY, "country": "US"}])

    table.rename_column("day", "event_day")
    table.append([{"id": 2, "event_day": DAY, "country": "US"}, {"id": 3, "event_day": NEXT, "country": "US"}])

    assert table.scan("event_day = DATE '2025-12-12'").plan().leaves == ()
    assert [row["id"] for row in _rows(table, "event_day = '2025-12-10'")] == [1, 2]
    assert _kept(table, "event_day = '2025-12-10'") == [("2025-12-10", "US")]
    with pytest.raises(InvalidInputError, match="day"):
        table.scan("day = '2025-12-10'")


def test_a_column_renamed_away_and_a_new_one_under_its_old_name_never_mix(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US", "n": 1}])

    table.rename_column("n", "old_n")
    table.add_column(pa.field("n", pa.int32()))
    table.append([{"id": 2, "country": "US", "n": 20, "old_n": 2}, {"id": 3, "country": "FR", "n": 30, "old_n": 3}])

    assert [(row["old_n"], row["n"]) for row in _rows(table)] == [(1, None), (2, 20), (3, 30)]
    assert [row["id"] for row in _rows(table, "n = 1")] == []
    assert [row["id"] for row in _rows(table, "old_n = 1")] == [1]
    assert [row["id"] for row in _rows(table, "n IS NULL")] == [1]


def test_a_partition_source_renamed_away_and_its_name_given_to_another_prunes_right(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US"}])

    table.rename_column("country", "land")
    table.add_column(pa.field("country", pa.string()))
    table.append([{"id": 2, "land": "US", "country": "FR"}, {"id": 3, "land": "FR", "country": "US"}])

    assert [row["id"] for row in _rows(table, "country = 'US'")] == [3]
    assert [row["id"] for row in _rows(table, "land = 'US'")] == [1, 2]
    assert _kept(table, "land = 'US'") == [("US",)]
    assert _kept(table, "country = 'US'") == [("FR",), ("US",)], "the new column partitions nothing"


def test_two_columns_can_swap_their_names(make: Make) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    table = make("id", schema=schema)
    table.append([{"id": 1, "a": "a", "b": "b"}])

    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        table.rename_column(old, new)
    table.append([{"id": 1, "a": "B", "b": "A"}])

    assert table.scan(columns=["a", "b"]).to_arrow().to_pylist() == [{"a": "b", "b": "a"}, {"a": "B", "b": "A"}]


def test_a_dropped_column_is_gone_and_its_name_is_free(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US", "n": 1}])

    table.drop_column("n")
    assert table.schema.names == ["id", "day", "country"]
    table.append([{"id": 2, "country": "US"}])
    table.add_column(pa.field("n", pa.string()))
    table.append([{"id": 3, "country": "US", "n": "three"}])

    assert [row["n"] for row in _rows(table)] == [None, None, "three"]


def test_a_dropped_partition_source_reads_as_null_for_new_rows(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US"}, {"id": 2, "country": None}])

    table.drop_column("country")
    table.append([{"id": 3}])

    assert _kept(table) == [("US",), (None,)]
    assert [row["id"] for row in _rows(table)] == [1, 2, 3]
    assert "its source column was removed" in table.scan("id = 3").explain()
    assert table.inspect.specs().to_pylist()[0]["source"] == "(removed)"


def test_a_dropped_column_that_was_never_null_does_not_stand_in_the_way(make: Make) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), pa.field("must", pa.int8(), nullable=False)])
    table = make("k", schema=schema)
    table.append([{"id": 1, "k": "a", "must": 1}])

    table.drop_column("must")
    table.append([{"id": 2, "k": "a"}])

    assert _rows(table) == [{"id": 1, "k": "a"}, {"id": 2, "k": "a"}]


WIDENED = [
    (pa.int32(), pa.int64(), 5, 2**40, ["n", "truncate(n, 10)", "bucket(n, 4)", "expr(n % 3) AS p"]),
    (pa.int8(), pa.int32(), -7, 70_000, ["n", "truncate(n, 10)", "bucket(n, 4)"]),
    (pa.uint16(), pa.uint64(), 7, 2**50, ["n", "bucket(n, 4)"]),
    (pa.float32(), pa.float64(), 0.5, 1e300, ["n", "bucket(n, 4)"]),
    (
        pa.decimal128(5, 2),
        pa.decimal128(20, 2),
        Decimal("14.20"),
        Decimal("123456789.01"),
        ["n", "truncate(n, 10)", "bucket(n, 4)"],
    ),
]


@pytest.mark.parametrize(
    ("narrow", "wide", "old", "big", "partition_by"),
    [(n, w, o, b, by) for n, w, o, b, bys in WIDENED for by in bys],
    ids=[f"{n} to {w} by {by}" for n, w, _, _, bys in WIDENED for by in bys],
)
def test_widening_a_partition_source_finds_the_partitions_made_before(
    tmp_path: Path, narrow: Any, wide: Any, old: Any, big: Any, partition_by: str
) -> None:
    table = lp.create_table(tmp_path / "w", pa.schema([("id", pa.int64()), ("n", narrow)]), [partition_by])
    table.append([{"id": 1, "n": old}, {"id": 2, "n": None}])
    before = table.scan(f"n = {old}").plan().leaves[0].object_id

    table.widen_column("n", wide)
    assert [row["id"] for row in _rows(table, f"n = {old}")] == [1]
    table.append([{"id": 3, "n": old}, {"id": 4, "n": big}, {"id": 5, "n": None}])

    assert before in [leaf.object_id for leaf in table.scan(f"n = {old}").plan().leaves]
    assert [row["id"] for row in _rows(table, f"n = {old}")] == [1, 3]
    assert [row["id"] for row in _rows(table, f"n > {old}")] == [4]
    assert [row["id"] for row in _rows(table, "n IS NULL")] == [2, 5]
    assert len({leaf.key for leaf in table.scan().plan().leaves}) == len(table.scan().plan().leaves)
    (field,) = table.spec.fields
    column = lance.dataset(f"{table.root}/__manifest").schema.field(f"partition_field_{field.field_id}")
    assert column.type == field.result_type
    if partition_by == "n" or partition_by.startswith("truncate"):
        assert field.result_type == wide


def test_widening_another_column_casts_old_rows_and_filters_over_both(make: Make) -> None:
    table = make("country")
    table.append([{"id": 1, "country": "US", "n": 5}, {"id": 2, "country": "FR", "n": 6}])

    table.widen_column("n", pa.int64())
    table.append([{"id": 3, "country": "US", "n": 2**40}])

    assert [row["n"] for row in _rows(table)] == [5, 6, 2**40]
    assert [row["id"] for row in _rows(table, "n >= 6")] == [2, 3]
    assert table.scan().to_arrow().schema.field("n").type == pa.int64()
    assert table.scan(f"n = {2**40}").count() == 1


def test_many_evolutions_one_after_the_other(make: Make) -> None:
    table = make("year(day)")
    table.append([{"id": 1, "day": DAY, "country": "US", "n": 1}])
    table.rename_column("country", "land")
    table.update_spec(["day", "land"])
    table.append([{"id": 2, "day": DAY, "land": "US", "n": 2}])
    table.widen_column("n", pa.int64())
    table.add_column(pa.field("country", pa.int8()))
    table.append([{"id": 3, "day": DAY, "land": "US", "n": 2**40, "country": 7}])
    table.drop_column("land")
    table.append([{"id": 4, "day": DAY, "n": 4, "country": 8}])
    table.update_spec(["bucket(country, 2)", "truncate(n, 1000)"])
    table.append([{"id": 5, "day": NEXT, "n": 2**40, "country": 7}])

    assert [(row["id"], row["n"], row["country"]) for row in _rows(table, "day >= '2025-12-10'")] == [
        (1, 1, None),
        (2, 2, None),
        (3, 2**40, 7),
        (4, 4, 8),
        (5, 2**40, 7),
    ]
    assert [row["id"] for row in _rows(table, f"n = {2**40} AND country = 7")] == [3, 5]
    assert [row["id"] for row in _rows(table, "day = '2025-12-10' AND n < 3")] == [1, 2]
    assert table.scan("day = '2024-01-01' AND n = 3").count() == 0


def test_field_ids_are_never_used_again(make: Make) -> None:
    table = make("country")
    for _ in range(3):
        table.add_column(pa.field("x", pa.struct([("a", pa.int8())])))
        table.drop_column("x")
    table.add_column(pa.field("y", pa.int8()))

    assert table.metadata.last_field_id == 10
    assert max(table.metadata.columns) == 10


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "rename to a taken name": (lambda t: t.rename_column("id", "day"), InvalidInputError, "taken"),
    "rename to nothing": (lambda t: t.rename_column("id", ""), InvalidInputError, "empty"),
    "rename to a number": (lambda t: t.rename_column("id", 5), InvalidInputError, "not a string"),
    "rename of what is not there": (lambda t: t.rename_column("x", "y"), TableColumnNotFoundError, "'x'"),
    "drop of what is not there": (lambda t: t.drop_column("x"), TableColumnNotFoundError, "'x'"),
    "widen of what is not there": (lambda t: t.widen_column("x", pa.int64()), TableColumnNotFoundError, "'x'"),
    "add under a taken name": (lambda t: t.add_column(pa.field("id", pa.int8())), InvalidInputError, "taken"),
    "add without a name": (lambda t: t.add_column(pa.field("", pa.int8())), InvalidInputError, "empty"),
    "add without null": (
        lambda t: t.add_column(pa.field("x", pa.int8(), nullable=False)),
        InvalidInputError,
        "must be nullable",
    ),
    "add no field": (lambda t: t.add_column("x"), InvalidInputError, "takes a pyarrow.Field"),
    "add what Lance does not store": (
        lambda t: t.add_column(pa.field("x", pa.month_day_nano_interval())),
        InvalidInputError,
        "does not store",
    ),
    "add a small decimal": (
        lambda t: t.add_column(pa.field("x", pa.decimal32(5, 2))),
        InvalidInputError,
        "use decimal128",
    ),
    "narrow": (lambda t: t.widen_column("id", pa.int32()), TableSchemaValidationError, "can't become"),
    "text to number": (lambda t: t.widen_column("country", pa.int64()), TableSchemaValidationError, "can't become"),
    "int to float": (lambda t: t.widen_column("n", pa.float64()), TableSchemaValidationError, "can't become"),
    "sign": (lambda t: t.widen_column("n", pa.uint64()), TableSchemaValidationError, "can't become"),
    "no type": (lambda t: t.widen_column("n", "int64"), InvalidInputError, "takes a pyarrow.DataType"),
}


@pytest.mark.parametrize(("step", "error", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_change_that_can_not_be_is_refused_and_changes_nothing(
    tmp_path: Path, step: Callable[[Any], Any], error: type[Exception], reason: str
) -> None:
    table = lp.create_table(tmp_path / "r", SCHEMA, ["country"])
    version = table.version

    with pytest.raises(error, match=reason):
        step(table)

    assert table.version == version


def test_the_last_column_stays(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "l", pa.schema([("id", pa.int64())]), ["id"])

    with pytest.raises(InvalidInputError, match="last one"):
        table.drop_column("id")


def test_a_change_to_what_is_there_already_is_none(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "s", SCHEMA, ["country"])
    version = table.version

    table.rename_column("id", "id")
    table.widen_column("n", pa.int32())

    assert table.version == version


def test_a_table_open_in_the_past_can_not_be_changed(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "p", SCHEMA, ["country"])
    past = lp.open_table(table.root, version=table.version)

    for step in (
        lambda: past.drop_column("n"),
        lambda: past.append([{"id": 1}]),
        lambda: past.update_spec(["day"]),
    ):
        with pytest.raises(lp.errors.UnsupportedOperationError, match="open it without a version"):
            step()


def test_a_past_snapshot_has_the_schema_of_its_time(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "h", SCHEMA, ["country"])
    table.append([{"id": 1, "country": "US"}])
    then = table.version
    table.rename_column("country", "land")

    past = lp.open_table(table.root, version=then)

    assert past.schema.names == SCHEMA.names
    assert past.scan("country = 'US'").count() == 1


def test_a_change_whose_answer_got_lost_is_not_made_again(make: Make) -> None:
    table = make("country")

    class Unheard(Manifest):
        def swap_properties(self, snapshot: Any, values: Any) -> int:
            super().swap_properties(snapshot, values)
            raise ConflictError("the answer got lost")

    own = lp.PartitionedTable(Unheard(table._manifest.root))
    own.add_column(pa.field("more", pa.string()))
    own.rename_column("more", "less")
    own.update_spec(["n"])
    own.drop_column("less")

    assert table.schema.names == SCHEMA.names
    assert [spec.id for spec in table.specs] == [1, 2]
    table.append([{"id": 1, "country": "US", "n": 5}])
    assert [leaf.spec_id for leaf in table.scan().plan().leaves] == [2]
