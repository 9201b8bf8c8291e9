"""Leaves with the rarer kinds of files, as other clients write them: published, aged, collected around, still read."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileWriter
from lance.fragment import DataFile

from lancepart.maintain import collect
from tests.support.catalogs import Place
from tests.transactions.aged import grow_old
from tests.transactions.tables import SCHEMA, content, make, opened

OVERLAYS = "LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES"
SPILL = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "16"}
COUNT = 400


@pytest.fixture(autouse=True)
def _overlays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance writes overlays in any case, and opens what has them only with this setting."""
    monkeypatch.setenv(OVERLAYS, "1")


def _value_file(uri: str, name: str, values: list[int]) -> DataFile:
    """A file with values of the column ``x``, which an overlay lays over those of some rows."""
    with LanceFileWriter(f"{uri}/data/{name}", pa.schema([SCHEMA.field("x")])) as writer:
        writer.write_batch(pa.table({"x": pa.array(values, pa.int64())}))
    return DataFile.create(lance.dataset(uri), name)


def overlaid(uri: str) -> None:
    """Two overlays of which the later one wins."""
    operation = lance.LanceOperation
    for name, values, offsets in [("one.lance", [-1, -2], [3, 5]), ("two.lance", [-3], [5])]:
        overlay = operation.DataOverlayFile(_value_file(uri, name, values), offsets)
        base = lance.dataset(uri)
        fragment = base.get_fragments()[0].fragment_id
        group = operation.DataOverlayGroup(fragment, [overlay])
        lance.LanceDataset.commit(base, operation.DataOverlay([group]), read_version=base.version)
    assert lance.dataset(uri).to_table()["x"].to_pylist()[:7] == [0, 1, 2, -1, 4, -3, 6]


def updated(uri: str) -> None:
    """Row ids of updated rows in a file of their own, since they are too many for the manifest."""
    rows = lance.dataset(uri).to_table()
    shutil.rmtree(uri)
    lance.write_dataset(rows, uri, enable_stable_row_ids=True, max_rows_per_file=COUNT // 4)
    lance.dataset(uri).update_config(SPILL)
    lance.dataset(uri).delete("(id * 7919) % 13 < 4")
    lance.dataset(uri).update({"x": "x + 1000"}, where="(id * 31) % 7 < 3")
    assert [-3] in [file.fields for each in lance.dataset(uri).get_fragments() for file in each.metadata.files]


def compacted(uri: str) -> None:
    """Row ids, and the versions that rows were made and changed in, as columns of the rows' own data file."""
    updated(uri)
    lance.dataset(uri).optimize.compact_files()
    (fragment,) = lance.dataset(uri).get_fragments()
    assert [file.fields[-3:] for file in fragment.metadata.files] == [[-3, -4, -5]]


def publish(table: Any, change: Callable[[str], None]) -> tuple[str, int]:
    """Let another client change the main branch of the one leaf, and publish its latest version."""
    (leaf,) = table.scan().plan().leaves
    uri = f"{table.root}/{leaf.location}"
    change(uri)
    version = int(lance.dataset(uri).version)
    manifest = lance.dataset(f"{table.root}/__manifest")
    row = {
        "object_id": f"{leaf.object_id}${leaf.number + 1}",
        "object_type": "table_version",
        "metadata": "{}",
        "read_version": version,
    }
    given = pa.Table.from_pylist([row], schema=manifest.schema)
    manifest.merge_insert("object_id").when_not_matched_insert_all().execute(given)
    return uri, version


def collected(place: Place) -> list[Any]:
    """The reports of both collectors, for which everything is old."""
    grow_old(Path(place.root))
    manifest = opened(place)._manifest
    return [
        collect.expire(manifest, timedelta(0), safe_age=timedelta(0), progress=False),
        collect.remove_orphans(manifest, timedelta(hours=1), progress=False),
    ]


def with_row_ids(uri: str, version: int) -> pa.Table:
    lineage = ["_row_created_at_version", "_row_last_updated_at_version"]
    dataset = lance.dataset(uri, version=version, session=lance.Session())
    extra = lineage if dataset.has_stable_row_ids else []
    return dataset.to_table(columns=[*SCHEMA.names, *extra], with_row_id=True)


@pytest.mark.parametrize("change", [overlaid, updated, compacted])
def test_files_that_only_a_fragments_metadata_names_stay_and_others_go(
    local: Place, change: Callable[[str], None]
) -> None:
    table = make(local, [(n, "A", n) for n in range(COUNT)])
    uri, version = publish(table, change)
    _value_file(uri, "lost.lance", [-4])
    rows, before = content(opened(local)), with_row_ids(uri, version)
    found = [each.metadata for each in lance.dataset(uri, version=version).get_fragments()]
    named = {str(file.path) for each in found for file in each.files}
    named |= {str(overlay.data_file.path) for each in found for overlay in each.overlays}
    assert named < set(os.listdir(f"{uri}/data"))

    reports = collected(local)

    assert [report.kept for report in reports] == [(), ()]
    assert set(os.listdir(f"{uri}/data")) == named
    assert with_row_ids(uri, version) == before
    assert content(opened(local)) == rows
    assert sum(report.removed_files for report in collected(local)) == 0

    opened(local).delete("id >= 100")
    assert opened(local).maintenance.compact(progress=False).changed == 1
    assert content(opened(local)) == Counter({row: times for row, times in rows.items() if row[0] < 100})


def test_a_leaf_with_overlays_is_kept_whole_where_lance_does_not_open_it(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(local, [(n, "A", n) for n in range(COUNT)])
    uri, version = publish(table, overlaid)
    before, files = with_row_ids(uri, version), set(Path(uri).rglob("*"))
    monkeypatch.delenv(OVERLAYS)

    reports = collected(local)

    assert all(os.path.basename(uri) in " ".join(report.kept) for report in reports)
    assert set(Path(uri).rglob("*")) == files
    monkeypatch.setenv(OVERLAYS, "1")
    assert with_row_ids(uri, version) == before
