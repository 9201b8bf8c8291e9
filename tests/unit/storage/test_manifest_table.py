"""``__manifest`` as a Lance table: what another client made is made ready, and one merge changes it."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lancepart.errors import ConcurrentModificationError, InternalError, InvalidTableStateError
from lancepart.format.names import NAMESPACE
from lancepart.format.rows import SCHEMA, Row
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change
from lancepart.storage.manifest_table import create, refuse_doubles
from lancepart.storage.root import Root
from tests.support.catalogs import Place


def row(object_id: str) -> Row:
    """A namespace with nothing but its identity."""
    return Row(object_id=object_id, object_type=NAMESPACE)


def foreign(place: Place, ids: list[str | None]) -> Manifest:
    """A manifest that another client made, whose key may be null."""
    schema = SCHEMA.set(0, pa.field("object_id", pa.string()))
    rows = [{"object_id": name, "object_type": NAMESPACE} for name in ids]
    lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), f"{place.root}/__manifest")
    return Manifest(Root.parse(place.root))


def test_a_manifest_whose_key_is_nullable_can_be_written(local: Place) -> None:
    manifest = foreign(local, ["a", "b"])

    manifest.transact(lambda snapshot, retry: (Change(inserts=(row("c"),), deletes=("a",)), None))

    assert manifest.snapshot().names("", NAMESPACE) == ["b", "c"]
    stale = manifest.snapshot()
    manifest.publish(stale, Change(inserts=(row("d"),)))
    with pytest.raises(ConcurrentModificationError):
        manifest.publish(stale, Change(inserts=(row("d"),)))


def test_a_manifest_with_a_null_key_says_so(local: Place) -> None:
    manifest = foreign(local, ["a", None])

    with pytest.raises(InvalidTableStateError, match="object_id is null"):
        manifest.transact(lambda snapshot, retry: (Change(inserts=(row("c"),)), None))


def test_of_two_that_create_it_the_second_leaves_it_as_it_is(local: Place) -> None:
    root = Root.parse(local.root)
    create(root, "__manifest", f"{root.uri}/__manifest")
    manifest = Manifest(root)
    manifest.transact(lambda snapshot, retry: (Change(inserts=(row("a"),)), None))

    create(root, "__manifest", f"{root.uri}/__manifest")

    assert Manifest(root).snapshot().names("", NAMESPACE) == ["a"]


def test_a_change_names_an_object_once() -> None:
    with pytest.raises(InternalError, match="twice"):
        refuse_doubles(Change(inserts=(row("a"),), deletes=("a",)))
