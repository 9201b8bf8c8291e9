"""Upkeep of the manifest: fewer fragments, the same rows, and versions that are snapshots stay."""

from __future__ import annotations

import pyarrow as pa

import lancepart as lp
from lancepart.storage import history, manifest_maintenance
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from tests.support.catalogs import Place


def filled(local: Place) -> Manifest:
    """The manifest of a table after some commits, which did no upkeep of their own yet."""
    table = lp.create_table(local.root, pa.schema([("k", pa.int64())]), ["k"])
    for number in range(manifest_maintenance.FRAGMENTS):
        table.append([{"k": number}])
    return Manifest(Root.parse(local.root))


def test_a_compaction_keeps_every_row_and_every_snapshot(local: Place) -> None:
    manifest = filled(local)
    before, versions = manifest.snapshot(), history.versions(manifest)
    rows = sorted(before.scan(None).column("object_id").to_pylist())
    manifest_maintenance.compact(manifest)
    manifest_maintenance.clean(manifest)

    after = Manifest(manifest.root).snapshot()
    assert sorted(after.scan(None).column("object_id").to_pylist()) == rows
    assert len(after.handle.get_fragments()) < manifest_maintenance.FRAGMENTS
    assert set(versions) <= set(history.versions(manifest))


def test_the_indices_that_are_missing_are_built(local: Place) -> None:
    manifest = filled(local)
    handle = manifest.snapshot().own_handle()
    manifest_maintenance.drop_indices(handle, ["object_id"])
    assert "object_id" not in {name for index in handle.describe_indices() for name in index.field_names}

    manifest_maintenance.index(manifest, many=1)

    found = {name for index in manifest.snapshot().handle.describe_indices() for name in index.field_names}
    assert {"object_id", "object_type", "partition_field_k"} <= found
