"""Parts of table-wide indices go when no kept snapshot declares them, and not before; killed collectors do no harm."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lancepart.commit.transaction import Transaction
from lancepart.layout.declared_indices import declared
from lancepart.maintain import collect, indices
from lancepart.storage import table_index
from lancepart.storage.files import Files
from tests.support import dying
from tests.support.catalogs import Place
from tests.support.processes import kills
from tests.transactions.aged import grow_old
from tests.transactions.tables import data, make, opened

DAYS = 10 * 86_400


def parts(table: Any) -> set[str]:
    place = Path(table.root) / table_index.DIRECTORY
    return set(os.listdir(place)) if place.exists() else set()


def live(table: Any) -> set[str]:
    return {name for index in declared(table._manifest.snapshot()) for name in index.segments}


def rebuilt(place: Place) -> Any:
    """A table whose look-up of keys was built twice, long ago."""
    table = make(place, [(1, "A", 10), (2, "A", 20), (3, "B", 30)])
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)
    table.append(data([(4, "C", 40)]))
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)
    grow_old(Path(place.root), DAYS)
    table.append(data([(5, "D", 50)]))
    return opened(place)


def expire(table: Any) -> Any:
    return collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), progress=False)


def finds(table: Any) -> list[int]:
    return sorted(number for n in range(1, 6) for number in table.scan(f"id = {n}").to_arrow()["id"].to_pylist())


@pytest.mark.slow
def test_parts_that_no_kept_snapshot_declares_go(local: Place) -> None:
    table = rebuilt(local)
    (first,) = parts(table) - live(table)
    assert collect.remove_orphans(table._manifest, timedelta(0), progress=False).locations == ()
    assert parts(table) == {first, *live(table)}, "the snapshots between still declare the first one"

    done = expire(table)

    assert f"{table_index.DIRECTORY}/{first}" in done.locations
    assert done.freed_bytes > 0
    assert parts(table) == live(table)
    assert finds(table) == [1, 2, 3, 4, 5]


def test_a_tagged_snapshot_keeps_its_parts(local: Place) -> None:
    table = make(local, [(1, "A", 10)])
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)
    table.tags.create("kept", table.version)
    table.append(data([(4, "C", 40)]))
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)
    grow_old(Path(local.root), DAYS)
    table.append(data([(5, "D", 50)]))
    before = parts(table)
    assert len(before) == 2

    expire(table)
    assert parts(table) == before

    table.tags.delete("kept")
    grow_old(Path(local.root), DAYS)
    expire(table)
    assert parts(table) == live(table)


def test_what_nobody_knows_is_kept_and_reported(local: Place) -> None:
    table = rebuilt(local)
    place = Path(local.root) / table_index.DIRECTORY
    (first,) = parts(table) - live(table)
    (place / "notes").mkdir()
    (place / "notes" / "mine.txt").write_text("mine")
    (place / first / "mine.txt").write_text("mine")
    grow_old(place, DAYS)

    done = expire(table)

    assert {f"{table_index.DIRECTORY}/notes", f"{table_index.DIRECTORY}/{first}/mine.txt"} <= set(done.kept)
    assert parts(table) == {first, "notes", *live(table)}


def test_what_a_builder_is_at_work_on_is_kept_for_longer(local: Place) -> None:
    table = rebuilt(local)
    place = Path(local.root) / table_index.DIRECTORY
    (first,) = parts(table) - live(table)
    (place / first / table_index.FACTS).unlink()
    grow_old(place / first, -DAYS + 3_600)
    collect.expire(table._manifest, timedelta(minutes=30), safe_age=timedelta(0), progress=False)
    assert first in parts(table)

    grow_old(place / first, DAYS)
    expire(table)
    assert first not in parts(table)


def test_a_part_that_is_described_and_not_declared_yet_stays(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(local, [(1, "A", 10), (2, "A", 20), (3, "B", 30), (4, "C", 40), (5, "C", 50)])
    plain = Transaction.commit

    def collected(own: Transaction) -> Any:
        collect.remove_orphans(opened(local)._manifest, timedelta(0), progress=False)
        expire(opened(local))
        return plain(own)

    monkeypatch.setattr(Transaction, "commit", collected)
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)

    assert len(parts(table)) == 1
    assert parts(table) == live(table)
    assert table.inspect.broken_indices().num_rows == 0
    assert finds(opened(local)) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_part_that_is_declared_meanwhile_stays(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rebuilt(local)
    (first,) = parts(table) - live(table)
    (known,) = declared(table._manifest.snapshot())
    plain = collect.Collecting.protect

    def declaring(run: Any, found: Any) -> Any:
        again = type(known)(**{**{name: getattr(known, name) for name in known.__slots__}, "segments": (first,)})
        transaction = Transaction(manifest=table._manifest, operation="index")
        transaction.declares = indices.declaring(again)
        transaction.commit()
        return plain(run, found)

    monkeypatch.setattr(collect.Collecting, "protect", declaring)
    expire(table)

    assert first in parts(table)
    assert finds(opened(local)) == [1, 2, 3, 4, 5]


def _steps() -> tuple[dying.Step, ...]:
    return ((Files, "delete"),)


def _act(place: Place) -> None:
    expire(opened(place))


@pytest.mark.torture
@pytest.mark.slow
def test_a_killed_collector_leaves_no_half_part_in_use(tmp_path: Path) -> None:
    whole = Place(str(tmp_path / "whole"))
    rebuilt(whole)
    steps = dying.run(_act, (whole,), _steps, None)
    assert steps

    for number, kill in enumerate(kills(steps, "upkeep", 3)):
        place = Place(str(tmp_path / str(number)))
        table = rebuilt(place)
        dying.run(_act, (place,), _steps, kill)
        assert finds(opened(place)) == [1, 2, 3, 4, 5], kill
        grow_old(Path(place.root), DAYS)
        expire(opened(place))
        assert parts(table) == live(opened(place)), kill
        assert finds(opened(place)) == [1, 2, 3, 4, 5], kill
