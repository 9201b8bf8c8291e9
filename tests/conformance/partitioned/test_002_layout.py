"""002, "Physical Layout and Naming", "Runtime Namespace Properties", and Appendices B and E."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import (
    DescribeNamespaceRequest,
    DescribeTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    NamespaceExistsRequest,
)

import lancepart as lp
from lancepart.errors import NamespaceNotFoundError
from tests.conformance.partitioned.appendix import DAY, LOCATIONS, METADATA, SCHEMA, V1_LEAF, V2_LEAF, events
from tests.support.catalogs import Place

NAME = "[a-z0-9]{16}"


def _paths(table: lp.PartitionedTable) -> list[list[str]]:
    return [leaf.object_id.split("$") for leaf in table.scan().plan().leaves]


def _described(table: lp.PartitionedTable, path: list[str]) -> dict[str, str]:
    return table.namespace.describe_namespace(DescribeNamespaceRequest(id=path)).properties or {}


def test_only_the_manifest_and_the_leaves_have_directories(ours: lp.PartitionedTable) -> None:
    found = sorted(item.name for item in Path(ours.root).iterdir())

    patterns = ["__manifest", rf"[0-9a-f]{{8}}_v1\${NAME}\$dataset", rf"[0-9a-f]{{8}}_v2\${NAME}\${NAME}\$dataset"]
    assert len(found) == len(patterns)
    assert all(any(re.fullmatch(pattern, name) for name in found) for pattern in patterns), found


def test_a_leafs_directory_is_a_hash_and_its_object_id(ours: lp.PartitionedTable) -> None:
    for leaf in ours.scan().plan().leaves:
        assert re.fullmatch(r"[0-9a-f]{8}_" + re.escape(leaf.object_id), leaf.location)


def test_the_hierarchy_is_spec_version_then_a_level_a_field_then_dataset(ours: lp.PartitionedTable) -> None:
    for path, fields in zip(_paths(ours), [1, 2], strict=True):
        assert re.fullmatch(r"v\d+", path[0])
        assert all(re.fullmatch(NAME, name) for name in path[1:-1])
        assert len(path[1:-1]) == fields
        assert path[-1] == "dataset"


def test_the_hierarchy_can_be_walked_through_the_catalog(ours: lp.PartitionedTable) -> None:
    catalog = ours.namespace
    (_, name, _), (_, year, country, _) = _paths(ours)

    def below(*path: str) -> list[str]:
        return catalog.list_namespaces(ListNamespacesRequest(id=list(path))).namespaces

    assert below() == ["v1", "v2"]
    assert (below("v1"), below("v2"), below("v2", year)) == ([name], [year], [country])
    assert catalog.list_tables(ListTablesRequest(id=["v2", year, country])).tables == ["dataset"]
    catalog.namespace_exists(NamespaceExistsRequest(id=["v2", year]))


def test_every_leaf_is_an_ordinary_dataset_that_plain_pylance_opens(place: Place) -> None:
    table = lp.create_table(place.root, SCHEMA, ["country"], storage_options=place.storage_options)
    table.append(events((1, DAY, "US"), (2, DAY, None)))

    for leaf in table.scan().plan().leaves:
        plain = lance.dataset(place.uri(leaf.location), storage_options=place.storage_options)
        assert plain.count_rows() == 1
        assert plain.schema.names == SCHEMA.names
        assert plain.to_table(filter="id = 1").num_rows == (leaf.values == ("US",))


def test_a_leaf_is_found_and_described_by_the_catalog(ours: lp.PartitionedTable) -> None:
    (path, *_), leaves = _paths(ours), ours.scan().plan().leaves

    described = ours.namespace.describe_table(DescribeTableRequest(id=path))

    assert described.location is not None
    assert described.location.endswith(leaves[0].location)


def test_names_are_fixed_length_and_free_of_what_the_values_hold(local: Place) -> None:
    values = ["$", "a/b", "k=v", "..", "", " ", "😀" * 100, "x" * 5000, "v1$dataset", "nul\0l"]
    table = lp.create_table(local.root, pa.schema([("id", pa.int64()), ("v", pa.string())]), ["v"])

    table.append([{"id": number, "v": value} for number, value in enumerate(values)])

    assert all(re.fullmatch(NAME, path[1]) for path in _paths(table))
    assert {leaf.values[0] for leaf in table.scan().plan().leaves} == set(values)


def test_names_are_derived_so_that_equal_values_collide_and_others_do_not(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"])
    table.append(events((1, DAY, "US")))
    first = _paths(table)
    table.append(events((2, DAY, "US"), (3, DAY, "us")))

    assert len(first) == 1
    assert first[0] in _paths(table)
    assert len(_paths(table)) == 2


def test_names_of_two_tables_are_not_the_same_for_the_same_values(tmp_path: Path) -> None:
    names = set()
    for root in ("one", "two"):
        table = lp.create_table(tmp_path / root, SCHEMA, ["country"])
        table.append(events((1, DAY, "US")))
        names.add(_paths(table)[0][1])

    assert len(names) == 2


def test_names_that_another_writer_chose_are_found_by_value(by_hand: lp.PartitionedTable) -> None:
    by_hand.append(events((6, DAY, "US")))

    assert sorted(leaf.object_id for leaf in by_hand.scan().plan().leaves) == sorted(LOCATIONS)


def test_appendix_e_the_spec_version_namespace(by_hand: lp.PartitionedTable) -> None:
    shown = _described(by_hand, ["v1"])

    assert json.loads(shown["partition_spec"]) == METADATA["partition_spec_v1"]
    assert list(shown) == ["partition_spec"]


def test_appendix_e_is_what_we_say_of_our_own_to_the_letter(ours: lp.PartitionedTable) -> None:
    text = (
        '{"id":1,"fields":[{"field_id":"event_date","source_ids":[1],"transform":{"type":"identity"},'
        '"result_type":{"type":"date32"}}]}'
    )

    assert _described(ours, ["v1"]) == {"partition_spec": text}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (V1_LEAF.split("$")[:2], {"partition.event_date": "2025-12-10"}),
        (V2_LEAF.split("$")[:2], {"partition.event_year": "2025"}),
        (V2_LEAF.split("$")[:3], {"partition.country": "US"}),
    ],
)
def test_appendix_e_each_partition_namespace_has_the_value_of_its_own_level(
    by_hand: lp.PartitionedTable, path: list[str], expected: dict[str, str]
) -> None:
    assert _described(by_hand, path) == expected


def test_a_null_value_has_no_property(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["event_date", "country"])
    table.append(events((1, None, "US"), (2, DAY, None)))

    shown = [
        (_described(table, path[:2]), _described(table, path[:3]))
        for path in (leaf.object_id.split("$") for leaf in table.scan("id > 0").plan().leaves)
    ]

    assert ({}, {"partition.country": "US"}) in shown
    assert ({"partition.event_date": "2025-12-10"}, {}) in shown


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.bool_(), True, "true"),
        (pa.float64(), 1.5, "1.5"),
        (pa.binary(), b"\x00\xff", "00ff"),
        (pa.timestamp("us", "UTC"), date(2025, 12, 10), "2025-12-10 00:00:00.000000Z"),
        (pa.string(), "", ""),
    ],
)
def test_values_of_any_type_are_shown_as_text(local: Place, kind: Any, value: Any, text: str) -> None:
    table = lp.create_table(local.root, pa.schema([("id", pa.int64()), ("v", kind)]), ["v"])
    table.append(pa.table({"id": [1], "v": pa.array([value]).cast(kind)}))

    assert _described(table, _paths(table)[0][:2]) == {"partition.v": text}


def test_the_root_shows_the_specs_and_the_schema(ours: lp.PartitionedTable) -> None:
    shown = _described(ours, [])

    assert {key: json.loads(shown[key]) for key in METADATA} == METADATA


def test_a_namespace_that_is_not_there_is_not_found(ours: lp.PartitionedTable) -> None:
    with pytest.raises(NamespaceNotFoundError):
        _described(ours, ["v9"])
