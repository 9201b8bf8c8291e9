"""Versions of the manifest: by number, by tag, by moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from lancepart.storage import history
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from tests.support.catalogs import Place


@pytest.fixture
def table(local: Place) -> lp.PartitionedTable:
    made = lp.create_table(local.root, pa.schema([("k", pa.int64())]), ["k"])
    made.append([{"k": 1}])
    return made


@pytest.fixture
def manifest(table: lp.PartitionedTable) -> Manifest:
    return Manifest(Root.parse(table.root))


def test_a_number_a_tag_and_a_moment_stand_for_a_snapshot(table: lp.PartitionedTable, manifest: Manifest) -> None:
    version = table.version
    history.create_tag(manifest, "first", version)
    moment = history.timestamp(manifest, version)
    table.append([{"k": 2}])

    assert history.resolve(manifest, version) == version
    assert history.resolve(manifest, "first") == version
    assert history.resolve(manifest, moment) == version
    assert history.resolve(manifest, None) is None
    assert history.tags(manifest) == {"first": version}


def test_what_stands_for_no_snapshot_is_refused(manifest: Manifest) -> None:
    for wanted, error in [
        (10_000, TableVersionNotFoundError),
        (0, TableVersionNotFoundError),
        ("nothing", TableTagNotFoundError),
        (datetime.now(UTC) - timedelta(days=1), TableVersionNotFoundError),
        (1.5, InvalidInputError),
    ]:
        with pytest.raises(error):
            history.resolve(manifest, wanted)
    with pytest.raises(InvalidInputError):
        history.required(manifest, None)


def test_a_tag_is_made_once_and_taken_away_once(manifest: Manifest) -> None:
    version = manifest.snapshot().version
    history.create_tag(manifest, "t", version)
    with pytest.raises(TableTagAlreadyExistsError):
        history.create_tag(manifest, "t", version)
    history.delete_tag(manifest, "t")
    with pytest.raises(TableTagNotFoundError):
        history.delete_tag(manifest, "t")


def test_the_stores_times_never_go_back(table: lp.PartitionedTable, manifest: Manifest) -> None:
    table.append([{"k": 2}])
    found = history.stored(manifest)

    assert [version for version, _ in found] == history.versions(manifest)
    assert [taken for _, taken in found] == sorted(taken for _, taken in found)
    assert history.info(manifest, table.version).records[0].object_type == "table_version"
