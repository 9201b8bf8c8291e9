"""Where a table may be made: in a directory that holds nothing of anybody else."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, InvalidTableStateError, TableAlreadyExistsError
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


def make(root: Path | str, **options: object) -> lp.PartitionedTable:
    return lp.create_table(root, SCHEMA, ["k"], **options)  # type: ignore[arg-type]


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.mark.parametrize("layout", ["manifest", "hive"])
@pytest.mark.parametrize(
    "file",
    ["part-0.parquet", "k=a/part-0.parquet", ".bashrc", "_delta_log/0.json", "users.lance/data/x", "notes/a"],
)
def test_a_root_with_files_of_others_is_refused(tmp_path: Path, file: str, layout: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("mine")
    before = everything(tmp_path)

    with pytest.raises(InvalidInputError, match="can't hold a table"):
        make(tmp_path, layout=layout)

    assert everything(tmp_path) == before


@pytest.mark.parametrize("inside", [".", "sub", "data/deep"])
def test_a_plain_lance_table_is_no_root(tmp_path: Path, inside: str) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "users")

    with pytest.raises((InvalidInputError, InvalidTableStateError), match=r"can't hold a table|plain Lance table"):
        make(tmp_path / "users" / inside)

    assert lance.dataset(tmp_path / "users").count_rows() == 1


def test_a_prefix_with_objects_of_others_is_refused(place: Place) -> None:
    options = place.storage_options
    lance.write_dataset(pa.table({"id": [1]}), place.uri("users"), storage_options=options)

    with pytest.raises(InvalidInputError, match="can't hold a table"):
        lp.create_table(place.root, SCHEMA, ["k"], storage_options=options)
    lp.create_table(place.uri("user"), SCHEMA, ["k"], storage_options=options)


def test_empty_directories_and_an_empty_catalog_are_fine(tmp_path: Path) -> None:
    (tmp_path / "empty" / "deep").mkdir(parents=True)
    (tmp_path / ".gitkeep").touch()
    lp.DirectoryNamespace(root=tmp_path).set_root_properties({"owner": "data"})

    make(tmp_path).append([{"id": 1, "k": "a"}])

    with pytest.raises(TableAlreadyExistsError):
        make(tmp_path)


@pytest.mark.parametrize("inside", ["", "/deep/down"])
def test_a_root_that_is_a_file_is_refused(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").write_text("mine")
    root = f"{tmp_path}/file{inside}"

    for act in (make, lp.open_table):
        with pytest.raises(InvalidInputError, match="this is a file"):
            act(root)


def test_memory_is_no_root() -> None:
    for act in (make, lp.open_table, lambda root: lp.DirectoryNamespace(root=root)):
        with pytest.raises(InvalidInputError, match="temporary directory"):
            act("memory://table")
