"""What one commit does to the manifest, as a value."""

from __future__ import annotations

from lancepart.format.names import NAMESPACE
from lancepart.format.rows import Row
from lancepart.storage.manifest_rows import Change, RowUpdate
from lancepart.storage.snapshot import beneath, literal, literals

A, B = (Row(object_id=name, object_type=NAMESPACE) for name in "ab")


def test_changes_add_up() -> None:
    one = Change(inserts=(A,), deletes=("x",))
    other = Change(inserts=(B,), updates=(RowUpdate(object_id="c", values={"metadata": "{}"}),))

    total = one + other

    assert (total.inserts, total.deletes, total.updates) == ((A, B), ("x",), other.updates)
    assert not total.is_empty
    assert Change().is_empty


def test_rows_that_are_updated_must_exist_and_those_that_are_inserted_need_not() -> None:
    change = Change(inserts=(A,), updates=(RowUpdate(object_id="c", values={}),))

    assert change.existing_ids == ("c",)


def test_text_goes_into_filters_escaped() -> None:
    assert literal("it's") == "'it''s'"
    assert literals(["a", "b'"]) == "'a', 'b'''"
    assert "'a$'" in beneath("a")
