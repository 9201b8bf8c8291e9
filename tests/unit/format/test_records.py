"""What stands in our rows of ``__manifest``: under a prefix of our own, beside what others wrote there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.format.records import (
    FILES,
    NUMBERS,
    KeyRecord,
    LeafRecord,
    Signature,
    Stats,
    VersionRecord,
    leaf_facts,
    recorded_rows,
)
from lancepart.format.rows import Row

STATS = Stats(rows=3, bytes=40, fragments=1)
SIGNED = Signature(transaction="t", operation="append", by="me")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


def table(path: Path, rows: int = 3) -> lp.PartitionedTable:
    made = lp.create_table(path, SCHEMA, ["k"])
    made.append([{"id": n, "k": "a"} for n in range(rows)])
    return made


def metadata_of(root: str, kind: str) -> list[dict[str, Any]]:
    found = lance.dataset(f"{root}/__manifest").to_table(filter=f"object_type = '{kind}'").to_pylist()
    return [json.loads(row["metadata"]) for row in found]


def rewrite(root: str, kind: str, change: Any, **columns: str) -> None:
    """Change the metadata of all rows of a kind, as another client could."""
    handle = lance.dataset(f"{root}/__manifest")
    for row in handle.to_table(filter=f"object_type = '{kind}'").to_pylist():
        text = json.dumps(change(json.loads(row["metadata"])), separators=(",", ":")).replace("'", "''")
        handle.update({"metadata": f"'{text}'", **columns}, where=f"object_id = '{row['object_id']}'")


def bare(told: dict[str, Any]) -> dict[str, Any]:
    """Metadata as it was spelled before keys had a prefix, without those that came later."""
    later = ("lancepart.version", FILES, NUMBERS)
    return {key.removeprefix("lancepart."): value for key, value in told.items() if key not in later}


@pytest.mark.parametrize(
    "record",
    [
        LeafRecord(object_id="v1$a$dataset", location="x", read_version=7, number=2, measured=7, stats=STATS),
        LeafRecord(object_id="v1$a$dataset", location="x", others={"n": "abc", "owner": "me"}),
    ],
)
def test_a_leaf_is_read_as_it_was_written(record: LeafRecord) -> None:
    assert LeafRecord.from_row(record.to_row()) == record


def test_a_version_is_read_as_it_was_written() -> None:
    record = VersionRecord(
        leaf="v1$a$dataset",
        number=3,
        read_version=2**63 + 5,
        signature=SIGNED,
        added=1,
        deleted=2,
        change=0,
        moved=((4, 5),),
        stats=STATS,
        others={"rows": "many"},
    )
    row = record.to_row()

    assert VersionRecord.from_row(row) == record
    assert VersionRecord.from_row(Row(object_id="v1$a$dataset", object_type="table_version")) is None


def test_a_key_is_read_as_it_was_written() -> None:
    record = KeyRecord(object_id="lancepart.idempotency$a$1", key="k", sequence=4, signature=SIGNED, others={"x": 1})

    assert KeyRecord.from_row(record.to_row()) == record


@pytest.mark.parametrize(
    "told",
    [
        {"n": "abc"},
        {"n": 3},
        {"n": True, "rows": 1, "bytes": 1, "fragments": 1},
        {"n": 1, "rows": "1", "bytes": 1, "fragments": 1},
        {"lancepart.n": "2"},
        {"lancepart.n": -1},
    ],
)
def test_what_is_not_ours_says_nothing_of_a_leaf(told: dict[str, Any]) -> None:
    assert leaf_facts(told) == (0, None, None)


def test_rows_are_counted_only_if_all_tell_them_of_their_version() -> None:
    good = json.dumps({"lancepart.n": 1, "lancepart.version": 7, "lancepart.rows": 3, "lancepart.bytes": 9})
    good = good.replace(" ", "")
    nested = '{"x":{"lancepart.n":1,"lancepart.version":7,"lancepart.rows":3,"lancepart.bytes":9}}'
    versions = pa.array([7, 7], pa.uint64())

    assert recorded_rows(pa.array([good, good]), versions).to_pylist() == [3, 3]
    for other in (nested, "{}", None):
        assert recorded_rows(pa.array([good, other]), versions) is None
    assert recorded_rows(pa.array([good, good]), pa.array([7, 8], pa.uint64())) is None
    assert recorded_rows(pa.array([good, good]), pa.array([7, None], pa.uint64())) is None


def test_all_that_is_ours_has_the_prefix(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    made.append([{"id": 9, "k": "a"}], idempotency_key="job")

    for kind in ("namespace", "table", "table_version"):
        for told in metadata_of(made.root, kind):
            assert all(key.startswith("lancepart.") for key in told), told


def test_properties_of_others_are_kept_by_every_write(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    rewrite(made.root, "table", lambda told: {"owner": "me", "n": "abc", "rows": 5, **told})

    made.append([{"id": 9, "k": "a"}])
    made.delete("id = 1")
    made.maintenance.compact()

    (told,) = metadata_of(made.root, "table")
    assert (told["owner"], told["n"], told["rows"]) == ("me", "abc", 5)
    assert told["lancepart.rows"] == 3
    assert sorted(made.scan().to_arrow().column("id").to_pylist()) == [0, 2, 9]


@pytest.mark.parametrize("told", [{"n": "abc"}, {"rows": "many", "bytes": None}, {"n": 7}])
def test_keys_of_others_that_look_like_ours_of_old_do_no_harm(tmp_path: Path, told: dict[str, Any]) -> None:
    made = table(tmp_path / "t")
    rewrite(made.root, "table", lambda _: told)
    rewrite(made.root, "table_version", lambda _: {"added": "x", "operation": 5})
    made = lp.open_table(made.root)

    assert made.scan().count() == 3
    assert made.inspect.partitions().column("rows").to_pylist() == [3]
    assert made.inspect.snapshots().num_rows
    made.append([{"id": 9, "k": "a"}])
    assert made.scan().count() == 4
    assert told.items() <= metadata_of(made.root, "table")[0].items()


def test_a_table_with_bare_keys_is_read_and_gets_the_prefix(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    since = made.version
    made.append([{"id": 8, "k": "b"}], idempotency_key="job")
    for kind in ("table", "table_version"):
        rewrite(made.root, kind, bare)
    made = lp.open_table(made.root)

    assert made.scan().count() == 4
    assert made.inspect.partitions().column("rows").to_pylist() == [3, 1]
    assert made.changes(since).column("id").to_pylist() == [8]
    made.append([{"id": 8, "k": "b"}], idempotency_key="job")
    made.append([{"id": 9, "k": "a"}])
    assert made.scan().count() == 5
    assert sorted(map(sorted, metadata_of(made.root, "table")))[1] == sorted(
        f"lancepart.{key}" for key in ("n", "version", "rows", "bytes", "fragments")
    )


@pytest.mark.parametrize("spelled", [lambda told: told, bare])
def test_statistics_are_not_those_of_a_version_that_another_client_pointed_to(tmp_path: Path, spelled: Any) -> None:
    made = table(tmp_path / "t")
    leaf = made.scan().plan().leaves[0]
    place = f"{made.root}/{leaf.location}"
    added = lance.fragment.write_fragments(
        pa.table({"id": [7], "k": ["a"]}), lance.dataset(place, version=leaf.read_version)
    )
    newer = lance.LanceDataset.commit(
        place, lance.LanceOperation.Append(added), read_version=leaf.read_version, detached=True
    ).version
    rewrite(made.root, "table_version", spelled)
    rewrite(made.root, "table", spelled, read_version=str(newer))
    made = lp.open_table(made.root)

    assert made.scan().count() == 4
    assert made.scan().to_arrow().num_rows == 4
    assert made.inspect.partitions().column("rows").to_pylist() == [4]
