"""The planning service keeps catalogs open: it reads nothing twice, and never answers from a catalog of before."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import TableNotFoundError
from lancepart.spark import catalog_messages, warm
from lancepart.spark.statements import respond
from lancepart.storage.snapshot import Snapshot


@pytest.fixture(autouse=True)
def _keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_KEPT", "_CATALOGS"):
        monkeypatch.setattr(warm, name, warm._Kept())
    warm.keep(8)


def made(root: Path, *tables: str, column: str = "x") -> None:
    warehouse = lp.connect(root)
    for name in tables:
        warehouse.create_table(name, pa.schema([(column, pa.int64())]), [])


def loaded(root: Path, name: str) -> catalog_messages.LoadReply:
    reply = respond({"warehouse": str(root)}, "load", catalog_messages.LoadRequest(id=(name,)))
    assert isinstance(reply, catalog_messages.LoadReply)
    return reply


def columns(reply: catalog_messages.LoadReply) -> list[str]:
    return [each["name"] for each in reply.schema["fields"]]


def test_the_rows_of_a_catalog_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"t{number}" for number in range(6)]
    made(tmp_path, *names)
    before = [loaded(tmp_path, name) for name in names]
    read: list[str] = []
    scan = Snapshot.scan

    def counted(self: Snapshot, where: str | None, *more: object, **named: object) -> pa.Table | None:
        read.append(self.root.uri)
        return scan(self, where, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Snapshot, "scan", counted)
    assert [loaded(tmp_path, name) for name in names] == before
    assert [uri for uri in read if uri.rstrip("/").endswith(tmp_path.name)] == []


def test_what_others_did_to_the_catalog_is_seen_at_once(tmp_path: Path) -> None:
    made(tmp_path, "a", "b")
    assert columns(loaded(tmp_path, "a")) == ["x"]
    lp.connect(tmp_path).drop_table("a")
    with pytest.raises(TableNotFoundError):
        loaded(tmp_path, "a")
    made(tmp_path, "a", column="y")
    assert (columns(loaded(tmp_path, "a")), columns(loaded(tmp_path, "b"))) == (["y"], ["x"])


def test_a_catalog_made_anew_with_the_same_numbers_is_another_one(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    made(root, "a", "b")
    first = warm.newest(lp.connect(root)._warehouse.catalog)
    assert columns(loaded(root, "b")) == ["x"]
    shutil.rmtree(root)
    made(root, "a", "c")
    second = warm.newest(lp.connect(root)._warehouse.catalog)
    assert second.version == first.version
    assert columns(loaded(root, "c")) == ["x"]
    with pytest.raises(TableNotFoundError):
        loaded(root, "b")


def test_a_plain_table_that_goes_is_gone(tmp_path: Path) -> None:
    made(tmp_path, "a")
    lance.write_dataset(pa.table({"z": [1]}), tmp_path / "plain.lance")
    assert columns(loaded(tmp_path, "plain")) == ["z"]
    shutil.rmtree(tmp_path / "plain.lance")
    with pytest.raises(TableNotFoundError):
        loaded(tmp_path, "plain")
