"""A writer killed at any step leaves a table that reads as before it or as after it, and garbage that goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lancepart.storage import history
from tests.support import proxy, s3
from tests.support.catalogs import Place
from tests.support.dying import Kill
from tests.support.processes import TORTURE, kills
from tests.support.tiers import one_in
from tests.transactions import doomed
from tests.transactions.aged import grow_old, make_aged
from tests.transactions.tables import assert_whole, content, data, make, opened

pytestmark = pytest.mark.torture

SAMPLE = 2


@pytest.fixture(scope="module")
def template(tmp_path_factory: Any) -> Path:
    """A table that has seen much."""
    root = tmp_path_factory.mktemp("kills") / "t"
    make_aged(Place(str(root)))
    return root


@pytest.mark.parametrize("action", one_in(8, doomed.ACTIONS), ids=lambda action: action.__name__)
def test_a_killed_writer_leaves_the_table_as_before_or_as_after(
    tmp_path: Path, template: Path, action: Callable[[Any], None]
) -> None:
    whole = Place(str(tmp_path / "whole"))
    shutil.copytree(template, whole.root)
    before = content(opened(whole))
    steps = doomed.run(action, whole)
    after = content(opened(whole))
    assert steps

    for number, kill in enumerate(kills(steps, action.__name__, SAMPLE)):
        place = Place(str(tmp_path / str(number)))
        shutil.copytree(template, place.root)
        doomed.run(action, place, kill)
        check_survivor(place, before, after, kill)
        shutil.rmtree(place.root)


def check_survivor(place: Place, before: Any, after: Any, kill: Kill) -> None:
    table = opened(place)
    found = content(table)
    assert found in (before, after), kill
    assert_whole(table)

    table.update({"x": "x + 1"}, "bank = 'A'")
    table.append(data([(100, "A", 0), (101, "Z", 0), (102, "N", 0)]))
    assert sum(content(table).values()) == sum(found.values()) + 3, kill
    assert_whole(table)

    last = content(table)
    tagged = content(opened(place, "start"))
    grow_old(Path(place.root))
    table.maintenance.remove_orphans(timedelta(hours=1), progress=False)
    assert table.maintenance.remove_orphans(timedelta(hours=1), progress=False).removed_files == 0, kill
    assert content(table) == last, kill
    assert content(opened(place, "start")) == tagged, kill
    kept = [
        table,
        opened(place, "start"),
        *(opened(place, version) for version in history.versions(table._manifest)[-9:]),
    ]
    named = {each["location"] for each in table.inspect.partitions().to_pylist()}
    older = {each["location"] for one in kept for each in one.inspect.partitions().to_pylist()}
    assert named | {"__manifest"} <= set(os.listdir(place.root)) <= named | older | {"__manifest"}, kill


@pytest.mark.slow
def test_a_weak_overwrite_that_was_killed_is_simply_run_again(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "t"))
    make(place, [(1, "A", 10), (3, "B", 30)], mode="weak")
    steps = doomed.run(doomed.overwrite, place)

    for kill in kills(steps, "weak", SAMPLE):
        again = Place(str(tmp_path / f"t{kill.step}{kill.after}"))
        make(again, [(1, "A", 10), (3, "B", 30)], mode="weak")
        doomed.run(doomed.overwrite, again, kill)
        doomed.overwrite(opened(again))
        assert dict(content(opened(again))) == {(3, "B", 30): 1, (7, "A", 1): 1, (8, "Z", 2): 1}


@pytest.fixture(scope="module")
def losing(s3_server: s3.Server) -> Iterator[proxy.Proxy]:
    with proxy.losing(s3_server.endpoint) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    "action", doomed.ACTIONS[:7] if TORTURE else [doomed.update], ids=lambda action: action.__name__
)
def test_a_commit_whose_answer_was_lost_is_made_once_and_reported_as_made(
    s3_server: s3.Server, losing: proxy.Proxy, action: Callable[[Any], None]
) -> None:
    rows = [(1, "A", 10), (2, "A", 20), (3, "B", 30)]
    place = s3_server.place()
    make(place, rows)
    losing.lose(None)
    action(through(losing, place))
    after, writes = content(opened(place)), losing.writes
    made = len(operations(place))

    for write in range(writes) if TORTURE else (writes // 2, writes - 1):
        place = s3_server.place()
        make(place, rows)
        losing.lose(write)
        action(through(losing, place))

        assert content(opened(place)) == after, write
        assert len(operations(place)) == made, write
        assert_whole(opened(place))


def through(running: proxy.Proxy, place: Place) -> Any:
    return opened(Place(place.root, {**place.options, "aws_endpoint": running.endpoint}))


def operations(place: Place) -> list[str]:
    return opened(place).inspect.snapshots()["transaction"].drop_null().to_pylist()
