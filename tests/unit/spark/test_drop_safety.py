"""A drop takes the table that its row means, or nothing at all, whatever the row says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    TableNotFoundError,
)
from lancepart.format.names import IDENTITY, OWN_ROOT
from lancepart.queries.warehouse import Warehouse
from lancepart.storage.manifest_rows import Change, RowUpdate, dump_metadata
from tests.unit.queries.test_warehouse import make
from tests.unit.spark.test_garbage import aged, swept

PLACES = [
    "",
    " ",
    ".",
    "..",
    "../other",
    "/",
    "ns",
    "photos",
    "catalog",
    "__manifest",
    "%2e%2e",
    "//",
    "link",
    "plain.lance",
]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse with a table, and with all kinds of things beside it."""
    made = Warehouse.at(tmp_path / "warehouse")
    made.create_namespace(["ns"], {})
    made.publish(["ns", "t"], make(made, "ns", "t"), {}, replaced=None)
    root = Path(made.catalog.root.uri)
    for folder in ("photos/data", "ns", "../other"):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").write_text("mine")
    Warehouse.at(root / "catalog").create_namespace(["x"], {})
    lance.write_dataset(pa.table({"id": [1]}), root / "plain.lance")
    os.symlink("photos", root / "link")
    return made


def catalog_of(warehouse: Warehouse) -> Any:
    return lp.DirectoryNamespace(root=warehouse.catalog.root.uri)


def files(warehouse: Warehouse) -> set[str]:
    """All files beneath and beside the warehouse, apart from its manifest."""
    root = Path(warehouse.catalog.root.uri)
    found = {str(path.relative_to(root.parent)) for path in root.parent.rglob("*") if path.is_file()}
    return {path for path in found if not path.startswith("warehouse/__manifest")}


def retold(warehouse: Warehouse, **told: str) -> None:
    """Let the row of the table say something else, as only who writes to the manifest itself can."""
    row = warehouse.catalog.snapshot().row("ns$t")
    assert row is not None
    values = {"metadata": dump_metadata({**(row.metadata or {}), **told})}
    warehouse.catalog.manifest.transact(
        lambda snapshot, retry: (Change(updates=(RowUpdate(object_id="ns$t", values=values),)), None)
    )


def test_callers_do_not_set_properties_of_ours(warehouse: Warehouse) -> None:
    catalog, own = catalog_of(warehouse), {OWN_ROOT: ""}
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, pa.schema([("id", pa.int64())])):
        pass
    calls: list[Callable[[], Any]] = [
        lambda: catalog.create_namespace(ln.CreateNamespaceRequest(id=["x"], properties=own)),
        lambda: catalog.create_namespace(ln.CreateNamespaceRequest(id=["ns"], properties=own, mode="overwrite")),
        lambda: catalog.declare_table(ln.DeclareTableRequest(id=["x"], properties=own)),
        lambda: catalog.create_table(ln.CreateTableRequest(id=["x"], properties=own), body.getvalue().to_pybytes()),
        lambda: catalog.register_table(ln.RegisterTableRequest(id=["x"], location="plain.lance", properties=own)),
        lambda: catalog.set_root_properties(own),
        lambda: warehouse.create_namespace(["x"], own),
        lambda: warehouse.alter_namespace(["ns"], own),
        lambda: warehouse.alter_properties(["ns", "t"], own),
        lambda: warehouse.publish(["x"], "somewhere", own, replaced=None),
    ]
    before = files(warehouse), warehouse.catalog.snapshot().version

    for call in calls:
        with pytest.raises(InvalidInputError, match="lancepart's own"):
            call()

    assert (files(warehouse), warehouse.catalog.snapshot().version) == before


@pytest.mark.parametrize("identified", [True, False])
def test_a_row_that_means_another_place_drops_nothing(warehouse: Warehouse, identified: bool) -> None:
    before = files(warehouse)
    for place in PLACES:
        retold(warehouse, **{OWN_ROOT: place}, **({} if identified else {IDENTITY: ""}))
        with pytest.raises(LanceNamespaceError):
            warehouse.drop(["ns", "t"])
        with pytest.raises(LanceNamespaceError):
            warehouse.drop_namespace(["ns"], cascade=True)
        with pytest.raises(LanceNamespaceError):
            catalog_of(warehouse).drop_namespace(ln.DropNamespaceRequest(id=["ns"], behavior="Cascade"))
        warehouse.discard(place)
        assert files(warehouse) == before, place
        assert warehouse.catalog.snapshot().row("ns$t") is not None


def test_a_row_that_means_another_table_drops_nothing(warehouse: Warehouse) -> None:
    stray = make(warehouse, "ns", "stray")
    retold(warehouse, **{OWN_ROOT: stray})

    with pytest.raises(InvalidTableStateError, match="not the one that the catalog's row refers to"):
        warehouse.drop(["ns", "t"])

    assert lp.open_table(f"{warehouse.catalog.root.uri}/{stray}").scan().count() == 1


def test_a_row_from_before_there_were_ids_drops_its_table(warehouse: Warehouse) -> None:
    location = warehouse.find(["ns", "t"]).location
    retold(warehouse, **{IDENTITY: ""})

    assert warehouse.drop(["ns", "t"])

    assert not any(location in path for path in files(warehouse))


def test_a_renamed_replaced_or_altered_table_keeps_its_id(warehouse: Warehouse) -> None:
    warehouse.rename(["ns", "t"], ["u"])
    warehouse.alter_properties(["u"], {"a": "b"})
    old = warehouse.find(["u"])
    assert old.identity

    warehouse.publish(["u"], make(warehouse, "u"), {}, replaced=old.location)

    assert warehouse.find(["u"]).identity not in (None, old.identity)
    assert not any(old.location in path for path in files(warehouse))
    assert warehouse.drop(["u"])


def test_a_table_whose_directory_is_gone_is_dropped(warehouse: Warehouse) -> None:
    shutil.rmtree(Path(warehouse.catalog.root.uri, warehouse.find(["ns", "t"]).location))

    assert warehouse.drop(["ns", "t"])
    assert warehouse.tables(["ns"]) == []


def test_a_partitioned_table_is_no_empty_namespace(warehouse: Warehouse) -> None:
    catalog, before = catalog_of(warehouse), files(warehouse)

    with pytest.raises(NamespaceNotEmptyError, match="partitioned table"):
        catalog.drop_namespace(ln.DropNamespaceRequest(id=["ns", "t"]))
    with pytest.raises(NamespaceAlreadyExistsError, match="partitioned table"):
        catalog.create_namespace(ln.CreateNamespaceRequest(id=["ns", "t"], mode="overwrite"))
    assert files(warehouse) == before

    catalog.drop_namespace(ln.DropNamespaceRequest(id=["ns", "t"], behavior="Cascade"))
    assert warehouse.tables(["ns"]) == []
    assert len(files(warehouse)) < len(before)


def test_no_plain_table_is_registered_at_inside_or_around_a_partitioned_one(warehouse: Warehouse) -> None:
    catalog, location = catalog_of(warehouse), warehouse.find(["ns", "t"]).location
    leaf = next(path for path in Path(warehouse.catalog.root.uri, location).iterdir() if "dataset" in path.name)

    for place in (location, f"{location}/{leaf.name}"):
        with pytest.raises(LanceNamespaceError):
            catalog.register_table(ln.RegisterTableRequest(id=["x"], location=place))
        with pytest.raises(LanceNamespaceError):
            catalog.declare_table(ln.DeclareTableRequest(id=["x"], location=place))

    assert lp.open_table(warehouse.catalog.root.uri, namespace=["ns", "t"]).scan().count() == 1


def test_the_listing_does_not_drop_a_partitioned_table(tmp_path: Path) -> None:
    lp.create_table(tmp_path / "events.lance", pa.schema([("k", pa.string())]), ["k"])
    v1 = lp.DirectoryNamespace(root=tmp_path, manifest_enabled=False)

    with pytest.raises(InvalidTableStateError, match="another table"):
        v1.drop_table(ln.DropTableRequest(id=["events"]))

    assert lp.open_table(tmp_path / "events.lance").scan().count() == 0


def test_a_drop_of_a_linked_table_leaves_what_the_link_leads_to(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "real.lance")
    os.symlink("real.lance", tmp_path / "link.lance")

    for manifest in (False, True):
        catalog = lp.DirectoryNamespace(root=tmp_path, manifest_enabled=manifest)
        with pytest.raises(InvalidInputError, match="symbolic link"):
            catalog.drop_table(ln.DropTableRequest(id=["link"]))

    assert lance.dataset(tmp_path / "real.lance").count_rows() == 1
    assert not (tmp_path / "real.lance" / ".lance-deregistered").exists()


def test_a_forgotten_table_is_kept(warehouse: Warehouse) -> None:
    location = warehouse.find(["ns", "t"]).location
    answer = catalog_of(warehouse).deregister_table(ln.DeregisterTableRequest(id=["ns", "t"]))
    assert answer.location == location
    with pytest.raises(TableNotFoundError):
        warehouse.find(["ns", "t"])

    aged(warehouse)

    assert swept(warehouse) == ()
    assert lp.open_table(f"{warehouse.catalog.root.uri}/{location}").scan().count() == 1


def test_a_row_that_can_not_be_dropped_can_be_forgotten(warehouse: Warehouse) -> None:
    before = files(warehouse)
    retold(warehouse, **{OWN_ROOT: "../other"})

    catalog_of(warehouse).deregister_table(ln.DeregisterTableRequest(id=["ns", "t"]))

    assert warehouse.tables(["ns"]) == []
    assert files(warehouse) == before
