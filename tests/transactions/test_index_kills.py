"""A builder of an index that is killed at any step leaves the table without the index or with all of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lancepart.layout.declared_indices import declared
from lancepart.storage import leaf_data, table_index
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from tests.support import dying
from tests.support.catalogs import Place
from tests.support.processes import kills
from tests.transactions.tables import make, opened

pytestmark = [pytest.mark.torture, pytest.mark.slow]

SAMPLE = 3
IDS = [1, 3, 4, 5]
STEPS: tuple[dying.Step, ...] = (
    (leaf_data, "commit_version"),
    (table_index, "write_lookup"),
    (Files, "put"),
    (Manifest, "publish"),
)


def create_leaf(table: Any) -> None:
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)


def create_table(table: Any) -> None:
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)


def replace_kind(table: Any) -> None:
    table.maintenance.create_index("id", "BITMAP", scope="leaf", progress=False)


def drop(table: Any) -> None:
    table.maintenance.drop_index("id_idx", progress=False)


def _steps() -> tuple[dying.Step, ...]:
    return STEPS


def _act(action: Callable[[Any], None], place: Place) -> None:
    action(opened(place))


def state(place: Place) -> tuple[Any, ...]:
    """What the table declares, and what its leaves have of it."""
    table = opened(place)
    known = [(each.name, each.kind, each.scope, len(each.segments)) for each in declared(table._manifest.snapshot())]
    columns = ["name", "type", "rows", "indexed_rows", "scope"]
    return known, sorted(map(str, table.inspect.indices().select(columns).to_pylist()))


def template(place: Place, action: Callable[[Any], None]) -> None:
    table = make(place, [(1, "A", 10), (2, "A", 20), (3, "B", 30), (4, "C", 40), (5, "C", 50)])
    table.delete("id = 2")
    if action in (replace_kind, drop):
        create_leaf(table)


@pytest.mark.parametrize("action", [create_leaf, create_table, replace_kind, drop], ids=lambda each: each.__name__)
def test_a_killed_builder_leaves_all_of_an_index_or_nothing(tmp_path: Path, action: Callable[[Any], None]) -> None:
    whole = Place(str(tmp_path / "whole"))
    template(whole, action)
    before = state(whole)
    steps = dying.run(_act, (action, whole), _steps, None)
    after = state(whole)
    assert before != after

    for number, kill in enumerate(kills(steps, action.__name__, SAMPLE)):
        place = Place(str(tmp_path / str(number)))
        template(place, action)
        dying.run(_act, (action, place), _steps, kill)
        left = state(place)
        assert left in (before, after), kill
        table = opened(place)
        for dataset in (table.to_lance(), table.publish_lance()):
            assert sorted(dataset.to_table(filter="id > 0")["id"].to_pylist()) == IDS, kill
        assert sorted(table.scan("id > 0").to_arrow()["id"].to_pylist()) == IDS, kill
        if left == before:
            action(table)
        assert state(place) == after, kill
        shutil.rmtree(place.root)
