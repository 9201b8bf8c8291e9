"""What must hold of a catalog after any race and any crash."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from typing import Any

import lance

from lancepart.storage.files import Files
from lancepart.storage.root import Root
from tests.support.catalogs import Place

MANIFEST = "__manifest"


def manifest(place: Place) -> lance.LanceDataset:
    """The manifest table as plain pylance opens it."""
    return lance.dataset(place.uri(MANIFEST), storage_options=place.storage_options)


def files(place: Place) -> Files:
    """The files beneath a root."""
    return Files(Root.parse(place.root, place.options))


def directories(place: Place) -> set[str]:
    """The directories in the root, empty ones of a local disk among them, without the manifest's own."""
    found = files(place).children()[0] if place.options else os.listdir(place.root)
    return set(found) - {MANIFEST}


def rows(place: Place) -> dict[str, dict[str, Any]]:
    """The manifest's rows by their keys, none of which may stand twice."""
    found = manifest(place).to_table().to_pylist()
    counted = Counter(row["object_id"] for row in found)
    assert {key: times for key, times in counted.items() if times > 1} == {}
    return {row["object_id"]: row for row in found}


def whole(place: Place, *, garbage: Collection[str] | None = ()) -> dict[str, dict[str, Any]]:
    """The rows of a catalog that is whole: no key twice, no child without its parent, no table without a directory.

    ``garbage`` names the directories that no row names; ``None`` allows any, as after a crash.
    """
    found = rows(place)
    for key, row in found.items():
        parent = key.rpartition("$")[0]
        wanted = "table" if row["object_type"] == "table_version" else "namespace"
        assert not parent or found.get(parent, {}).get("object_type") == wanted, f"{key} has lost its parent"
    locations = {row["location"] for row in found.values() if row["object_type"] == "table"}
    standing = directories(place)
    assert locations <= standing, f"tables without a directory: {locations - standing}"
    if garbage is not None:
        assert standing - locations == set(garbage)
    return found
