"""Unions on disk: other clients read them, publishing again changes what changed, and collectors keep them whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    UnsupportedOperationError,
)
from lancepart.maintain import collect, publish_union
from lancepart.read.published_union import Publishing
from lancepart.storage import history, published
from tests.support import layouts
from tests.support.catalogs import Place
from tests.support.countries import SCHEMA, rows
from tests.support.tiers import one_in
from tests.transactions.aged import grow_old

NOW = timedelta(0)


def table_at(place: Place, **options: Any) -> lp.PartitionedTable:
    table = lp.create_table(place.root, SCHEMA, ["country"], storage_options=place.storage_options, **options)
    table.append(rows(0))
    table.append(rows(6))
    return table


def assert_same(dataset: lance.LanceDataset, table: lp.PartitionedTable, place: Place) -> None:
    """A dataset, opened again by nothing but its address, holds what the scan finds."""
    again = lance.dataset(dataset.uri, storage_options=place.storage_options)
    found = again.to_table(blob_handling="all_binary").sort_by("id")
    assert found.to_pylist() == table.scan().to_arrow().sort_by("id").to_pylist()
    assert again.count_rows() == found.num_rows


def row_ids(dataset: lance.LanceDataset) -> dict[int, int]:
    found = dataset.to_table(columns=["id"], with_row_id=True)
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


CLIENTS = """
import json, sys
import lance, lancedb
root, options = sys.argv[1], json.loads(sys.argv[2])
plain = lance.dataset(f"{root}/union.lance", storage_options=options or None)
database = lancedb.connect(root, storage_options=options or None)
table = database.open_table("union")
print(json.dumps({
    "names": database.table_names(),
    "pylance": plain.to_table().sort_by("id").to_pylist(),
    "filtered": plain.to_table(filter="country = 'US'", columns=["id"])["id"].to_pylist(),
    "lancedb": table.to_arrow().sort_by("id").to_pylist(),
    "counted": table.count_rows("n > 10"),
}))
"""


def test_lancedb_and_pylance_read_it_in_another_process(place: Place) -> None:
    table = table_at(place)
    table.delete("id = 4")
    table.publish_lance()
    table.append(rows(12))
    table.publish_lance()

    done = subprocess.run(
        [sys.executable, "-c", CLIENTS, place.root, json.dumps(dict(place.options))],
        capture_output=True,
        text=True,
        check=True,
    )

    found = json.loads(done.stdout.splitlines()[-1])
    expected = table.scan().to_arrow().sort_by("id").to_pylist()
    assert found["pylance"] == found["lancedb"] == expected
    assert found["names"] == ["union"]
    assert sorted(found["filtered"]) == [row["id"] for row in expected if row["country"] == "US"]
    assert found["counted"] == table.scan("n > 10").count()


def test_publishing_again_changes_only_the_leaves_that_changed(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    first = table.publish_lance()
    before = row_ids(first)
    runs: list[Publishing] = []
    plain = Publishing.publish

    def noted(self: Publishing, *arguments: Any) -> Any:
        runs.append(self)
        return plain(self, *arguments)

    monkeypatch.setattr(Publishing, "publish", noted)
    table.delete("id = 0")
    table.append([{"id": 20, "country": "US", "n": 1}, {"id": 21, "country": "JP", "n": 1}])
    second = table.publish_lance()

    assert [run.made_again for run in runs] == [2]
    assert second.uri == first.uri
    assert second.version > first.version
    assert_same(second, table, local)
    after = row_ids(second)
    assert {key: after[key] for key in after if key < 20} == {key: before[key] for key in before if key}
    assert first.count_rows() == 12
    assert table.publish_lance().version == second.version


def test_an_index_of_the_dataset_outlives_publishing(local: Place) -> None:
    table = table_at(local)
    version = table.version
    table.publish_lance().create_scalar_index("id", "BTREE")
    table.delete("id = 3")
    table.append(rows(12))
    changed = table.publish_lance()

    assert [index.name for index in changed.describe_indices()] == ["id_idx"]
    assert "ScalarIndexQuery" in changed.scanner(filter="id = 5").explain_plan()
    assert [changed.count_rows(filter=f"id = {key}") for key in (2, 3, 5, 13)] == [1, 0, 1, 1]

    table.maintenance.rollback(version)
    table.publish_lance()
    back = lance.dataset(changed.uri)
    assert [back.count_rows(filter=f"id = {key}") for key in (2, 3, 5, 13)] == [1, 1, 1, 0]
    assert_same(back, table, local)


def test_rows_that_come_back_are_found_by_an_index_built_without_them(local: Place) -> None:
    table = table_at(local)
    version = table.version
    table.delete("id = 3")
    table.publish_lance().create_scalar_index("id", "BTREE")
    table.maintenance.rollback(version)

    again = table.publish_lance()

    assert again.count_rows(filter="id = 3") == 1
    assert_same(again, table, local)


def test_columns_that_change_take_the_datasets_indices_with_them(local: Place) -> None:
    table = table_at(local)
    table.publish_lance().create_scalar_index("n", "BTREE")
    table.rename_column("n", "m")
    table.add_column(pa.field("n", pa.string()))
    table.append([{"id": 20, "country": "JP", "m": 7, "n": "x"}])

    again = table.publish_lance()

    assert again.describe_indices() == []
    assert again.schema.names == ["id", "country", "m", "n"]
    assert_same(again, table, local)


@pytest.mark.parametrize("transactions", ["strong", "weak"])
@pytest.mark.parametrize(
    "other",
    [
        lambda table: (table.drop_column("n"), table.add_column(pa.field("n", pa.int32()))),
        lambda table: (table.rename_column("n", "m"), table.drop_column("m"), table.add_column(SCHEMA.field("n"))),
    ],
    ids=["again", "renamed"],
)
def test_a_column_that_took_the_name_of_another_shows_none_of_its_values(
    local: Place, transactions: str, other: Any
) -> None:
    table = table_at(local, transactions=transactions)
    table.publish_lance().create_scalar_index("n", "BTREE")
    other(table)
    table.append(pa.table([[20], ["JP"], [4]], schema=SCHEMA))

    again = table.publish_lance()

    assert_same(again, table, local)
    assert again.to_table(filter="n = 4", columns=["id"]).to_pylist() == [{"id": 20}]
    assert table.publish_lance().count_rows(filter="n IS NULL") == 12


def test_a_field_that_took_the_place_of_another_shows_none_of_its_values(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.int32())])
    table = lp.create_table(local.root, schema, ["id"])
    table.append([{"id": 1, "a": 10, "b": 20}])
    table.publish_lance()
    table.drop_column("a")
    table.rename_column("b", "a")
    table.add_column(pa.field("b", pa.int32()))

    again = table.publish_lance()

    assert again.to_table().to_pylist() == [{"id": 1, "a": 20, "b": None}]


def test_a_widened_column_is_written_once_for_each_leaf(local: Place) -> None:
    table = table_at(local)
    table.publish_lance()
    table.widen_column("n", pa.int64())
    table.append([{"id": 20, "country": "JP", "n": 2**40}])
    widened = table.publish_lance()
    own = {file.path for part in widened.get_fragments() for file in part.metadata.files if file.base_id is None}
    table.append([{"id": 21, "country": "JP", "n": 1}])

    again = table.publish_lance()

    assert own
    assert own == {file.path for part in again.get_fragments() for file in part.metadata.files if file.base_id is None}
    assert_same(again, table, local)


@pytest.mark.parametrize("layout", one_in(2, layouts.LAYOUTS))
def test_every_layout_is_published(local: Place, tmp_path: Path, layout: str) -> None:
    table = layouts.make(layout, local, SCHEMA, "country")
    table.append(rows(0))
    table.delete("id = 4")
    path = tmp_path / "elsewhere"
    assert_same(table.publish_lance(path), table, local)
    table.append(rows(6))
    table.delete("id = 1")

    again = table.publish_lance(path)

    assert_same(again, table, local)
    table.unpublish_lance(path)
    assert not path.exists()


def test_a_hive_style_root_holds_no_union(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"], layout="hive")

    with pytest.raises(UnsupportedOperationError, match="give a path elsewhere"):
        table.publish_lance()


def test_weak_transactions_are_published_too(local: Place) -> None:
    table = table_at(local, transactions="weak")
    table.publish_lance()
    table.append(rows(12))
    table.delete("id = 2")

    assert_same(table.publish_lance(), table, local)
    assert table.inspect.unions().num_rows == 1


def test_blobs_are_read_where_they_are(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), lance.blob_field("b")])
    table = lp.create_table(local.root, schema, ["bucket(2, id)"])
    for first in (0, 2):
        values = lance.blob_array([b"small", b"x" * 300_000])
        table.append(pa.table([pa.array([first, first + 1]), values], schema=schema))
        dataset = table.publish_lance()

        found = dataset.to_table(blob_handling="all_binary").sort_by("id")["b"].to_pylist()
        assert found == [b"small", b"x" * 300_000] * (first // 2 + 1)


def test_a_collector_keeps_what_a_published_dataset_reads(local: Place) -> None:
    table = table_at(local)
    table.delete("id = 4")
    before = table.scan().to_arrow().sort_by("id").to_pylist()
    dataset = table.publish_lance()
    table.overwrite(rows(30))
    table.maintenance.compact(progress=False)
    table.delete("id = 31")
    grow_old(Path(local.root), 10 * 86_400)

    for action in (collect.expire, collect.remove_orphans):
        assert action(table._manifest, NOW, progress=False).kept == ()

    again = lance.dataset(dataset.uri)
    assert again.to_table().sort_by("id").to_pylist() == before
    table.publish_lance()
    grow_old(Path(local.root), 10 * 86_400)
    assert collect.expire(table._manifest, NOW, progress=False).removed_files
    assert_same(lance.dataset(dataset.uri), table, local)


def test_a_dataset_elsewhere_is_kept_until_it_is_unpublished(local: Place, tmp_path: Path) -> None:
    table = table_at(local)
    path = tmp_path / "shared" / "events.lance"
    dataset = table.publish_lance(path)
    (shown,) = table.inspect.unions().to_pylist()
    assert shown["uri"] == str(path)
    assert shown["pinned"] == [shown["snapshot"]]
    table.delete("true")
    grow_old(Path(local.root), 10 * 86_400)
    collect.expire(table._manifest, NOW, progress=False)
    assert lance.dataset(dataset.uri).count_rows() == 12

    table.unpublish_lance(path)

    assert not path.exists()
    assert table.inspect.unions().num_rows == 0
    assert history.tags(table._manifest) == {}
    assert collect.expire(table._manifest, NOW, progress=False).removed_files
    with pytest.raises(InvalidInputError, match="nothing is published"):
        table.unpublish_lance(path)


def test_a_dataset_that_was_removed_by_hand_is_shown_and_forgotten(local: Place, tmp_path: Path) -> None:
    table = table_at(local)
    path = tmp_path / "gone.lance"
    table.publish_lance(path)
    shutil.rmtree(path)

    (shown,) = table.inspect.unions().to_pylist()
    assert shown["snapshot"] is None
    assert shown["pinned"]
    table.unpublish_lance(path)
    assert table.inspect.unions().num_rows == 0
    assert history.tags(table._manifest) == {}


def test_the_pins_are_no_tags_of_the_users(local: Place) -> None:
    table = table_at(local)
    table.publish_lance()

    assert table.tags.list() == {}
    assert len(history.tags(table._manifest)) == 1
    (name,) = history.tags(table._manifest)
    with pytest.raises(InvalidInputError, match="lancepart's own"):
        table.tags.delete(name)
    with pytest.raises(InvalidInputError, match="lancepart's own"):
        table.tags.create("lancepart.mine", table.version)


def test_what_was_not_published_is_never_replaced(local: Place, tmp_path: Path) -> None:
    table = table_at(local)
    foreign = tmp_path / "foreign.lance"
    lance.write_dataset(rows(0), foreign)
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.txt").write_text("mine")
    leaf = table.inspect.partitions()["location"][0].as_py()

    with pytest.raises(InvalidInputError, match="not published by this table"):
        table.publish_lance(foreign)
    with pytest.raises(InvalidInputError, match="not published by this table"):
        table.unpublish_lance(foreign)
    with pytest.raises(InvalidInputError, match="holds files that this table did not publish"):
        table.publish_lance(files)
    with pytest.raises(InvalidInputError, match="inside the table's own files"):
        table.publish_lance(f"{local.root}/{leaf}")
    for above in (local.root, os.path.dirname(local.root)):
        with pytest.raises(InvalidInputError, match="or one above it"):
            table.publish_lance(above)
    with pytest.raises(UnsupportedOperationError, match="not in the store"):
        table.publish_lance("s3://bucket/union")
    with pytest.raises(UnsupportedOperationError, match="open at snapshot"):
        lp.open_table(local.root, version=table.version).publish_lance()
    assert lance.dataset(foreign).count_rows() == 6
    assert (files / "notes.txt").exists()


def test_a_table_that_moved_publishes_all_of_it_again(local: Place, tmp_path: Path) -> None:
    table = table_at(local)
    table.publish_lance()
    moved = Place(str(tmp_path / "moved"))
    shutil.move(local.root, moved.root)
    table = lp.open_table(moved.root)
    (shown,) = table.inspect.unions().to_pylist()
    assert shown["uri"] == f"{moved.root}/union.lance"

    table.append(rows(12))

    assert_same(table.publish_lance(), table, moved)


def test_of_two_publishers_both_leave_a_whole_dataset(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    table.publish_lance()
    other, plain = lp.open_table(local.root), Publishing.publish
    turns = []

    def interrupted(self: Publishing, *arguments: Any) -> Any:
        turns.append(len(turns))
        if len(turns) == 1:
            other.append(rows(18))
            other.publish_lance()
            other.append(rows(24))
        return plain(self, *arguments)

    monkeypatch.setattr(Publishing, "publish", interrupted)
    table.append(rows(12))
    dataset = table.publish_lance()

    assert len(turns) == 3
    assert_same(dataset, table, local)
    (shown,) = table.inspect.unions().to_pylist()
    assert shown["pinned"] == [shown["snapshot"]]


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_publisher_that_another_overtakes_leaves_the_newer_dataset_and_its_tag(
    local: Place, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The other one removes the tag of the older snapshot, before this one is done, or while it removes tags itself."""
    table, other = table_at(local), lp.open_table(local.root)
    table.publish_lance()
    plain, delete, turns = Publishing.publish, history.delete_tag, []

    def overtake() -> None:
        if not turns:
            turns.append(when)
            other.append(rows(18))
            other.publish_lance()

    def watched(self: Publishing, *arguments: Any) -> Any:
        done = plain(self, *arguments)
        if when == "before":
            overtake()
        return done

    def deleted(*arguments: Any) -> None:
        if when == "between":
            overtake()
        delete(*arguments)

    monkeypatch.setattr(Publishing, "publish", watched)
    monkeypatch.setattr(history, "delete_tag", deleted)
    table.append(rows(12))
    dataset = table.publish_lance()

    assert turns == [when]
    assert_same(lance.dataset(dataset.uri), table, local)
    (shown,) = table.inspect.unions().to_pylist()
    assert shown["pinned"] == [shown["snapshot"]]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_of_two_that_make_a_dataset_one_updates_that_of_the_other(
    local: Place, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Another one makes it before this one does, or in the middle of it: Lance finds no version 0 to go on from."""
    table, other = table_at(local), lp.open_table(local.root)
    create, found, turns = published.create, published.find, []

    def overtaken(*arguments: Any) -> Any:
        if not turns:
            turns.append(when)
            other.append(rows(18))
            other.publish_lance()
            if when == "meanwhile":
                monkeypatch.setattr(published, "find", lambda *_: monkeypatch.setattr(published, "find", found))
                monkeypatch.setattr(lance.LanceDataset, "commit", failing)
        return create(*arguments)

    def failing(*_: Any, **__: Any) -> Any:
        monkeypatch.setattr(lance.LanceDataset, "commit", commit)
        raise OSError("Dataset at path union.lance/_versions/0.manifest was not found")

    commit = lance.LanceDataset.commit
    monkeypatch.setattr(published, "create", overtaken)
    dataset = table.publish_lance()

    assert turns == [when]
    assert_same(lance.dataset(dataset.uri), table, local)
    (shown,) = table.inspect.unions().to_pylist()
    assert shown["pinned"] == [shown["snapshot"]]


def test_a_publisher_whose_place_is_given_up_says_so(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table, plain = table_at(local), Publishing.publish
    table.publish_lance()

    def interrupted(self: Publishing, *arguments: Any) -> Any:
        done = plain(self, *arguments)
        lp.open_table(local.root).unpublish_lance()
        return done

    monkeypatch.setattr(Publishing, "publish", interrupted)
    table.append(rows(12))
    with pytest.raises(ConcurrentModificationError, match="unpublished meanwhile"):
        table.publish_lance()


def test_old_versions_of_a_dataset_and_their_own_files_go(local: Place) -> None:
    table = table_at(local)
    table.delete("id = 4")
    table.publish_lance()
    table.delete("id = 5")
    table.publish_lance()
    union = Path(local.root) / publish_union.UNION_DIRECTORY
    grow_old(union, 2 * 86_400)
    before = sum(1 for _ in union.rglob("*.*"))
    table.append(rows(12))

    dataset = table.publish_lance()

    assert sum(1 for _ in union.rglob("*.*")) < before
    assert_same(dataset, table, local)


@pytest.mark.parametrize("text", ["", "union.lance", "[1]", '{"path": null}'])
def test_a_property_of_another_client_that_names_no_union_is_named(local: Place, text: str) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"])
    table._manifest.set_properties({"lancepart.union.other": text})

    with pytest.raises(InvalidTableStateError, match=r"lancepart\.union\.other"):
        table.inspect.unions()
