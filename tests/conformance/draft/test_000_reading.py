"""Document 000: its appendices as they stand, and the read columns."""

from __future__ import annotations

import json
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeNamespaceRequest

import lancepart as lp
from lancepart.errors import CommitConflictError, InvalidTableStateError, UnsupportedOperationError
from tests.conformance.draft import appendix
from tests.conformance.draft.appendix import DAY, LOCATIONS, V1_LEAF, V2_LEAF, ids
from tests.support.catalogs import Place


def opened(local: Place, *, pointers: bool = True, **read: Any) -> lp.PartitionedTable:
    appendix.write_leaves(local.root)
    appendix.write_manifest(local.root, appendix.appendix_c(**read), pointers=pointers)
    return lp.open_table(local.root)


def test_appendices_a_to_c_open_and_answer(local: Place) -> None:
    table = opened(local)

    assert ids(table) == [1, 2, 3, 4, 5, 11, 12, 13]
    assert [spec.id for spec in table.specs] == [1, 2]
    assert table.schema == appendix.SCHEMA
    assert table.scan().count() == 8


def test_appendix_e_finds_both_leaves_and_filters_the_rest_in_them(local: Place) -> None:
    scan = opened(local).scan("event_date = '2025-12-10' AND country = 'US'")

    found = [(leaf.object_id, leaf.location, leaf.read_version) for leaf in scan.plan().leaves]

    assert found == [(V1_LEAF, LOCATIONS[V1_LEAF], 5), (V2_LEAF, LOCATIONS[V2_LEAF], 3)]
    assert "SELECT object_id, location, read_version, read_branch, read_tag\nFROM __manifest" in scan.explain()
    assert "partition_field_event_date = DATE '2025-12-10'" in scan.explain()
    assert "partition_field_event_year = 2025 AND partition_field_country = 'US'" in scan.explain()
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [1, 3, 5, 11]


@pytest.mark.parametrize(
    ("where", "leaves"),
    [
        ("event_date = '2025-12-11'", [V2_LEAF]),
        ("event_date >= '2026-01-01'", []),
        ("country = 'FR'", [V1_LEAF]),
        ("event_date < '2025-06-01' AND country <> 'US'", []),
    ],
)
def test_every_spec_version_is_pruned_by_its_own_expressions(local: Place, where: str, leaves: list[str]) -> None:
    assert [leaf.object_id for leaf in opened(local).scan(where).plan().leaves] == leaves


def test_read_version_alone_is_a_version_of_main(local: Place) -> None:
    assert ids(opened(local, v1={"read_version": 2})) == [1, 2, 11, 12, 13]


def branched(local: Place) -> int:
    """A branch of v1's leaf from its second version, with a row of its own; its version."""
    appendix.write_leaves(local.root)
    leaf = lance.dataset(f"{local.root}/{LOCATIONS[V1_LEAF]}")
    branch = leaf.create_branch("dev", 2)
    return int(lance.write_dataset(appendix.events((77, DAY, "US")), branch, mode="append").version)


def test_read_branch_and_read_version_are_a_version_of_that_branch(local: Place) -> None:
    version = branched(local)
    rows = appendix.appendix_c(v1={"read_version": version, "read_branch": "dev"})
    appendix.write_manifest(local.root, rows)
    table = lp.open_table(local.root)

    assert ids(table, "event_date = '2025-12-10'") == [1, 2, 11, 77]

    with table.transaction() as changes:
        changes.delete("id IN (1, 77)")
    assert ids(table, "event_date = '2025-12-10'") == [2, 11]
    row = pointers(local)[V1_LEAF]
    assert (row["read_branch"], row["read_tag"]) == ("dev", None)
    assert ids(lp.open_table(local.root, version=2)) == [1, 2, 11, 12, 13, 77]


def test_read_tag_alone_is_the_version_that_the_tag_names(local: Place) -> None:
    branched(local)
    leaf = lance.dataset(f"{local.root}/{LOCATIONS[V1_LEAF]}")
    leaf.tags.create("blessed", 3)
    leaf.tags.create("branched", ("dev", 3))
    appendix.write_manifest(local.root, appendix.appendix_c(v1={"read_tag": "blessed"}))

    assert ids(lp.open_table(local.root)) == [1, 2, 3, 11, 12, 13]


def test_a_tag_may_name_a_version_of_a_branch(local: Place) -> None:
    version = branched(local)
    lance.dataset(f"{local.root}/{LOCATIONS[V1_LEAF]}").tags.create("branched", ("dev", version))
    appendix.write_manifest(local.root, appendix.appendix_c(v1={"read_tag": "branched"}))

    assert ids(lp.open_table(local.root)) == [1, 2, 11, 12, 13, 77]


def test_all_null_is_the_latest_of_main(local: Place) -> None:
    assert ids(opened(local, v1={}, v2={})) == [1, 2, 3, 4, 5, 6, 11, 12, 13]


def test_without_the_columns_the_latest_of_main_is_read_and_written(local: Place) -> None:
    appendix.write_leaves(local.root)
    appendix.write_manifest(local.root, appendix.appendix_c(v1={}, v2={}), pointers=False)
    table = lp.open_table(local.root)

    assert ids(table) == [1, 2, 3, 4, 5, 6, 11, 12, 13]
    assert table.append(appendix.events((20, DAY, "US"), (21, DAY, "DE"))) is None
    assert ids(table, "id >= 20") == [20, 21]
    assert lance.dataset(f"{local.root}/{LOCATIONS[V2_LEAF]}").count_rows() == 4


@pytest.mark.parametrize(
    ("pointer", "said"),
    [
        ({"read_branch": "dev"}, "read_branch without a read_version"),
        ({"read_tag": "t", "read_version": 2}, "read_tag beside"),
        ({"read_tag": "t", "read_branch": "dev"}, "read_tag beside"),
        ({"read_tag": "nobody"}, "the tag 'nobody', which it lacks"),
        ({"read_version": 99}, "can't be read at version 99"),
    ],
)
def test_other_combinations_are_refused(local: Place, pointer: dict[str, Any], said: str) -> None:
    table = opened(local, v1=pointer)

    with pytest.raises(InvalidTableStateError, match=said):
        table.scan("event_date = '2025-12-10'").to_arrow()


def pointers(local: Place) -> dict[str, dict[str, Any]]:
    """The table rows of the manifest."""
    found = lance.dataset(f"{local.root}/__manifest").to_table(filter="object_type = 'table'").to_pylist()
    return {row["object_id"]: row for row in found}


def test_a_commit_moves_the_read_columns_of_all_its_leaves_at_once(local: Place) -> None:
    table = opened(local)
    before = table.version

    with table.transaction() as changes:
        changes.append(appendix.events((20, DAY, "US"), (21, DAY, "DE")))
        changes.delete("id IN (1, 12)")

    assert ids(table) == [2, 3, 4, 5, 11, 13, 20, 21]
    assert ids(lp.open_table(local.root, version=before)) == [1, 2, 3, 4, 5, 11, 12, 13]
    kinds = lance.dataset(f"{local.root}/__manifest").to_table(columns=["object_type"])["object_type"]
    assert set(kinds.to_pylist()) == {"namespace", "table"}
    assert len(pointers(local)) == 3
    assert {row["metadata"] for row in pointers(local).values()} == {"{}"}


def test_a_commit_of_a_tagged_leaf_leaves_one_of_the_combinations(local: Place) -> None:
    appendix.write_leaves(local.root)
    lance.dataset(f"{local.root}/{LOCATIONS[V2_LEAF]}").tags.create("blessed", 2)
    appendix.write_manifest(local.root, appendix.appendix_c(v2={"read_tag": "blessed"}))
    table = lp.open_table(local.root)

    table.append(appendix.events((20, DAY, "US")))

    assert ids(table, "event_date > '2025-01-01'") == [1, 2, 3, 4, 5, 11, 12, 20]
    row = pointers(local)[V2_LEAF]
    assert row["read_version"] is not None
    assert row["read_tag"] is None


def test_a_leaf_without_a_pointer_gets_one_and_what_main_gets_later_is_not_read(local: Place) -> None:
    table = opened(local, v2={})

    table.append(appendix.events((20, DAY, "US")))
    lance.write_dataset(appendix.events((99, DAY, "US")), f"{local.root}/{LOCATIONS[V2_LEAF]}", mode="append")

    assert ids(table, "country = 'US'") == [1, 3, 5, 11, 12, 13, 20]


def test_snapshots_of_the_draft_have_names_too(local: Place) -> None:
    table = opened(local)
    table.tags.create("before", table.version)
    table.append(appendix.events((20, DAY, "US")))

    assert ids(lp.open_table(local.root, version="before")) == [1, 2, 3, 4, 5, 11, 12, 13]
    with pytest.raises(UnsupportedOperationError, match="open it without a version"):
        lp.open_table(local.root, version="before").append(appendix.events((21, DAY, "US")))


def test_the_specs_stay_arrays(local: Place) -> None:
    table = opened(local)
    table.append(appendix.events((20, DAY, "DE")))

    for key in ("partition_spec_v1", "partition_spec_v2"):
        assert json.loads(lance.dataset(f"{local.root}/__manifest").metadata[key]) == appendix.METADATA[key]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (["v1", "k7m2n9p4q8r5s3t6"], {"partition.event_date": "2025-12-10"}),
        (["v2", "e9f0g1h2i3j4k5l6"], {"partition.event_year": "2025"}),
        (["v2", "e9f0g1h2i3j4k5l6", "m7n8o9p0q1r2s3t4"], {"partition.country": "US"}),
    ],
)
def test_appendix_f_shows_each_levels_own_value(local: Place, path: list[str], shown: dict[str, str]) -> None:
    table = opened(local)

    assert table.namespace.describe_namespace(DescribeNamespaceRequest(id=path)).properties == shown


def test_appendix_f_shows_the_spec_as_an_array(local: Place) -> None:
    properties = opened(local).namespace.describe_namespace(DescribeNamespaceRequest(id=["v1"])).properties

    assert json.loads(properties["partition_spec"]) == appendix.METADATA["partition_spec_v1"]


def test_what_needs_the_current_layout_says_so(local: Place) -> None:
    table = opened(local)

    for action in (
        lambda: table.update_spec(["country"]),
        lambda: table.add_column(pa.field("x", pa.int8())),
        lambda: table.maintenance,
        lambda: table.changes(1),
    ):
        with pytest.raises(UnsupportedOperationError, match="upgrade"):
            action()


def test_arrays_and_objects_do_not_mix(local: Place) -> None:
    mixed = {**appendix.METADATA, "partition_spec_v3": {"id": 3, "fields": []}}
    appendix.write_manifest(local.root, [], mixed)

    with pytest.raises(InvalidTableStateError, match="arrays of the older draft"):
        lp.open_table(local.root)


def test_a_field_with_a_transform_is_not_of_the_draft(local: Place) -> None:
    field = {"field_id": "x", "source_ids": [1], "transform": {"type": "identity"}, "result_type": {"type": "date32"}}
    appendix.write_manifest(local.root, [], {**appendix.METADATA, "partition_spec_v1": [field]})

    with pytest.raises(InvalidTableStateError, match="partition_spec_v1"):
        lp.open_table(local.root)


def test_transactions_that_meet_in_a_leaf_are_rebased_or_refused(local: Place) -> None:
    table = opened(local)
    first, second, third = table.transaction(), table.transaction(), table.transaction()
    first.append(appendix.events((20, DAY, "US")))
    first.delete("id = 11")
    second.append(appendix.events((21, DAY, "US")))
    third.delete("id = 11")

    first.commit()
    second.commit()

    assert ids(table) == [1, 2, 3, 4, 5, 12, 13, 20, 21]
    with pytest.raises(CommitConflictError):
        third.commit()


def test_a_leaf_may_not_lie_outside_the_root(local: Place) -> None:
    table = opened(local, v1={"read_branch": "../../../elsewhere", "read_version": 1})

    with pytest.raises(InvalidTableStateError, match=r"'\.\.' part"):
        table.scan("country = 'FR'").to_arrow()
