"""A publisher killed at any step leaves a dataset as before it or as after it, which collectors keep whole."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lancepart.maintain import collect
from lancepart.storage import history, index_facts, published
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.removal import UNION_DIRECTORY
from tests.support import dying
from tests.support.catalogs import Place
from tests.support.dying import Kill
from tests.support.processes import kills
from tests.transactions.aged import grow_old
from tests.transactions.tables import data, make, opened

pytestmark = [pytest.mark.torture, pytest.mark.slow]

DAYS = 10 * 86_400
SAMPLE = 2
STEPS: tuple[dying.Step, ...] = (
    (Manifest, "set_properties"),
    (history, "create_tag"),
    (history, "delete_tag"),
    (published, "create"),
    (published, "with_bases"),
    (published, "with_hidden"),
    (published, "replaced"),
    (index_facts, "with_entries"),
    (Files, "delete"),
)


def first(table: Any) -> None:
    table.publish_lance()


def again(table: Any) -> None:
    table.publish_lance()


def other_columns(table: Any) -> None:
    table.rename_column("x", "y")
    table.add_column(pa.field("x", pa.int64()))
    table.publish_lance()


def give_up(table: Any) -> None:
    table.unpublish_lance()


def _steps() -> tuple[dying.Step, ...]:
    return STEPS


def _act(action: Callable[[Any], None], place: Place) -> None:
    action(opened(place))


def seen(place: Place) -> Counter[int] | None:
    """The ids that another client sees; None if it finds no dataset."""
    dataset = published.find(opened(place)._manifest.root, f"{place.root}/{UNION_DIRECTORY}")
    if dataset is None:
        return None
    found = Counter(dataset.to_table()["id"].to_pylist())
    assert Counter(dataset.to_table(filter="id >= 0")["id"].to_pylist()) == found
    return found


def template(place: Place, action: Callable[[Any], None]) -> Any:
    table = make(place, [(1, "A", 10), (2, "A", 20), (3, "B", 30)])
    table.delete("id = 2")
    if action is not first:
        table.publish_lance()
    table.append(data([(4, "A", 40), (5, "C", 50)]))
    table.maintenance.create_index("id", "BTREE", scope="leaf", progress=False)
    table.delete("id = 1")
    grow_old(Path(place.root), DAYS)
    return table


@pytest.mark.parametrize("action", [first, again, other_columns, give_up], ids=lambda action: action.__name__)
def test_a_killed_publisher_leaves_a_whole_dataset(tmp_path: Path, action: Callable[[Any], None]) -> None:
    whole = Place(str(tmp_path / "whole"))
    template(whole, action)
    before = seen(whole)
    steps = dying.run(_act, (action, whole), _steps, None)
    after = seen(whole)
    assert steps
    assert before != after

    for number, kill in enumerate(kills(steps, action.__name__, SAMPLE)):
        place = Place(str(tmp_path / str(number)))
        template(place, action)
        dying.run(_act, (action, place), _steps, kill)
        check_survivor(place, before, after, kill, empty=action is first)
        shutil.rmtree(place.root)


def content_ids(place: Place) -> Counter[int]:
    return Counter(opened(place).scan().to_arrow()["id"].to_pylist())


def check_survivor(place: Place, before: Any, after: Any, kill: Kill, *, empty: bool) -> None:
    table = opened(place)
    found = seen_or_broken(place)
    assert found in (before, after, "broken" if after is None else before, Counter() if empty else before), kill
    table.delete("id = 3")
    table.maintenance.compact(progress=False)
    for _ in range(2):
        grow_old(Path(place.root), DAYS)
        collect.expire(table._manifest, timedelta(0), progress=False)
        collect.remove_orphans(table._manifest, timedelta(0), progress=False)
        assert seen_or_broken(place) == found, kill

    table.publish_lance()
    assert seen(place) == content_ids(place), kill
    union = published.find(table._manifest.root, f"{place.root}/{UNION_DIRECTORY}")
    assert union is not None
    assert [(index.name, len(index.segments)) for index in union.describe_indices()] == [("id_idx", 2)], kill
    (shown,) = table.inspect.unions().to_pylist()
    assert shown["pinned"] == [shown["snapshot"]], kill
    table.unpublish_lance()
    assert seen(place) is None
    assert history.tags(table._manifest) == {}


def seen_or_broken(place: Place) -> Counter[int] | str | None:
    try:
        return seen(place)
    except Exception:
        return "broken"
