"""Indices of a table in its unions: used where they are, for the rows that they know, and never for others."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lancedb
import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.format.numbers import FIRST
from lancepart.maintain import collect
from lancepart.read import index_parts
from tests.support.tiers import one_in
from tests.transactions.aged import grow_old

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tenant", pa.string()),
        ("body", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("n", pa.int32()),
        ("v", pa.list_(pa.float32(), 4)),
    ]
)
WORDS = ("red", "green", "blue", "plum", "pear")
DAYS = 10 * 86_400
FILTERS = {
    "BTREE": ("id", "id IN (3, 17, 41, 160, 203)"),
    "BITMAP": ("n", "n = 3"),
    "ZONEMAP": ("id", "id BETWEEN 38 AND 44"),
    "BLOOMFILTER": ("id", "id = 41"),
    "NGRAM": ("body", "contains(body, 'plum')"),
    "LABEL_LIST": ("tags", "array_has_any(tags, ['t3'])"),
}


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "tenant": f"tenant {number % 3}",
            "body": f"{WORDS[number % 5]} {WORDS[number % 4]}",
            "tags": [f"t{number % 7}"],
            "n": number % 9,
            "v": [float(number), 1.0, 0.0, float(number % 5)],
        }
        for number in range(first, last)
    ]


def table_at(path: Path, count: int = 150) -> lp.PartitionedTable:
    table = lp.create_table(str(path / "table"), SCHEMA, partition_by=["tenant"])
    table.append(rows(0, count))
    return table


def names(dataset: lance.LanceDataset) -> set[str]:
    return {index.name for index in dataset.describe_indices()}


def uses(dataset: lance.LanceDataset, where: str, name: str) -> bool:
    return f"@{name}(" in dataset.scanner(filter=where).explain_plan()


def ids(found: pa.Table) -> Counter[int]:
    return Counter(found["id"].to_pylist())


def assert_right(dataset: lance.LanceDataset, table: lp.PartitionedTable, *more: str) -> None:
    """What a dataset finds by its indices is what the table's scan finds."""
    wheres = (*more, "id = 7", "id IN (41, 60, 155, 161, 204)", "id BETWEEN 30 AND 170", "n = 3")
    for where in wheres:
        assert ids(dataset.to_table(filter=where)) == ids(table.scan(where).to_arrow()), where


@pytest.mark.parametrize("kind", one_in(3, FILTERS))
def test_indices_of_leaves_serve_in_both_unions(tmp_path: Path, kind: str) -> None:
    table = table_at(tmp_path)
    table.delete("id BETWEEN 50 AND 70")
    column, where = FILTERS[kind]
    table.maintenance.create_index(column, kind, scope="leaf", progress=False)
    table.append(rows(150, 200))
    table.delete("id = 41")
    union, published = table.to_lance(), lance.dataset(table.publish_lance().uri)

    for dataset in (union, published):
        (index,) = dataset.describe_indices()
        assert len(index.segments) == 3
        assert uses(dataset, where, f"{column}_idx")
        assert_right(dataset, table, where)


def test_an_index_leaves_the_ids_of_rows_as_they_are(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.delete("id BETWEEN 50 AND 70")
    before = table.to_lance().to_table(columns=["id"], with_row_id=True).sort_by("id")

    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)

    assert table.to_lance().to_table(columns=["id"], with_row_id=True).sort_by("id") == before
    assert table.scan().count() == before.num_rows
    assert table.changes(table.version - 1).to_arrow().num_rows == 0


def test_a_vector_index_over_the_table_serves_in_both_unions(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=2, progress=False)
    table.append(rows(150, 200))
    table.delete("id = 41")

    for dataset in (table.to_lance(), lance.dataset(table.publish_lance().uri)):
        near = {"column": "v", "q": np.array([40.2, 1, 0, 1], np.float32), "k": 3, "nprobes": 2}
        exact = table.search(near["q"], "v", k=3, exact=True).to_arrow()
        assert dataset.to_table(nearest=near)["id"].to_pylist() == exact["id"].to_pylist()
        assert "ANNSubIndex: name=v_idx" in dataset.scanner(nearest=near).explain_plan()
        last = {"column": "v", "q": np.array([180.0, 1, 0, 0], np.float32), "k": 1, "nprobes": 2}
        assert dataset.to_table(nearest=last)["id"].to_pylist() == [180]


def test_texts_are_found_by_the_index_over_the_table(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("body", "FTS", scope="table", progress=False)
    uri = table.publish_lance().uri
    table.append([{"id": 900, "tenant": "tenant 1", "body": "violet", "tags": [], "n": 0, "v": [0.0] * 4}])
    wanted = {row["id"] for row in table.search("plum", "body", k=500).to_list()}

    for dataset in (table.to_lance(), lance.dataset(table.publish_lance().uri)):
        assert set(dataset.to_table(full_text_query="plum", limit=500)["id"].to_pylist()) == wanted
        assert dataset.to_table(full_text_query="violet")["id"].to_pylist() == [900]
    assert set(lance.dataset(uri).to_table(full_text_query="plum", limit=500)["id"].to_pylist()) == wanted


@pytest.mark.slow
def test_rows_that_move_change_or_come_back_are_found_once(tmp_path: Path) -> None:
    """By whichever index knows them, or by none: after updates, compaction, upkeep, and rollbacks in between."""
    table = table_at(tmp_path)
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.maintenance.create_index("n", "BITMAP", scope="leaf", progress=False)
    version = table.version

    def check() -> None:
        assert_right(table.to_lance(), table)
        assert_right(lance.dataset(table.publish_lance().uri), table)

    check()
    table.update({"n": "3"}, "id BETWEEN 30 AND 60")
    check()
    table.append(rows(150, 180))
    table.delete("id IN (41, 155)")
    check()
    table.maintenance.optimize_indices(progress=False)
    check()
    table.maintenance.compact(progress=False)
    check()
    assert names(table.to_lance()) == {"id_idx", "n_idx"}
    table.maintenance.rollback(version)
    check()
    table.maintenance.optimize_indices(progress=False)
    table.delete("id = 60")
    check()
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.maintenance.create_index("n", "BITMAP", scope="leaf", progress=False)
    check()


def test_rows_that_come_back_are_not_lost_to_an_index_that_never_knew_them(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    whole = table.version
    table.delete("id BETWEEN 30 AND 60")
    table.publish_lance()
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=1, progress=False)
    assert names(table.publish_lance()) == {"id_idx", "v_idx"}

    table.maintenance.rollback(whole)

    near = {"column": "v", "q": np.array([40.0, 1, 0, 0], np.float32), "k": 1}
    for dataset in (table.to_lance(), lance.dataset(table.publish_lance().uri)):
        assert_right(dataset, table)
        assert dataset.to_table(nearest=near)["id"].to_pylist() == [40]


@pytest.mark.slow
def test_a_widened_column_is_not_looked_up_in_an_index_of_narrow_values(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("n", "BTREE", scope="leaf", progress=False)
    assert names(table.to_lance()) == {"n_idx"}

    table.widen_column("n", pa.int64())

    assert names(table.to_lance()) == set()
    assert_right(table.to_lance(), table, f"n > {1 << 40}")
    assert_right(lance.dataset(table.publish_lance().uri), table)


def test_a_renamed_column_keeps_its_index(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("n", "BTREE", scope="leaf", progress=False)
    table.publish_lance()
    table.rename_column("n", "other")

    for dataset in (table.to_lance(), lance.dataset(table.publish_lance().uri)):
        assert uses(dataset, "other = 3", "n_idx")
        assert ids(dataset.to_table(filter="other = 3")) == ids(table.scan("other = 3").to_arrow())


def test_a_filtered_union_uses_indices_of_more_rows(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)

    some = table.to_lance("n < 5 AND tenant <> 'tenant 1'")

    assert uses(some, "id BETWEEN 30 AND 60", "id_idx")
    expected = table.scan("n < 5 AND tenant <> 'tenant 1' AND id BETWEEN 30 AND 60").to_arrow()
    assert ids(some.to_table(filter="id BETWEEN 30 AND 60")) == ids(expected)


def test_publishing_follows_what_is_created_and_dropped(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    assert names(table.publish_lance()) == set()
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    assert names(table.publish_lance()) == {"id_idx"}
    table.maintenance.create_index("id", "BITMAP", scope="leaf", progress=False)
    (index,) = table.publish_lance().describe_indices()
    assert index.index_type == "Bitmap"
    version = table.publish_lance().version
    assert table.publish_lance().version == version
    table.maintenance.drop_index("id_idx", progress=False)
    assert names(table.publish_lance()) == set()


def test_indices_of_other_clients_stay_and_keep_their_names(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    uri = table.publish_lance().uri
    lance.dataset(uri).create_scalar_index("id", "BTREE", name="id_idx")
    lance.dataset(uri).create_scalar_index("n", "BTREE", name="theirs")
    table.maintenance.create_index("id", "BITMAP", scope="leaf", progress=False)
    table.append(rows(150, 200))

    found = table.publish_lance()

    kinds = {index.name: index.index_type for index in found.describe_indices()}
    assert kinds == {"id_idx": "BTree", "theirs": "BTree"}
    assert_right(lance.dataset(uri), table)


def test_a_number_that_another_client_used_is_not_taken_for_another_fragment(tmp_path: Path) -> None:
    """Rows that LanceDB added were indexed there under the number that the table gives to its next fragment."""
    table = table_at(tmp_path, 30)
    uri = table.publish_lance().uri
    theirs = lancedb.connect(tmp_path / "table").open_table("union")
    theirs.add(pa.Table.from_pylist([{**row, "n": 77} for row in rows(1000, 1010)], SCHEMA))
    lance.dataset(uri).create_scalar_index("n", "BTREE", name="theirs")
    number = max(part.fragment_id for part in lance.dataset(uri).get_fragments())
    table.publish_lance()
    table.append(rows(30, 60))

    table.publish_lance()

    assert number >= FIRST
    assert_right(lance.dataset(uri), table, "n = 77")


def test_lancedb_uses_the_indices_of_a_published_union(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=2, progress=False)
    table.publish_lance()

    theirs = lancedb.connect(tmp_path / "table").open_table("union")

    assert {index.name for index in theirs.list_indices()} == {"id_idx", "v_idx"}
    assert theirs.search().where("id = 41").to_arrow()["id"].to_pylist() == [41]
    query = theirs.search([40.2, 1.0, 0.0, 0.0], vector_column_name="v").limit(1)
    assert query.to_arrow()["id"].to_pylist() == [40]
    assert "v_idx" in query.explain_plan()


@pytest.mark.slow
def test_collectors_keep_the_indices_of_a_published_union(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=2, progress=False)
    uri = table.publish_lance().uri
    table.append(rows(150, 200))
    table.maintenance.compact(progress=False)
    for name in ("id_idx", "v_idx"):
        table.maintenance.drop_index(name, progress=False)
    for _ in range(2):
        grow_old(tmp_path / "table", DAYS)
        collect.expire(table._manifest, timedelta(0), progress=False)
        collect.remove_orphans(table._manifest, timedelta(0), progress=False)

    old = lance.dataset(uri)
    assert names(old) == {"id_idx", "v_idx"}
    assert old.to_table(filter="id = 41")["id"].to_pylist() == [41]
    assert old.to_table(nearest={"column": "v", "q": np.array([40.2, 1, 0, 0], np.float32), "k": 1}).num_rows == 1
    assert table.inspect.broken_unions().num_rows == 0

    table.publish_lance()
    for _ in range(2):
        grow_old(tmp_path / "table", DAYS)
        collect.expire(table._manifest, timedelta(0), progress=False)
        collect.remove_orphans(table._manifest, timedelta(0), progress=False)
    assert not list((tmp_path / "table").glob("*dataset/_indices/*/*"))
    assert not list((tmp_path / "table").glob("table_indices/*"))


def test_a_check_names_an_index_that_a_published_union_has_lost(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.publish_lance()
    (first, *_) = sorted((tmp_path / "table").glob("*dataset/_indices/*"))
    for file in first.iterdir():
        file.unlink()

    (fault,) = table.inspect.broken_unions().to_pylist()

    assert first.name in fault["error"]


def test_rows_of_an_indexed_leaf_are_taken_by_their_ids(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.append(rows(150, 200))
    found = table.scan("id IN (7, 41, 160)", columns=["id"], with_row_id=True).to_arrow()

    taken = table.take(found["_rowid"])

    assert taken["id"].to_pylist() == found["id"].to_pylist()
    with table.transaction() as inside:
        inside.append(rows(200, 210))
        assert ids(inside.scan("id IN (7, 41, 205)").to_arrow()) == Counter([7, 41, 205])


def test_of_very_many_leaves_the_largest_have_their_indices_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(tmp_path)
    table.append([{**row, "tenant": "tenant 2"} for row in rows(150, 200)])
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    monkeypatch.setattr(index_parts, "MOST_LEAVES", 1)

    for dataset in (table.to_lance(), lance.dataset(table.publish_lance().uri)):
        (index,) = dataset.describe_indices()
        assert (len(index.segments), index.num_rows_indexed) == (1, 100)
        assert_right(dataset, table)
