"""The manifest table: changes are all or nothing, and a compare-and-swap on the rows that they name."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from lancepart.errors import InvalidTableStateError
from lancepart.format.names import NAMESPACE, TABLE
from lancepart.format.rows import Row
from lancepart.storage import history
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, RowUpdate
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError
from tests.support.catalogs import Place


@pytest.fixture
def manifest(local: Place) -> Manifest:
    """A manifest that holds two namespaces and a table."""
    found = Manifest(Root.parse(local.root))
    rows = (row("a"), row("b"), row("a$t", TABLE, location="t.lance"))
    found.transact(lambda snapshot, retry: (Change(inserts=rows), None))
    return found


def row(object_id: str, object_type: str = NAMESPACE, location: str | None = None) -> Row:
    """A row with nothing but its identity."""
    return Row(object_id=object_id, object_type=object_type, location=location)


def test_a_manifest_that_was_never_written_is_empty(local: Place) -> None:
    snapshot = Manifest(Root.parse(local.root)).snapshot()

    assert (snapshot.version, snapshot.schema, snapshot.row("a")) == (0, None, None)
    assert snapshot.names("", NAMESPACE) == []


def test_a_manifest_that_is_written_at_this_moment_is_not_taken_for_a_lost_one(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = Manifest(Root.parse(local.root)), Manifest(Root.parse(local.root))
    is_empty = Files.is_empty

    def meanwhile(self: Files, directory: str) -> bool:
        quick.transact(lambda snapshot, retry: (Change(inserts=(row("a"),)), None))
        return is_empty(self, directory)

    monkeypatch.setattr(Files, "is_empty", meanwhile)
    slow.refuse_remains()
    monkeypatch.undo()
    shutil.rmtree(f"{local.root}/__manifest/_versions")

    with pytest.raises(InvalidTableStateError, match="from a backup"):
        Manifest(Root.parse(local.root)).refuse_remains()


def test_rows_are_found_by_id_by_parent_and_by_location(manifest: Manifest) -> None:
    snapshot = manifest.snapshot()

    assert snapshot.names("", NAMESPACE) == ["a", "b"]
    assert [each.object_id for each in snapshot.below("a")] == ["a$t"]
    assert [each.object_id for each in snapshot.at_locations(["t.lance"])] == ["a$t"]
    assert [each.object_id for each in snapshot.overlapping("t.lance/inside")] == ["a$t"]
    assert set(snapshot.rows(["a", "nothing"])) == {"a"}


def test_a_snapshot_does_not_see_what_is_committed_after_it(manifest: Manifest) -> None:
    before = manifest.snapshot()
    manifest.transact(lambda snapshot, retry: (Change(deletes=("b",)), None))

    assert before.names("", NAMESPACE) == ["a", "b"]
    assert manifest.snapshot().names("", NAMESPACE) == ["a"]


def test_of_two_changes_of_one_row_the_second_is_a_conflict_and_changes_nothing(manifest: Manifest) -> None:
    snapshot = manifest.snapshot()
    first = Change(updates=(RowUpdate(object_id="a", values={"metadata": '{"k": 1}'}),))
    second = Change(inserts=(row("c"),), updates=(RowUpdate(object_id="a", values={"metadata": '{"k": 2}'}),))

    manifest.publish(snapshot, first)
    with pytest.raises(ConflictError):
        manifest.publish(snapshot, second)

    found = manifest.snapshot()
    assert (found.row("c"), found.row("a").metadata) == (None, {"k": 1})  # type: ignore[union-attr]


def test_changes_of_different_rows_both_succeed(manifest: Manifest) -> None:
    snapshot = manifest.snapshot()

    manifest.publish(snapshot, Change(inserts=(row("c"),)))
    manifest.publish(snapshot, Change(inserts=(row("d"),)))

    assert manifest.snapshot().names("", NAMESPACE) == ["a", "b", "c", "d"]


def test_a_refused_plan_is_planned_again_on_what_is_there_now(manifest: Manifest) -> None:
    seen = []

    def plan(snapshot: object, retry: bool) -> tuple[Change, str]:
        seen.append(retry)
        if not retry:
            manifest.publish(manifest.snapshot(), Change(inserts=(row("c"),)))
        return Change(inserts=(row("c" if not retry else "e"),)), "planned"

    assert manifest.transact(plan) == "planned"
    assert seen == [False, True]
    assert manifest.snapshot().names("", NAMESPACE) == ["a", "b", "c", "e"]


def test_properties_are_claimed_by_one_and_swapped_only_if_nobody_set_them_since(manifest: Manifest) -> None:
    assert manifest.claim_properties({"p": "1"})
    assert not manifest.claim_properties({"p": "2"})
    snapshot = manifest.snapshot()
    manifest.swap_properties(snapshot, {"p": "3"})
    with pytest.raises(ConflictError):
        manifest.swap_properties(snapshot, {"p": "4"})

    assert manifest.snapshot().properties["p"] == "3"


def test_columns_that_were_added_keep_their_values_when_they_are_widened(manifest: Manifest) -> None:
    manifest.add_columns([pa.field("n", pa.int32())])
    manifest.transact(lambda snapshot, retry: (Change(updates=(RowUpdate(object_id="a", values={"n": 7}),)), None))

    manifest.widen_columns({"n": pa.int64()})

    assert manifest.snapshot().row("a").columns["n"] == 7  # type: ignore[union-attr]
    assert manifest.snapshot().schema.field("n").type == pa.int64()  # type: ignore[union-attr]


def test_versions_are_resolved_by_number_tag_and_latest(manifest: Manifest) -> None:
    first = manifest.snapshot().version
    history.create_tag(manifest, "start", first)
    manifest.transact(lambda snapshot, retry: (Change(deletes=("b",)), None))

    assert history.resolve(manifest, "start") == first
    assert history.resolve(manifest, None) is None
    assert history.at(manifest, first).names("", NAMESPACE) == ["a", "b"]
    assert history.tags(manifest) == {"start": first}
    stored = history.stored(manifest)
    assert [number for number, _ in stored] == sorted(history.versions(manifest))
    assert [moment for _, moment in stored] == sorted(moment for _, moment in stored)
