"""Files beneath a table: their kinds, and which of them a version needs."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

from lancepart.storage import leaf_files
from lancepart.storage.leaf_files import Kind
from lancepart.storage.root import Root
from tests.support.catalogs import Place, rows


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("_versions/1.manifest", Kind.MANIFEST),
        ("tree/dev/_versions/18446744073709551614.manifest", Kind.MANIFEST),
        ("_transactions/1-abc.txn", Kind.TRANSACTION),
        ("data/a.lance", Kind.DATA),
        ("data/a/1.blob", Kind.BLOB),
        ("_deletions/0-1-2.arrow", Kind.DELETION),
        ("_refs/tags/t.json", Kind.REFERENCE),
        ("_versions/5.manifest#2", Kind.UNFINISHED),
        ("_versions/latest_version_hint.json", Kind.FIXED),
    ],
)
def test_the_kind_of_a_file_is_in_its_path(path: str, kind: Kind) -> None:
    found = leaf_files.parse(path)
    assert found is not None
    assert found.kind is kind


@pytest.mark.parametrize("path", ["notes.txt", "data/notes.txt", "_mem_wal/1", "photos/a.lance"])
def test_a_file_that_lance_is_not_known_to_write_has_no_kind(path: str) -> None:
    assert leaf_files.parse(path) is None


def test_a_version_needs_its_own_files_and_not_those_of_later_ones(local: Place) -> None:
    root, uri = Root.parse(local.root), f"{local.root}/leaf"
    lance.write_dataset(rows(1, 2), uri)
    first = leaf_files.needed(root, "leaf", 1)
    handle = lance.write_dataset(rows(3), uri, mode="append")
    handle.delete("id = 1")
    third = leaf_files.needed(root, "leaf", 3)

    data = {f"data/{path.stem}" for path in (Path(uri) / "data").iterdir()}
    assert len(first & data) == 1
    assert data <= third
    assert any(key.startswith("_deletions/") for key in third - first)
    assert leaf_files.has_all_data(root, "leaf")
    next((Path(uri) / "data").iterdir()).unlink()
    assert not leaf_files.has_all_data(root, "leaf")
