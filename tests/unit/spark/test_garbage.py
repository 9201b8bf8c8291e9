"""The sweep of a warehouse: what no row names and is ours goes, once it is old, and nothing else ever does."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import ConcurrentModificationError, NamespaceNotFoundError, ServiceUnavailableError
from lancepart.layout.opening import moved
from lancepart.model.ids import leaf_location
from lancepart.queries.warehouse import Warehouse
from lancepart.spark.protocol import Request, dump
from lancepart.spark.service import respond
from lancepart.storage import leaf_data, removal
from lancepart.storage.manifest import Manifest
from tests.concurrency.test_lost_answers import chosen
from tests.support import proxy, s3
from tests.support.catalogs import Place
from tests.unit.queries.test_warehouse import make

DAY = 86_400
SCHEMA = {"type": "struct", "fields": [{"name": "k", "type": "string", "nullable": True, "metadata": {}}]}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.at(tmp_path / "warehouse")
    made.create_namespace(["ns"], {})
    return made


def aged(warehouse: Warehouse, days: int = 4) -> None:
    """Make all files look older."""
    then = time.time() - days * DAY
    for path in Path(warehouse.catalog.root.uri).rglob("*"):
        os.utime(path, (then, then))


def swept(warehouse: Warehouse, **options: Any) -> tuple[str, ...]:
    return lp.spark.remove_orphans(warehouse.catalog.root.uri, **options).locations


def there(warehouse: Warehouse) -> set[str]:
    return {each.name for each in Path(warehouse.catalog.root.uri).iterdir()} - {"__manifest"}


def test_what_no_row_names_goes_when_it_is_old(warehouse: Warehouse) -> None:
    kept, lost = make(warehouse, "ns", "t"), make(warehouse, "ns", "lost")
    warehouse.publish(["ns", "t"], kept, {}, replaced=None)
    assert swept(warehouse) == ()
    aged(warehouse)
    assert swept(warehouse, older_than=timedelta(days=5)) == ()
    found = lp.spark.remove_orphans(warehouse.catalog.root.uri, dry_run=True)
    assert (found.locations, found.changed, found.removed_files > 3, found.freed_bytes > 0) == ((lost,), 1, True, True)
    assert there(warehouse) == {kept, lost}
    newest = next(Path(warehouse.catalog.root.uri, lost).rglob("*.lance"))
    os.utime(newest)
    assert swept(warehouse) == ()
    aged(warehouse)
    assert swept(warehouse) == (lost,)
    assert there(warehouse) == {kept}
    assert lp.open_table(warehouse.catalog.root.uri, namespace=["ns", "t"]).scan().count() == 1


def straggle(warehouse: Warehouse, location: str) -> None:
    """What a task does that still has rows to write when its statement has failed and tidied up."""
    rows = pa.table({"id": [1], "k": [1]})
    leaf = leaf_location("a job", "v1$k7m2n9p4q8r5s3t6$dataset")
    leaf_data.stage(moved(warehouse.catalog.root, location), leaf, rows.to_reader(), base=None)


def test_what_a_straggler_or_a_crash_leaves_of_a_table_goes(warehouse: Warehouse) -> None:
    straggled, cut = warehouse.place(["ns", "a"])[0], make(warehouse, "ns", "b")
    straggle(warehouse, straggled)
    shutil.rmtree(Path(warehouse.catalog.root.uri, cut, "__manifest", "data"))
    assert there(warehouse) == {straggled, cut}
    aged(warehouse)
    assert set(swept(warehouse)) == {straggled, cut}
    assert there(warehouse) == set()


def test_what_is_not_ours_or_has_a_row_stays(warehouse: Warehouse) -> None:
    root = warehouse.catalog.root.uri
    warehouse.publish(["ns", "t"], make(warehouse, "ns", "t"), {}, replaced=None)
    warehouse.rename(["ns", "t"], ["u"])
    lance.write_dataset(pa.table({"id": [1]}), f"{root}/00000001_ns$plain")
    with_note = make(warehouse, "ns", "noted")
    Path(root, with_note, "note.txt").write_text("keep me")
    lp.create_table(f"{root}/by_path", pa.schema([("k", pa.string())]), ["k"])
    other = Warehouse.at(f"{root}/00000002_catalog")
    other.create_namespace(["x"], {})
    lp.create_table(f"{root}/00000003_tree", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"], layout="hive")
    os.symlink(Path(root).parent, f"{root}/00000004_link")
    Path(root, "00000005_empty").mkdir()
    before = there(warehouse)
    aged(warehouse)
    assert swept(warehouse) == ()
    assert there(warehouse) == before


def rows_in(warehouse: Warehouse, name: str) -> int:
    return lp.open_table(warehouse.catalog.root.uri, namespace=["ns", name]).scan().count()


def test_a_table_that_was_swept_while_it_was_made_is_not_published(warehouse: Warehouse) -> None:
    location = make(warehouse, "ns", "t")
    aged(warehouse)
    assert swept(warehouse) == (location,)
    with pytest.raises(ConcurrentModificationError, match="took longer to make"):
        warehouse.publish(["ns", "t"], location, {}, replaced=None)
    assert warehouse.tables(["ns"]) == []


def test_a_table_whose_sweep_was_cut_short_is_not_published(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = make(warehouse, "ns", "t")
    aged(warehouse)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "remove_root", killed)
        with pytest.raises(KeyboardInterrupt):
            swept(warehouse)
    with pytest.raises(ConcurrentModificationError, match="took longer to make"):
        warehouse.publish(["ns", "t"], location, {}, replaced=None)
    aged(warehouse)
    assert swept(warehouse) == (location,)


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["looked", "claimed", "named"])
def test_a_sweep_and_a_publish_that_meet_leave_a_whole_table_or_none(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The publish comes in the middle of the sweep: after it looked, when it decided, when it looked for the row."""
    location = make(warehouse, "ns", "t")
    aged(warehouse)
    met = []

    def publish() -> None:
        if not met:
            met.append(True)
            with contextlib.suppress(ConcurrentModificationError):
                warehouse.publish(["ns", "t"], location, {}, replaced=None)

    def before(function: Any) -> Any:
        return lambda *given, **options: (publish(), function(*given, **options))[1]

    def after(function: Any) -> Any:
        return lambda *given, **options: (function(*given, **options), publish())[0]

    if step == "looked":
        monkeypatch.setattr(removal, "doom", before(removal.doom))
    elif step == "claimed":
        monkeypatch.setattr(removal, "doom", after(removal.doom))
    else:
        monkeypatch.setattr(removal, "remove_root", before(removal.remove_root))
    gone = swept(warehouse)
    assert met
    assert (gone, warehouse.tables(["ns"])) in [((location,), []), ((), ["t"])]
    if not gone:
        assert rows_in(warehouse, "t") == 1


@pytest.mark.parametrize("replacing", [False, True])
def test_a_publish_that_waited_for_days_before_its_row_came_is_taken_back(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, replacing: bool
) -> None:
    if replacing:
        old = make(warehouse, "ns", "t")
        warehouse.publish(["ns", "t"], old, {}, replaced=None)
    location = make(warehouse, "ns", "t")
    commit = Manifest.publish

    def late(self: Manifest, snapshot: Any, change: Any) -> int:
        aged(warehouse)
        monkeypatch.undo()
        assert swept(warehouse) == (location,)
        return commit(self, snapshot, change)

    monkeypatch.setattr(Manifest, "publish", late)
    with pytest.raises(ConcurrentModificationError, match="took longer to make"):
        warehouse.publish(["ns", "t"], location, {}, replaced=old if replacing else None)
    assert warehouse.tables(["ns"]) == (["t"] if replacing else [])
    if replacing:
        assert rows_in(warehouse, "t") == 1


def test_what_a_drop_that_was_cut_short_left_goes(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    location = make(warehouse, "ns", "t")
    warehouse.publish(["ns", "t"], location, {}, replaced=None)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "remove_root", killed)
        with pytest.raises(KeyboardInterrupt):
            warehouse.drop(["ns", "t"])
    aged(warehouse)
    assert swept(warehouse) == (location,)


def test_without_a_catalog_nothing_is_garbage(warehouse: Warehouse) -> None:
    make(warehouse, "ns", "t")
    shutil.rmtree(Path(warehouse.catalog.root.uri, "__manifest"))
    aged(warehouse)
    with pytest.raises(NamespaceNotFoundError, match="no catalog"):
        swept(warehouse)


def test_a_directory_that_a_row_names_is_never_discarded(warehouse: Warehouse) -> None:
    location = make(warehouse, "ns", "t")
    warehouse.publish(["ns", "t"], location, {}, replaced=None)
    warehouse.discard(location)
    assert there(warehouse) == {location}
    warehouse.publish(["ns", "t"], location, {}, replaced="gone before")
    assert warehouse.find(["ns", "t"]).location == location


def create(root: str, mode: str, **options: str) -> str:
    """What the jar asks for CREATE and REPLACE TABLE, and its answer."""
    body = {"mode": mode, "id": ["t"], "schema": SCHEMA, "by": ["k"], "properties": {}}
    given = {"warehouse": root, **{f"storage.{key}": value for key, value in options.items()}}
    return respond(json.dumps(dump(Request(id=1, op="create", body=body, options=given))))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ServiceUnavailableError])
@pytest.mark.parametrize("mode", ["create", "create_or_replace"])
def test_a_table_whose_publish_was_cut_off_stays(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], mode: str
) -> None:
    """The commit landed, and whoever asked for it never heard of it."""
    root, commit = warehouse.catalog.root.uri, Manifest.publish
    if mode != "create":
        create(root, "create")

    def cut(self: Manifest, snapshot: Any, change: Any) -> int:
        done = commit(self, snapshot, change)
        if self.root.uri == root:
            raise error("the connection was lost")
        return done

    monkeypatch.setattr(Manifest, "publish", cut)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            create(root, mode)
    else:
        create(root, mode)
    monkeypatch.undo()
    assert lp.open_table(root, namespace=["t"]).scan().count() == 0


def test_a_table_whose_publish_can_not_be_looked_up_stays(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, commit = warehouse.catalog.root.uri, Manifest.publish
    cut_off = []

    def cut(self: Manifest, snapshot: Any, change: Any) -> int:
        if self.root.uri != root:
            return commit(self, snapshot, change)
        commit(self, snapshot, change)
        cut_off.append(True)
        raise ServiceUnavailableError("the connection was lost")

    def look(self: Manifest, version: int | None = None, open: Any = Manifest.snapshot) -> Any:
        if cut_off:
            raise ServiceUnavailableError("the connection is lost")
        return open(self, version)

    monkeypatch.setattr(Manifest, "publish", cut)
    monkeypatch.setattr(Manifest, "snapshot", look)
    assert "connection is lost" in create(root, "create")
    monkeypatch.undo()
    assert lp.open_table(root, namespace=["t"]).scan().count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["create", "create_or_replace"])
def test_an_answer_that_was_lost_loses_no_table(s3_server: s3.Server, mode: str) -> None:
    """Whichever write's answer gets lost, the name that is there afterwards has its table, and nothing else is left."""
    with proxy.losing(s3_server.endpoint) as losing:
        made_through(losing, s3_server.place(), mode, None)
        for number in chosen(losing.writes, mode):
            place = s3_server.place()
            told = made_through(losing, place, mode, number)
            assert "error" not in told, (number, told)
            found = Warehouse.at(place.root, place.storage_options)
            table = lp.open_table(place.root, namespace=["t"], storage_options=place.storage_options)
            assert table.scan().count() == 0, number
            names, _ = found.catalog.files.children()
            assert set(names) - {"__manifest"} == {found.find(["t"]).location}, number


def made_through(losing: proxy.Proxy, place: Place, mode: str, number: int | None) -> Any:
    """Make a table with the answer to one of the writes lost."""
    Warehouse.at(place.root, place.storage_options).create_namespace(["ns"], {})
    if mode != "create":
        create(place.root, "create", **place.storage_options)
    losing.lose(number)
    return create(place.root, mode, **{**place.storage_options, "aws_endpoint": losing.endpoint})
