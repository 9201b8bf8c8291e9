"""What is recorded of a leaf's fragments is what Lance says of them, and nothing is recorded that a union can't use."""

from __future__ import annotations

import json
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.format.fragments import LeafFiles
from lancepart.storage import leaf_handle, leaf_record
from lancepart.storage.root import Root
from tests.support.catalogs import Place

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"b": "1", "a": "2"}),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
    ]
)


def rows(first: int) -> pa.Table:
    return pa.table([range(first, first + 5), [{"x": 1, "y": ["a"]}] * 5], schema=SCHEMA)


def test_fragments_are_recorded_and_come_back_as_they_were(local: Place) -> None:
    uri = f"{local.root}/leaf"
    lance.write_dataset(rows(0), uri)
    made = lance.write_dataset(rows(5), uri, mode="append")
    made.delete("id = 7")
    made.add_columns({"more": "id + 1"})

    found = leaf_record.describe(made)

    assert found is not None
    assert LeafFiles.from_json(json.loads(json.dumps(found.to_json()))) == found
    again = [leaf_record.fragment(item).to_json() for item in found.fragments]
    assert again == [item.metadata.to_json() for item in made.get_fragments()]
    root = Root.parse(local.root)
    leaf_record.note(root, "leaf", made)
    assert leaf_record.noted(root, "leaf", made.version) == (found, found.to_json())
    assert leaf_record.noted(root, "leaf", made.version + 1) == (None, None)
    assert leaf_record.noted(root, "other", made.version) == (None, None)
    assert leaf_record.noted_size(root, "leaf", made.version) == leaf_handle.measure(made)
    assert leaf_record.noted_size(root, "leaf", made.version + 1) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["fragments"].append(found["fragments"][0]),
        lambda found: found["fragments"][0].__setitem__(0, -1),
        lambda found: found["fragments"][0].__setitem__(1, "5"),
        lambda found: found["fragments"][0][2][0].__setitem__(0, "../other.lance"),
        lambda found: found["fragments"][0][2][0].__setitem__(2, 9),
        lambda found: found["fragments"][0].__setitem__(2, []),
        lambda found: found["kinds"][0].__setitem__(2, "0:99999999"),
        lambda found: found["kinds"][0].__setitem__(3, ""),
        lambda found: found.update(shape="0"),
        lambda found: found.update(version=True),
        lambda found: found.pop("kinds"),
    ],
)
def test_what_another_client_wrote_there_is_no_record(local: Place, change: Any) -> None:
    found = leaf_record.describe(lance.write_dataset(rows(0), f"{local.root}/leaf"))
    assert found is not None
    spelled = json.loads(json.dumps(found.to_json()))
    change(spelled)
    assert LeafFiles.from_json(spelled) is None


def test_columns_tell_leaves_apart(local: Place) -> None:
    one = lance.write_dataset(rows(0), f"{local.root}/one")
    same = lance.write_dataset(rows(9), f"{local.root}/same")
    renamed = lance.write_dataset(rows(0), f"{local.root}/renamed")
    renamed.alter_columns({"path": "id", "name": "key"})
    other = lance.write_dataset(rows(0), f"{local.root}/other")
    other.drop_columns(["id"])
    other.add_columns({"id": "cast(1 as bigint)"})
    marked = lance.write_dataset(rows(0), f"{local.root}/marked")
    marked.replace_field_metadata("id", {"b": "1", "a": "3"})

    found = [leaf_record.fingerprint(each) for each in (one, same, renamed, other, marked)]

    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_what_is_elsewhere_or_too_much_is_not_recorded(local: Place) -> None:
    uri = f"{local.root}/leaf"
    made = lance.write_dataset(rows(0), uri)
    clone = made.shallow_clone(f"{local.root}/clone", made.version)
    many = lance.write_dataset(pa.table({"id": range(40)}), f"{local.root}/many", max_rows_per_file=1)

    assert leaf_record.describe(clone) is None
    assert leaf_record.describe(many) is None
