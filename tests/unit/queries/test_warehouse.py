"""A warehouse without Spark: a table is there when its row is, whatever fails or happens at the same time."""

from __future__ import annotations

from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.catalog.context import Catalog
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from lancepart.queries.warehouse import Warehouse

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse(Catalog.of({"root": str(tmp_path / "warehouse")}))
    made.create_namespace(["ns"], {"owner": "data"})
    return made


def make(warehouse: Warehouse, *path: str) -> str:
    """A table's directory, without a row."""
    location, _ = warehouse.place(path)
    lp.create_table(warehouse.catalog.root.uri_of(location), SCHEMA, ["k"]).append([{"id": 1, "k": path[-1]}])
    return location


def test_a_directory_without_a_row_is_no_table(warehouse: Warehouse) -> None:
    location = make(warehouse, "ns", "t")
    assert warehouse.tables(["ns"]) == []
    with pytest.raises(TableNotFoundError):
        warehouse.find(["ns", "t"])
    warehouse.publish(["ns", "t"], location, {"a": "b"}, replaced=None)
    assert (warehouse.tables(["ns"]), warehouse.namespaces(["ns"])) == (["t"], [])
    assert warehouse.find(["ns", "t"]).properties == {"a": "b"}
    assert lp.open_table(warehouse.catalog.root.uri, namespace=["ns", "t"]).scan().count() == 1


def test_a_drop_that_dies_has_dropped_the_table(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse.publish(["ns", "t"], make(warehouse, "ns", "t"), {}, replaced=None)

    def die(self: Warehouse, location: str, identity: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Warehouse, "discard", die)
    with pytest.raises(KeyboardInterrupt):
        warehouse.drop(["ns", "t"])
    assert warehouse.tables(["ns"]) == []
    assert warehouse.drop(["ns", "t"]) is False


def test_of_two_that_make_one_table_one_wins(warehouse: Warehouse) -> None:
    first, second = make(warehouse, "ns", "t"), make(warehouse, "ns", "t")
    warehouse.publish(["ns", "t"], first, {}, replaced=None)
    with pytest.raises(TableAlreadyExistsError):
        warehouse.publish(["ns", "t"], second, {}, replaced=None)
    warehouse.publish(["ns", "t"], second, {}, replaced=first)
    with pytest.raises(ConcurrentModificationError):
        warehouse.publish(["ns", "t"], make(warehouse, "ns", "t"), {}, replaced=first)
    assert warehouse.find(["ns", "t"]).location == second
    assert warehouse.catalog.files.is_empty(first)


def test_a_table_is_no_namespace(warehouse: Warehouse) -> None:
    warehouse.publish(["ns", "t"], make(warehouse, "ns", "t"), {}, replaced=None)
    with pytest.raises(NamespaceNotFoundError, match="is a table"):
        warehouse.tables(["ns", "t"])
    with pytest.raises(NamespaceNotFoundError, match="is a table"):
        warehouse.place(["ns", "t", "u"])
    with pytest.raises(NamespaceNotFoundError, match="is a table"):
        warehouse.drop_namespace(["ns", "t"], cascade=True)
    with pytest.raises(TableAlreadyExistsError, match="namespace"):
        warehouse.place(["ns"])


def test_properties_of_ours_are_ours(warehouse: Warehouse) -> None:
    warehouse.publish(["ns", "t"], location := make(warehouse, "ns", "t"), {}, replaced=None)
    with pytest.raises(InvalidInputError, match="lancepart's own"):
        warehouse.alter_properties(["ns", "t"], {"lancepart.root": "elsewhere"})
    warehouse.alter_properties(["ns", "t"], {"a": "b", "c": None})
    assert warehouse.find(["ns", "t"]).location == location


def test_a_rename_moves_the_row_only(warehouse: Warehouse) -> None:
    warehouse.publish(["ns", "t"], location := make(warehouse, "ns", "t"), {"a": "b"}, replaced=None)
    warehouse.rename(["ns", "t"], ["u"])
    assert (warehouse.tables(["ns"]), warehouse.tables([])) == ([], ["u"])
    assert (warehouse.find(["u"]).location, warehouse.find(["u"]).properties) == (location, {"a": "b"})
    warehouse.publish(["ns", "t"], make(warehouse, "ns", "t"), {}, replaced=None)
    with pytest.raises(TableAlreadyExistsError):
        warehouse.rename(["u"], ["ns", "t"])


def test_other_clients_read_a_valid_catalog(warehouse: Warehouse) -> None:
    warehouse.publish(["ns", "t.lance"], make(warehouse, "ns", "t.lance"), {}, replaced=None)
    lance.write_dataset(pa.table({"id": [1]}), f"{warehouse.catalog.root.uri}/plain.lance")
    other = lance_namespace.connect("dir", {"root": warehouse.catalog.root.uri})
    assert list(other.list_namespaces(lance_namespace.ListNamespacesRequest(id=["ns"])).namespaces) == ["t.lance"]
    assert list(other.list_tables(lance_namespace.ListTablesRequest(id=[])).tables) == ["plain"]
    assert (warehouse.tables([]), warehouse.find(["plain"]).partitioned) == (["plain"], False)
    assert warehouse.drop(["plain"])
    warehouse.drop_namespace(["ns"], cascade=True)
    names = [each.name for each in Path(warehouse.catalog.root.uri).iterdir()]
    assert names == ["__manifest"]
