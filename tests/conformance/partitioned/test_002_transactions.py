"""002, "Transaction": what a single partition, the weak mode, and strong reads after an append give."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from tests.conformance.partitioned.appendix import DAY, SCHEMA, events, ids
from tests.support.catalogs import Place

DETACHED = 2**63


@pytest.fixture
def strong(local: Place) -> lp.PartitionedTable:
    return lp.create_table(local.root, SCHEMA, ["country"])


@pytest.fixture
def weak(local: Place) -> lp.PartitionedTable:
    return lp.create_table(local.root, SCHEMA, ["country"], transactions="weak")


def _main(table: lp.PartitionedTable, country: str) -> lance.LanceDataset:
    (leaf,) = table.scan(f"country = '{country}'").plan().leaves
    return lance.dataset(f"{table.root}/{leaf.location}")


def test_single_partition_a_leaf_is_an_independent_table_with_its_own_history(weak: lp.PartitionedTable) -> None:
    weak.append(events((1, DAY, "US"), (2, DAY, "FR")))
    weak.append(events((3, DAY, "US")))

    assert [(_main(weak, country).version, _main(weak, country).count_rows()) for country in ("US", "FR")] == [
        (2, 2),
        (1, 1),
    ]


def test_weak_writers_commit_to_main_of_each_leaf(weak: lp.PartitionedTable) -> None:
    answer = weak.append(events((1, DAY, "US"), (2, DAY, "FR")))
    weak.append(events((3, DAY, "US"), (4, DAY, None)))

    assert answer is None
    assert sorted(_main(weak, "US").to_table().column("id").to_pylist()) == [1, 3]
    assert all(leaf.read_version is None for leaf in weak.scan().plan().leaves)


def test_weak_readers_read_the_latest_of_main_whoever_wrote_it(weak: lp.PartitionedTable) -> None:
    weak.append(events((1, DAY, "US")))
    main = _main(weak, "US")

    lance.write_dataset(events((2, DAY, "US")).cast(main.schema), main, mode="append")

    assert ids(weak) == [1, 2]
    assert weak.scan().count() == 2


def test_weak_appends_and_scans_like_strong(tmp_path: Path) -> None:
    tables = [lp.create_table(tmp_path / mode, SCHEMA, ["country"], transactions=mode) for mode in ("strong", "weak")]
    for table in tables:
        table.append(events((1, DAY, "US"), (2, DAY, None)))
        table.update_spec(["year(event_date)"])
        table.append(events((3, DAY, "US"), (4, None, "FR")))
        table.rename_column("country", "land")

    one, other = tables
    for where in (None, "land = 'US'", "event_date IS NULL", "id > 1 AND land IS NULL"):
        assert ids(one, where) == ids(other, where)
        assert [leaf.values for leaf in one.scan(where).plan().leaves] == [
            leaf.values for leaf in other.scan(where).plan().leaves
        ]


def test_a_table_without_our_properties_is_weak_unless_it_has_read_versions(local: Place) -> None:
    from tests.conformance.partitioned import appendix

    appendix.write_manifest(local.root, [])
    assert lp.open_table(local.root).metadata.transactions == "strong"
    lance.dataset(f"{local.root}/__manifest").drop_columns(["read_version"])
    assert lp.open_table(local.root).metadata.transactions == "weak"


def test_an_unknown_mode_is_refused(local: Place) -> None:
    with pytest.raises(InvalidInputError, match="'strong' or 'weak'"):
        lp.create_table(local.root, SCHEMA, ["country"], transactions="acid")


def test_strong_writes_are_detached_and_invisible_in_main(place: Place) -> None:
    strong = lp.create_table(place.root, SCHEMA, ["country"], storage_options=place.storage_options)
    strong.append(events((1, DAY, "US")))
    strong.append(events((2, DAY, "US")))

    (leaf,) = strong.scan().plan().leaves
    main = lance.dataset(place.uri(leaf.location), storage_options=place.storage_options)
    assert main.to_table().column("id").to_pylist() == [1]
    assert leaf.read_version is not None
    assert leaf.read_version >= DETACHED
    assert ids(strong) == [1, 2]


def test_strong_an_append_to_many_partitions_is_one_commit_of_the_manifest(strong: lp.PartitionedTable) -> None:
    strong.append(events((1, DAY, "US")))
    before = strong.version

    after = strong.append(events((2, DAY, "US"), (3, DAY, "FR"), (4, DAY, None)))

    assert after == strong.version == before + 1


def test_strong_a_reader_stays_at_the_snapshot_it_began_with(strong: lp.PartitionedTable) -> None:
    strong.append(events((1, DAY, "US"), (2, DAY, "FR")))
    then = strong.version
    scan = strong.scan()

    strong.append(events((3, DAY, "US"), (4, DAY, "DE")))

    assert sorted(scan.to_arrow().column("id").to_pylist()) == [1, 2]
    past = lp.open_table(strong.root, version=then)
    assert ids(past) == [1, 2]
    assert ids(strong) == [1, 2, 3, 4]


def test_strong_every_version_of_a_leaf_stays_recorded(strong: lp.PartitionedTable, local: Place) -> None:
    for number in range(3):
        strong.append(events((number, DAY, "US")))

    manifest = lance.dataset(local.uri("__manifest"))
    rows = manifest.to_table(filter="object_type = 'table_version'").sort_by("object_id").to_pylist()
    (leaf,) = strong.scan().plan().leaves
    assert [row["object_id"] for row in rows] == [f"{leaf.object_id}${n}" for n in (1, 2, 3)]
    for count, row in enumerate(rows, 1):
        at = lance.dataset(local.uri(leaf.location), version=row["read_version"])
        assert at.count_rows() == count


def test_strong_the_snapshot_number_is_the_manifests_version(strong: lp.PartitionedTable, local: Place) -> None:
    answer = strong.append(events((1, DAY, "US")))

    assert answer == lance.dataset(local.uri("__manifest")).version
