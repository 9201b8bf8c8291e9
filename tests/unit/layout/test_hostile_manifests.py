"""Manifests that somebody wrote by hand: what they say is refused by name, or hurts nobody but the leaf it is about."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError, InvalidTableStateError, TableVersionNotFoundError
from lancepart.storage import history
from tests.support.catalogs import Place
from tests.transactions.aged import grow_old
from tests.transactions.tables import content, data, make, opened

ROWS = [(1, "A", 10), (2, "B", 20)]
A = "object_type = 'table' AND partition_field_bank = 'A'"
NOW = timedelta(0)

VERBS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda table: table.scan().to_arrow(),
    "count": lambda table: table.scan().count(),
    "append": lambda table: table.append(data([(9, "A", 1)])),
    "delete": lambda table: table.delete("id = 1"),
    "expire": lambda table: table.maintenance.expire(NOW, progress=False),
}


def manifest(place: Place) -> lance.LanceDataset:
    return lance.dataset(f"{place.root}/__manifest")


def write(place: Place, where: str, **values: str) -> None:
    manifest(place).update({key: f"'{value}'" for key, value in values.items()}, where=where)


@pytest.fixture
def place(local: Place) -> Place:
    make(local, ROWS)
    return local


@pytest.mark.parametrize("metadata", ["[]", "[" * 100_000, '{"a":' * 100_000])
def test_metadata_that_is_no_json_object_is_named(place: Place, metadata: str) -> None:
    write(place, A, metadata=metadata)

    for verb in VERBS.values():
        with pytest.raises(InvalidTableStateError, match=r"metadata of 'v1\$"):
            verb(opened(place))


@pytest.mark.parametrize("column", ["object_id", "location"])
def test_a_leaf_that_stands_twice_is_not_read_twice(place: Place, column: str) -> None:
    (row,) = manifest(place).to_table(filter=A).to_pylist()
    row |= {} if column == "object_id" else {"object_id": "v1$0000000000000000$dataset"}
    lance.write_dataset(pa.Table.from_pylist([row], schema=manifest(place).schema), manifest(place), mode="append")

    for verb in VERBS.values():
        with pytest.raises(InvalidTableStateError, match=f"more than one leaf with the {column}"):
            verb(opened(place))


@pytest.mark.parametrize("key", ["schema", "partition_spec_v1", "lancepart.format", "lancepart.past_names"])
def test_a_definition_that_is_nested_without_end_is_refused(place: Place, key: str) -> None:
    for value in ("[" * 100_000, '{"fields":' * 100_000, "7", '{"fields": [7]}'):
        manifest(place).update_metadata({key: value})
        with pytest.raises(InvalidTableStateError):
            opened(place)


@pytest.mark.parametrize("mark", ["7.5e30", '"x"', "-1", "null", "999999"])
def test_a_mark_that_cannot_be_is_named(place: Place, mark: str) -> None:
    write(place, "object_id = 'v1'", metadata=f'{{"lancepart.oldest": {mark}}}')

    version = opened(place).version
    for act in (VERBS["expire"], lambda table: table.tags.create("t", version), lambda _: opened(place, version)):
        with pytest.raises(InvalidTableStateError, match="oldest"):
            act(opened(place))
    assert content(opened(place)) == Counter(ROWS)


@pytest.mark.parametrize("floor", ['"x"', "7", "[1]", "[1, 1e300]", "{}"])
def test_a_floor_that_cannot_be_is_named(place: Place, floor: str) -> None:
    write(place, A, metadata=f'{{"lancepart.floor": {floor}}}')

    with pytest.raises(InvalidTableStateError, match="floor"):
        VERBS["append"](opened(place))
    assert content(opened(place)) == Counter(ROWS)


OUTSIDE = ["/etc", "", "a/../../x", "%2e%2e/x", "__manifest", "~/x"]


@pytest.mark.parametrize("location", ["../outside", *(pytest.param(each, marks=pytest.mark.slow) for each in OUTSIDE)])
def test_a_leaf_outside_the_root_is_one_that_cannot_be_read_and_can_be_replaced(
    place: Place, location: str, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    table = opened(place)
    table.append(data([(3, "B", 30)]))
    table.delete("id = 3")
    table.maintenance.compact(progress=False)
    write(place, A, location=location)
    grow_old(Path(place.root), 3 * 86_400)

    with pytest.raises(InvalidTableStateError, match="beneath the root"):
        table.scan().to_arrow()
    assert [row["location"] for row in table.inspect.broken().to_pylist()] == [location]
    report = table.maintenance.expire(timedelta(hours=1), progress=False)
    assert report.removed_files > 0
    assert any(note.startswith(f"{location}: ") for note in report.kept)
    table.delete("bank = 'A'")
    table.append(data([(4, "A", 40)]))

    assert content(table) == Counter([(2, "B", 20), (4, "A", 40)])
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["file"]


@pytest.mark.parametrize(
    "params",
    [
        {"index_uuid": "../../../outside"},
        {"precomputed_partition_dataset": "/etc"},
        {"ivf_centroids_file": "/etc/passwd"},
        {"storage_options": {"key": "x"}},
        {"accelerator": "cuda"},
    ],
)
def test_parameters_of_indices_lead_nowhere(place: Place, params: dict[str, Any]) -> None:
    written = [{"name": "i", "column": 0, "kind": "BTREE", "params": params}]
    manifest(place).update_metadata({"lancepart.indices": json.dumps(written)})
    table = opened(place)
    table.append(data([(3, "A", 30)]))

    with pytest.raises(InvalidTableStateError, match=next(iter(params))):
        table.maintenance.compact(progress=False)
    with pytest.raises(InvalidInputError, match=next(iter(params))):
        opened(place).maintenance.create_index("id", "BTREE", progress=False, **params)


@pytest.mark.parametrize(
    "written", ["{", "7", "[7]", '[{"name": 7}]', '[{"name":"i","column":0,"kind":7}]', "[" * 9_999]
)
def test_indices_that_are_none_are_named(place: Place, written: str) -> None:
    manifest(place).update_metadata({"lancepart.indices": written})

    with pytest.raises(InvalidTableStateError, match=r"lancepart\.indices"):
        opened(place).maintenance.compact(progress=False)


def test_a_tag_of_an_expired_snapshot_is_named(place: Place) -> None:
    table = opened(place)
    first = table.version
    table.append(data([(3, "A", 30)]))
    mark = table.version
    write(place, "object_id = 'v1'", metadata=f'{{"lancepart.oldest": {mark}}}')

    assert history.oldest(table._manifest.snapshot()) == mark
    with pytest.raises(TableVersionNotFoundError, match="expired"):
        table.tags.create("t", first)
