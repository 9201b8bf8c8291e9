"""The manifest table itself under eight writers: keys, counters, properties, upkeep, other clients' overwrites.

Each warning of lance-facts.md about ``__manifest`` has its test here: what pylance does when it is ignored, or that
the catalog's own way does not.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DescribeNamespaceRequest

from lancepart.errors import InternalError
from lancepart.storage import manifest_maintenance
from lancepart.storage.manifest import FRESH_SECONDS, RETRY_SECONDS, Manifest
from lancepart.storage.manifest_rows import NAMESPACE, PRIMARY_KEY_POSITION, SCHEMA, Change, Row, RowUpdate, now
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import BlindCommitError, ConflictError, KeyExistsError
from tests.concurrency import actions, audit
from tests.support.catalogs import Place
from tests.support.processes import CREW, Crew, rounds

pytestmark = pytest.mark.torture


@pytest.fixture
def manifest(local: Place) -> Manifest:
    """A manifest with its indices and the two rows 'a' and 'b'."""
    actions.create_namespace(local, ["a"])
    actions.create_namespace(local, ["b"])
    return Manifest(Root.parse(local.root))


def row(key: str) -> Row:
    return Row(object_id=key, object_type=NAMESPACE, created_at=now())


def relabel(key: str, text: str) -> Change:
    return Change(updates=(RowUpdate(object_id=key, values={"metadata": json.dumps({"text": text})}),))


def test_no_key_is_made_twice_while_indices_and_compaction_are_at_work(crew: Crew, place: Place) -> None:
    actions.create_namespace(place, ["first"])
    keys = [f"k{number}" for number in range(rounds(3 if place.options else 12, 60))]

    outcomes = crew.everyone(actions.hammer, place, keys)

    assert all(outcome.won for outcome in outcomes), outcomes
    assert sum(outcome.value for outcome in outcomes) == len(keys)
    assert set(audit.rows(place)) == {"first", *keys}
    indexed = {field for index in audit.manifest(place).describe_indices() for field in index.field_names}
    assert indexed == {"object_id", "object_type", "base_objects"}


@pytest.mark.slow
def test_no_update_of_one_row_is_lost(crew: Crew, place: Place) -> None:
    place.catalog().create_namespace(CreateNamespaceRequest(id=["counter"], properties={"n": "0"}))
    times = rounds(1 if place.options else 5, 20)

    outcomes = crew.everyone(actions.count_up, place, times)

    assert all(outcome.won for outcome in outcomes), outcomes
    counted = place.catalog().describe_namespace(DescribeNamespaceRequest(id=["counter"])).properties
    assert counted == {"n": str(CREW * times)}


def test_no_root_property_is_lost(crew: Crew, place: Place) -> None:
    calls = [(place, {f"k{number}": str(number), "shared": str(number)}) for number in range(CREW)]

    outcomes = crew.race(actions.set_root_properties, *calls)

    assert all(outcome.won for outcome in outcomes), outcomes
    kept = place.catalog().describe_namespace(DescribeNamespaceRequest(id=[])).properties
    assert kept.pop("shared") in {str(number) for number in range(CREW)}
    assert kept == {f"k{number}": str(number) for number in range(CREW)}


def test_root_properties_and_rows_do_not_lose_each_other(crew: Crew, local: Place) -> None:
    calls = [(actions.set_root_properties, (local, {f"k{number}": "v"})) for number in range(4)]
    calls += [(actions.create_namespace, (local, [f"n{number}"])) for number in range(4)]

    outcomes = crew.meet(*calls)

    assert all(outcome.won for outcome in outcomes), outcomes
    assert set(audit.rows(local)) == {f"n{number}" for number in range(4)}
    kept = local.catalog().describe_namespace(DescribeNamespaceRequest(id=[])).properties
    assert kept == {f"k{number}": "v" for number in range(4)}


@pytest.mark.slow
def test_writers_come_through_while_others_compact_all_the_time(crew: Crew, local: Place) -> None:
    actions.create_namespace(local, ["ns"])
    times = rounds(8, 60)
    calls = [(actions.create_many, (local, ["ns"], times, number)) for number in range(6)]

    outcomes = crew.meet(*calls, *[(actions.compact_manifest, (local, times * 10))] * 2)

    assert all(outcome.won for outcome in outcomes), outcomes
    assert len(audit.whole(local)) == 6 * times + 1
    history = audit.manifest(local)
    done = [history.read_transaction(version).operation for version in range(1, history.version + 1)]
    assert any(isinstance(operation, lance.LanceOperation.Rewrite) for operation in done)


@pytest.mark.slow
def test_writers_come_through_while_native_code_overwrites_the_manifest(crew: Crew, local: Place) -> None:
    actions.create_namespace(local, ["ns"])
    times = rounds(4, 30)
    calls = [(actions.create_many, (local, ["ns"], times, number)) for number in range(4)]
    calls += [(actions.write_natively, (local, times, number)) for number in range(2)]

    outcomes = crew.meet(*calls, *[(actions.overwrite_manifest, (local, times))] * 2)

    assert all(outcome.won for outcome in outcomes), outcomes
    assert len(audit.whole(local)) == 1 + 4 * times + 2 * times


def test_the_key_is_marked_so_that_merges_notice_each_other(local: Place, manifest: Manifest) -> None:
    field = audit.manifest(local).schema.field("object_id")

    assert field.metadata == {PRIMARY_KEY_POSITION.encode(): b"0"}


def test_a_key_that_another_client_left_unmarked_is_marked_before_the_next_merge(local: Place) -> None:
    bare = pa.schema([field.remove_metadata() for field in SCHEMA])
    lance.write_dataset(bare.empty_table(), local.uri("__manifest"))

    actions.create_namespace(local, ["a"])

    assert PRIMARY_KEY_POSITION.encode() in audit.manifest(local).schema.field("object_id").metadata


def test_of_two_inserts_of_one_key_from_the_same_snapshot_the_second_fails(manifest: Manifest) -> None:
    snapshot, stale = manifest.snapshot(), manifest.snapshot()
    manifest.publish(snapshot, Change(inserts=(row("c"),)))

    with pytest.raises((ConflictError, KeyExistsError)):
        manifest.publish(stale, Change(inserts=(row("c"),)))

    assert manifest.snapshot().row("c") is not None


def test_of_two_updates_of_one_row_from_the_same_snapshot_the_second_fails(manifest: Manifest) -> None:
    snapshot, stale = manifest.snapshot(), manifest.snapshot()
    manifest.publish(snapshot, relabel("a", "first"))

    with pytest.raises(ConflictError):
        manifest.publish(stale, relabel("a", "second"))

    assert manifest.snapshot().row("a").metadata == {"text": "first"}


def test_updates_of_two_rows_of_one_fragment_from_the_same_snapshot_both_hold(manifest: Manifest) -> None:
    manifest.snapshot().handle.optimize.compact_files()
    snapshot, stale = manifest.snapshot(), manifest.snapshot()
    manifest.publish(snapshot, relabel("a", "first"))
    manifest.publish(stale, relabel("b", "second"))

    found = manifest.snapshot().rows(["a", "b"])

    assert {key: item.metadata["text"] for key, item in found.items()} == {"a": "first", "b": "second"}


@pytest.mark.parametrize("second", [Change(deletes=("a",)), Change(touches=("a",), inserts=(row("a$child"),))])
@pytest.mark.parametrize("first", [Change(deletes=("a",)), Change(touches=("a",), inserts=(row("a$other"),))])
def test_a_drop_and_a_creation_beneath_it_from_the_same_snapshot_never_both_hold(
    manifest: Manifest, first: Change, second: Change
) -> None:
    snapshot, stale = manifest.snapshot(), manifest.snapshot()
    manifest.publish(snapshot, first)

    with pytest.raises(ConflictError):
        manifest.publish(stale, second)


def test_a_key_that_stands_twice_in_one_change_is_refused_before_the_merge(manifest: Manifest) -> None:
    with pytest.raises(InternalError, match="twice"):
        manifest.publish(manifest.snapshot(), Change(inserts=(row("c"), row("c"))))


def test_a_change_with_a_refused_part_leaves_no_trace(manifest: Manifest) -> None:
    version = manifest.snapshot().version

    with pytest.raises(KeyExistsError):
        manifest.publish(manifest.snapshot(), Change(inserts=(row("c"), row("a"))))

    assert manifest.snapshot().version == version


def test_a_snapshot_is_too_old_to_publish_from_long_before_cleaning_forgets_what_came_after_it(
    manifest: Manifest,
) -> None:
    snapshot = manifest.snapshot()
    snapshot.opened -= FRESH_SECONDS + 1

    with pytest.raises(ConflictError, match="too old"):
        manifest.publish(snapshot, Change(inserts=(row("c"),)))

    assert timedelta(seconds=FRESH_SECONDS + RETRY_SECONDS) * 4 < manifest_maintenance.KEEP


def test_pylance_finds_no_conflict_with_what_was_cleaned_away(manifest: Manifest) -> None:
    """Why cleaning keeps hours: the swap that the catalog rests on ends where the kept versions end."""
    stale = manifest.snapshot()
    manifest.publish(manifest.snapshot(), Change(inserts=(row("c"),)))
    manifest.publish(manifest.snapshot(), Change(inserts=(row("d"),)))
    manifest.snapshot().handle.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)

    manifest.publish(stale, Change(inserts=(row("c"),)))

    assert manifest.snapshot().handle.count_rows("object_id = 'c'") == 2


def test_a_commit_that_slept_while_others_were_cleaned_away_says_so(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale, other, merged = manifest.snapshot(), Manifest(manifest.root), Manifest._merged

    def slept(self: Manifest, handle: Any, change: Change, snapshot: Snapshot) -> Any:
        for name in ("c", "d"):
            monkeypatch.setattr(Manifest, "_merged", merged)
            other.publish(other.snapshot(), Change(inserts=(row(name),)))
        other.snapshot().handle.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        snapshot.opened -= FRESH_SECONDS + 1
        return merged(self, handle, change, snapshot)

    assert stale.row("c") is None
    monkeypatch.setattr(Manifest, "_merged", slept)
    with pytest.raises(BlindCommitError, match="cleaned away"):
        manifest.commit(lambda snapshot, retry: (Change(inserts=(row("c"),)), None), start=stale)


def test_an_index_is_built_for_look_ups_and_not_used_by_merges(manifest: Manifest) -> None:
    manifest.snapshot().handle.optimize.optimize_indices()
    snapshot, stale = manifest.snapshot(), manifest.snapshot()
    assert "ScalarIndexQuery" in snapshot.handle.scanner(filter="object_id = 'a'").explain_plan()

    manifest.publish(snapshot, Change(inserts=(row("c"),)))

    with pytest.raises((ConflictError, KeyExistsError)):
        manifest.publish(stale, Change(inserts=(row("c"),)))


def test_automatic_upkeep_never_cleans_a_partitioned_namespace(local: Place, manifest: Manifest) -> None:
    actions.set_root_properties(local, {"partition_spec_v1": "{}"})
    before = [item["version"] for item in manifest.snapshot().handle.versions()]
    keep, manifest_maintenance.KEEP = manifest_maintenance.KEEP, timedelta(0)
    try:
        manifest_maintenance.clean(manifest)
    finally:
        manifest_maintenance.KEEP = keep

    assert [item["version"] for item in manifest.snapshot().handle.versions()] == before
