"""Tables that are dropped, or replaced by others, while writers, readers and collectors have them open."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import lancepart as lp
from lancepart.commit import writers
from lancepart.errors import TableNotFoundError
from lancepart.maintain import collect
from lancepart.maintain.collector_run import Collecting
from lancepart.storage.files import Files
from tests.support.catalogs import Place
from tests.transactions.tables import Row, assert_whole, content, data, make, opened
from tests.transactions.test_came_back import NOW

ROWS: list[Row] = [(1, "A", 1), (2, "B", 2)]


def drop(place: Place) -> None:
    lp.drop_table(place.root, storage_options=place.storage_options)


@pytest.mark.parametrize("use", ["scan", "count", "append"])
def test_a_table_that_took_the_place_of_another_is_read_and_written_at_the_same_number(place: Place, use: str) -> None:
    first = make(place, ROWS)
    assert first.scan().count() == 2
    drop(place)
    second = make(place, [(9, "A", 9)])
    assert second.version == first.version
    rows = Counter([(9, "A", 9)])

    if use == "append":
        first.append(data([(3, "B", 3)]))
        rows[3, "B", 3] += 1

    assert first.scan().count() == sum(rows.values())
    assert content(first) == content(opened(place)) == rows
    assert_whole(opened(place))


def test_a_long_write_to_a_table_that_was_dropped_leaves_nothing(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "LONG_SECONDS", -1.0)
    tx = make(local, ROWS).transaction()
    drop(local)

    with pytest.raises(lp.errors.LanceNamespaceError):
        tx.append(data([(3, "C", 3)]))
    tx.abandon()

    assert not Path(local.root).exists()


@pytest.mark.parametrize("when", ["delete_directory", "delete_manifest"])
def test_a_commit_while_a_table_is_removed_is_refused(local: Place, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    table, other = make(local, ROWS), opened(local)
    tx = other.transaction()
    tx.append(data([(3, "C", 3)]))
    remove = getattr(Files, when)
    refused: list[str] = []

    def late(*given: Any, **options: Any) -> None:
        for act in (lambda: table.append(data([(4, "A", 4)])), tx.commit, lambda: opened(local)):
            with pytest.raises(lp.errors.LanceNamespaceError) as error:
                act()
            refused.append(str(error.value))
        remove(*given, **options)

    monkeypatch.setattr(Files, when, late)
    drop(local)

    assert refused
    assert not Path(local.root).exists()


def test_a_table_whose_manifest_lost_its_files_to_a_removal_can_be_dropped(local: Place) -> None:
    """So a writer leaves it whose commit takes as long as the removal of the files."""
    make(local, ROWS)
    for path in Path(local.root, "__manifest", "data").iterdir():
        path.unlink()

    drop(local)

    assert not Path(local.root).exists()
    assert content(make(local, ROWS)) == Counter(ROWS)


def test_what_is_left_of_an_interrupted_removal_is_no_table_and_goes_with_the_next(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(local, ROWS)

    def cut(*given: Any, **options: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Files, "delete_manifest", cut)
        with pytest.raises(OSError, match="killed"):
            drop(local)
    assert not lp.exists(local.root)
    with pytest.raises(TableNotFoundError, match="drop_table"):
        opened(local)
    drop(local)

    assert not Path(local.root).exists()


@pytest.mark.parametrize("collector", ["expire", "remove_orphans"])
def test_a_collector_does_not_write_the_manifest_of_a_dropped_table_anew(
    local: Place, monkeypatch: pytest.MonkeyPatch, collector: str
) -> None:
    table = make(local, ROWS)
    table.delete("bank = 'A'")
    table.overwrite(data([(5, "B", 5)]))
    protect = Collecting.protect

    def late(own: Collecting, found: Any) -> Any:
        drop(local)
        return protect(own, found)

    monkeypatch.setattr(Collecting, "protect", late)
    run = {
        "expire": lambda: collect.expire(table._manifest, NOW, safe_age=NOW, progress=False),
        "remove_orphans": lambda: collect.remove_orphans(table._manifest, NOW, progress=False),
    }
    with pytest.raises(TableNotFoundError, match="dropped"):
        run[collector]()

    assert not Path(local.root).exists()
