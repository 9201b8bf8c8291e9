"""Plans as options: the same rows come of them, and whatever else an option holds is refused and never run."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.read.leaf import LeafTask
from lancepart.read.pieces import Piece
from lancepart.spark import handover
from lancepart.spark.handover import COLUMNS, PLAN, SECRETS, plan_options, read_plan
from lancepart.spark.running import rows as read_task
from lancepart.spark.source import refuse_own, show
from lancepart.spark.spark_plan import SparkScan, SparkTask
from lancepart.spark.tasks import group_of, handed, join_plan, scan_plan
from lancepart.spark.types import read_schema, read_type, spark_schema
from pyspark_lancepart import DefaultSource
from tests.support.attacks import SECRET, Touch

pytest.importorskip("pyspark")
from pyspark.sql import types

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["country", "year(day)"])
    made.append([{"id": n, "country": ("US", None, "FR")[n % 3], "day": date(2024 + n % 2, 1, 1)} for n in range(12)])
    return made


METADATA = "schema specs transactions salt last_field_id change layout past foreign"
LEAF = "object_id spec_id location key values read_version number stats constants branch numbering"
TASK = "root metadata leaf columns predicate limit fragments ahead batch_rows"


def names(kind: Any) -> str:
    return " ".join(field.name for field in fields(kind))


def rows(options: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the tasks of a plan read."""
    _, (work, tasks) = handed(options, None)
    plan = pickle.loads(work)
    return [row for task in tasks for batch in read_task(plan, pickle.loads(task)) for row in batch.to_pylist()]


def whole(leaf: Leaf) -> SparkTask:
    return SparkTask(pieces=(Piece(leaf=leaf, bytes=0),))


def with_columns(options: Mapping[str, str], schema: pa.Schema) -> dict[str, str]:
    return {**options, COLUMNS: spark_schema(schema).json()}


def planned(scan: Any) -> dict[str, str]:
    return with_columns(plan_options(scan_plan(scan), [whole(task.leaf) for task in scan.tasks()]), scan.schema)


def told(options: Mapping[str, str]) -> dict[str, Any]:
    return dict(json.loads(zlib.decompress(base64.b64decode(options[PLAN]))))


def packed(told: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(told).encode())).decode()


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=repr)


@pytest.mark.parametrize("where", [None, "id > 3 AND country = 'US'", "id % 2 = 0", "country IS NULL"])
def test_a_scan_reads_the_same_rows(table: lp.PartitionedTable, where: str | None) -> None:
    scan = table.scan(where, columns=["day", "id"])

    assert in_order(rows(planned(scan))) == in_order(scan.to_arrow().to_pylist())


def test_some_fragments_of_a_leaf_are_read(table: lp.PartitionedTable) -> None:
    table.append([{"id": 100, "country": "US", "day": date(2024, 1, 1)}])
    scan = table.scan("country = 'US' AND id <> 6")
    leaves = [task.leaf for task in scan.tasks() if task.leaf.stats.fragments > 1]  # type: ignore[union-attr]
    cut = [SparkTask(pieces=(Piece(leaf=leaf, bytes=0, fragments=(1,)),)) for leaf in leaves]

    assert [row["id"] for row in rows(with_columns(plan_options(scan_plan(scan), cut), scan.schema))] == [100]


@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
def test_a_join_gives_the_same_rows(table: lp.PartitionedTable, tmp_path: Path, how: str) -> None:
    other = lp.create_table(tmp_path / "o", pa.schema([("country", pa.string()), ("id", pa.int32())]), ["country"])
    other.append([{"country": "US", "id": 1}, {"country": "JP", "id": 2}])
    join = table.join(other, on=["country"], how=how, where="id IS NULL OR id < 9", suffix="_other")

    groups = [SparkTask(groups=(group_of(task),)) for task in join.tasks()]
    options = with_columns(plan_options(join_plan(join), groups), join.schema)

    assert in_order(rows(options)) == in_order(join.to_arrow().to_pylist())


def test_columns_that_paths_hold_travel_exactly(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("text", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("money", pa.decimal128(10, 2)),
            ("half", pa.float32()),
            ("flag", pa.bool_()),
        ]
    )
    tree = lp.create_table(tmp_path / "h", schema, schema.names[1:], layout="hive")
    tree.append(
        pa.table(
            [
                [1, 2],
                ["50% / $", None],
                [datetime(2025, 1, 2, 3, 4, 5, 6), None],
                [Decimal("1.50"), None],
                [0.1, None],
                [True, None],
            ],
            schema=schema,
        )
    )
    scan = tree.scan("half IS NULL OR half < 1")

    assert in_order(rows(planned(scan))) == in_order(scan.to_arrow().to_pylist())


def test_a_plan_of_many_leaves_is_small(table: lp.PartitionedTable) -> None:
    scan = table.scan()
    leaf = scan.tasks()[0].leaf
    leaves = [
        replace(leaf, object_id=f"v1${n:016x}$dataset", location=f"{n:08x}_v1${n:016x}$dataset") for n in range(10_000)
    ]
    task = SparkTask(pieces=tuple(Piece(leaf=each, bytes=0) for each in leaves))
    options = plan_options(scan_plan(scan), [task])

    _, (found,) = read_plan(options)

    assert [each.leaf.location for each in found.pieces] == [leaf.location for leaf in leaves]
    assert len(options[PLAN]) < 200_000


def test_whatever_a_leaf_is_read_by_travels(table: lp.PartitionedTable) -> None:
    table.rename_column("country", "land")
    scan = lp.open_table(table.root).scan("id > 1")
    tasks = scan.tasks()

    plan, found_tasks = read_plan(planned(scan))
    assert isinstance(plan, SparkScan)

    assert [names(kind) for kind in (TableMetadata, Leaf, LeafTask)] == [METADATA, LEAF, TASK], "let it travel, too"
    for task, made in zip(found_tasks, tasks, strict=True):
        found = plan.side.task(task.pieces[0], plan.limit)
        assert replace(found, leaf=made.leaf, metadata=made.metadata) == made
        assert replace(found.metadata, specs=made.metadata.specs) == made.metadata
        leaf = made.leaf
        unread = {name: getattr(leaf, name) for name in ("key", "values", "number", "numbering")}
        assert replace(found.leaf, **unread) == leaf


def test_storage_options_travel_beside_the_plan(table: lp.PartitionedTable) -> None:
    secretive = lp.open_table(table.root, storage_options={"aws_secret_access_key": SECRET})
    options = planned(secretive.scan())

    plan, _ = read_plan(options)
    assert isinstance(plan, SparkScan)

    assert [key for key, value in options.items() if SECRET in value] == [SECRETS]
    assert SECRET not in json.dumps(told(options))
    assert plan.side.root.storage_options == {"aws_secret_access_key": SECRET}
    assert SECRETS not in planned(table.scan())


def test_a_pickle_is_never_loaded(table: lp.PartitionedTable, tmp_path: Path) -> None:
    mark = tmp_path / "touched"
    evil = pickle.dumps(Touch(mark))
    texts = [base64.b64encode(each).decode() for each in (evil, zlib.compress(evil))]

    for text in (*texts, packed({"version": 1, "pickle": texts[0]}), "", "ä", "e30="):
        with pytest.raises(InvalidInputError, match=r"lancepart\.plan"):
            show({"path": table.root, PLAN: text, COLUMNS: spark_schema(SCHEMA).json()})

    assert not mark.exists()


def test_a_class_in_a_schema_is_never_loaded(table: lp.PartitionedTable, tmp_path: Path) -> None:
    mark = tmp_path / "touched"
    kind = {
        "type": "udt",
        "pyClass": "json.Nothing",
        "serializedClass": base64.b64encode(pickle.dumps(Touch(mark))).decode(),
        "sqlType": {"type": "array", "elementType": "double", "containsNull": False},
    }
    inside = {"type": "array", "elementType": kind, "containsNull": True}
    fields = [{"name": "v", "type": each, "nullable": True, "metadata": {}} for each in (kind,)]
    columns = json.dumps({"type": "struct", "fields": fields})

    assert read_schema(columns)["v"].dataType == types.ArrayType(types.DoubleType(), False)
    assert read_type(json.dumps(inside)).simpleString() == "array<array<double>>"
    with pytest.raises(InvalidInputError, match="stored as"):
        read_type({"type": "udt", "pyClass": "json.Nothing"})
    with pytest.raises(LanceNamespaceError):
        show({**planned(table.scan()), "path": table.root, COLUMNS: columns, PLAN: "x"})
    assert not mark.exists()


def spoil(path: str, value: Any) -> Any:
    """A change of one place in a plan."""

    def change(plan: dict[str, Any]) -> None:
        *way, last = path.split(".")
        here: Any = plan
        for step in way:
            here = here[int(step)] if isinstance(here, list) else here[step]
        here[int(last) if isinstance(here, list) else last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        spoil("version", 1),
        spoil("version", 3),
        spoil("version", True),
        spoil("more", 1),
        spoil("join", {}),
        spoil("sides.0.locations.0", "../../elsewhere"),
        spoil("sides.0.locations.0", "/etc"),
        spoil("sides.0.locations.0", 7),
        spoil("sides.0.locations", []),
        spoil("sides.0.layout", "other"),
        spoil("sides.0.schema", "{}"),
        spoil("sides.0.uri", ""),
        spoil("sides.0.versions.0", "1"),
        spoil("sides", []),
        spoil("sides.0.where", "id = ; DROP"),
        spoil("sides.0.where", ["x"]),
        spoil("sides.0.where", {}),
        spoil("sides.0.where.kind", "subquery"),
        spoil("sides.0.where.column", "nothing"),
        spoil("sides.0.where.literal.values", ["1"]),
        spoil("sides.0.columns", ["nothing"]),
        spoil("sides.0.columns", []),
        spoil("tasks.0", []),
        spoil("tasks.0.pieces.0", []),
        spoil("tasks.0.pieces.0", [10**6]),
        spoil("tasks.0.pieces.0", [0, "a"]),
        spoil("tasks.0.groups", [[[[0]], [[0]]]]),
        spoil("limit", -1),
    ],
)
def test_a_plan_that_is_not_one_of_ours_is_refused(table: lp.PartitionedTable, change: Any) -> None:
    options = planned(table.scan("id > 1"))
    plan = told(options)
    change(plan)

    with pytest.raises(LanceNamespaceError):
        read_plan({**options, PLAN: packed(plan)})


@pytest.mark.parametrize(
    "change",
    [
        spoil("join", None),
        spoil("join.on", [["country"]]),
        spoil("join.on", [["nothing", "country"]]),
        spoil("join.how", "cross"),
        spoil("join.where", {"kind": "is_null", "column": "nothing"}),
        spoil("join.left.0", "nothing"),
        spoil("join.left.0", None),
        spoil("join.shown", ["nothing"]),
        spoil("sides.1.columns", ["id"]),
        spoil("tasks.0.groups.0", [[[0]]]),
        spoil("tasks.0.pieces", [[0]]),
    ],
)
def test_a_join_that_is_not_one_of_ours_is_refused(table: lp.PartitionedTable, tmp_path: Path, change: Any) -> None:
    other = lp.create_table(tmp_path / "o", pa.schema([("country", pa.string()), ("id", pa.int32())]), ["country"])
    other.append([{"country": "US", "id": 1}])
    join = table.join(other, on=["country"], suffix="_other")
    options = plan_options(join_plan(join), [SparkTask(groups=(group_of(task),)) for task in join.tasks()])
    plan = told(options)
    change(plan)

    with pytest.raises(LanceNamespaceError):
        read_plan({**options, PLAN: packed(plan)})


@pytest.mark.parametrize("secrets", ["", "{}", "[1]", '[{"a": 1}]', "[{}, {}]"])
def test_storage_options_that_are_none_are_refused_and_not_shown(table: lp.PartitionedTable, secrets: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_plan({**planned(table.scan()), SECRETS: secrets})

    assert "secret" in str(refused.value) or "can't be read" in str(refused.value)


def test_a_plan_that_would_fill_the_memory_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "_MOST_BYTES", 1_000)

    with pytest.raises(InvalidInputError, match="more than 1000 bytes"):
        read_plan({PLAN: packed([0] * 10_000)})


ATTACKS = [
    {"lancepart.request": '{"kind":"request","id":1,"op":"delete","body":{"where":[]}}'},
    {"LANCEPART.Request": '{"kind":"request","id":1,"op":"delete","body":{"where":[]}}'},
    {"lancepart.request": '{"kind":"request","id":1,"op":"drop","body":{"id":["t"]}}'},
    {"lancepart.stream": '{"mode":"truncate","query":"q"}'},
    {"lancepart.anything": "1"},
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_user_asks_no_questions(table: lp.PartitionedTable, attack: dict[str, str]) -> None:
    source = DefaultSource({"path": table.root, **attack})
    shown = spark_schema(SCHEMA)

    for ask in (
        source.schema,
        lambda: source.reader(shown),
        lambda: source.writer(shown, True),
        lambda: source.streamReader(shown),
        lambda: source.streamWriter(shown, False),
    ):
        with pytest.raises(InvalidInputError, match=r"lancepart's own"):
            ask()

    assert lp.open_table(table.root).scan().count() == 12


def test_looking_at_a_table_changes_nothing(table: lp.PartitionedTable) -> None:
    before = table.version

    with pytest.raises(InvalidInputError):
        refuse_own(["path", "Lancepart.Question"])
    assert show({"path": table.root, "partition_by": "id"})[0].names == SCHEMA.names
    assert lp.open_table(table.root).version == before
