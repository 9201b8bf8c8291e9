"""Single Lance tables: created once, and read as Arrow IPC."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancepart.errors import InvalidInputError
from lancepart.storage import dataset
from lancepart.storage.root import Root
from lancepart.storage.translate import ExistsError, MissingError
from tests.support.catalogs import Place, ipc, rows


def test_of_two_who_create_one_table_the_second_is_refused_and_leaves_no_file(local: Place) -> None:
    root = Root.parse(local.root)
    dataset.create_dataset(root, "t.lance", rows(1, 2))

    with pytest.raises(ExistsError):
        dataset.create_dataset(root, "t.lance", rows(3))

    found = dataset.open_dataset(root, "t.lance")
    assert found.count_rows() == 2
    assert len(list((Path(local.root) / "t.lance" / "data").iterdir())) == 1


def test_an_overwrite_is_a_new_version_of_the_same_table(local: Place) -> None:
    root = Root.parse(local.root)
    dataset.create_dataset(root, "t.lance", rows(1, 2))
    dataset.overwrite_dataset(root, "t.lance", rows(3).to_reader())

    assert dataset.open_dataset(root, "t.lance").count_rows() == 1
    assert dataset.open_dataset(root, "t.lance", 1).count_rows() == 2


def test_a_table_that_is_not_there_is_missing(local: Place) -> None:
    with pytest.raises(MissingError):
        dataset.open_dataset(Root.parse(local.root), "t.lance")


def test_metadata_that_is_set_leaves_the_rest(local: Place) -> None:
    root = Root.parse(local.root)
    found = dataset.create_dataset(root, "t.lance", rows(1))
    dataset.set_table_metadata(root, found, {"a": "1"})
    dataset.set_table_metadata(root, found, {"b": "2"})

    assert dataset.table_metadata(dataset.open_dataset(root, "t.lance")).items() >= {"a": "1", "b": "2"}.items()


def test_arrow_ipc_is_read_as_stream_and_as_file() -> None:
    assert dataset.read_ipc(ipc(rows(1, 2))).read_all() == rows(1, 2)
    assert dataset.read_ipc(dataset.write_ipc(rows(1, 2))).read_all() == rows(1, 2)


@pytest.mark.parametrize("body", [None, b"", b"not arrow"])
def test_what_is_no_arrow_ipc_is_refused(body: bytes | None) -> None:
    with pytest.raises(InvalidInputError, match="Arrow IPC"):
        dataset.read_ipc(body)
