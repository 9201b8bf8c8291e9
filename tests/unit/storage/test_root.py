"""How users spell the place of a table, and what they are told when there is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotFoundError,
    TableColumnNotFoundError,
    TableNotFoundError,
)
from lancepart.storage.root import Root, check_location

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


@pytest.mark.parametrize(
    ("spelled", "uri"),
    [
        ("file:/data/t", "/data/t"),
        ("file:///data/t//", "/data/t"),
        ("file://localhost/data/t", "/data/t"),
        ("FILE:/data/t", "/data/t"),
        ("file:/data/a%20b", "/data/a b"),
        ("file:/data/a b#c?d", "/data/a b#c?d"),
        ("//data/t", "/data/t"),
        ("/data/../data/./t/", "/data/t"),
        (Path("/data/t"), "/data/t"),
        ("s3a://bucket/t/", "s3://bucket/t"),
        ("s3n://bucket/t", "s3://bucket/t"),
        ("S3A://Bucket/T", "s3://Bucket/T"),
        ("gs://bucket/t/", "gs://bucket/t"),
    ],
)
def test_one_place_has_one_root_however_it_is_spelled(spelled: Any, uri: str) -> None:
    assert Root.parse(spelled).uri == uri
    assert Root.parse(Root.parse(spelled).uri).uri == uri


def test_links_and_steps_upwards_lead_outside_wherever_they_are_in_a_location(tmp_path: Path) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "a" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "in").symlink_to(tmp_path / "root" / "a")
    (tmp_path / "root" / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path / "root")

    for root in (Root.parse(tmp_path / "root"), Root.parse(tmp_path / "link")):
        outside = ["a/out", "a/out/deep", "a/out/new", "in/out", "gone", "gone/x", "../x", "a/../../x", "/etc"]
        inside = ["a", "a/b/c", "new", "in", "in/b", "a/..", "a/../b", str(tmp_path / "root" / "a")]
        assert [root.leads_outside(name) for name in outside] == [True] * len(outside)
        assert [root.leads_outside(name) for name in inside] == [False] * len(inside)


def test_only_the_location_itself_is_looked_at_for_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def islink(path: str) -> bool:
        looked.append(path)
        return False

    monkeypatch.setattr(os.path, "islink", islink)
    monkeypatch.setattr(os.path, "realpath", lambda path: pytest.fail(f"{path} was resolved, step by step"))

    assert Root.parse(tmp_path).uri_of("a/b") == str(tmp_path / "a" / "b")
    assert looked == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]


@pytest.mark.parametrize(
    "location", ["__manifest", "a/__manifest", ".", "..", "a/..", "~x", "C:/x", "a\n", "", "%2e%2e"]
)
def test_a_location_that_is_no_plain_path_is_refused(location: str) -> None:
    with pytest.raises(InvalidInputError, match="location"):
        check_location(location)


@pytest.mark.parametrize("location", ["a1_v1$x$dataset", "x.lance", "my__manifest2", "-", "a/b", "a..b"])
def test_a_plain_path_is_a_location(location: str) -> None:
    assert check_location(location) == location


def test_what_spark_writes_python_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    table = lp.create_table(f"file:{tmp_path}/t", SCHEMA, ["country"])

    assert table.root == str(tmp_path / "t")
    assert os.listdir(tmp_path) == ["t"]
    assert lp.open_table("t").root == lp.open_table(f"file://{tmp_path}/t/").root == table.root


@pytest.mark.parametrize("root", ["file://elsewhere/t", "~/t", "~", "", " ", 5, None, b"t"])
def test_a_root_that_can_not_be_meant_is_refused(root: Any) -> None:
    with pytest.raises(InvalidInputError, match="root"):
        lp.open_table(root)


def test_what_stands_at_a_root_without_a_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "plain")
    for make in (lp.open_table, lambda root: lp.create_table(root, SCHEMA, ["country"])):
        with pytest.raises(InvalidInputError, match="must be a directory, and this is a file"):
            make(tmp_path / "file")
        with pytest.raises(InvalidTableStateError, match=r"plain Lance table.*create_table"):
            make(tmp_path / "plain")
    with pytest.raises(TableNotFoundError, match=r"no such directory.*create_table"):
        lp.open_table(tmp_path / "nowhere")
    assert lance.dataset(tmp_path / "plain").count_rows() == 1


def test_a_plain_table_becomes_a_partitioned_one_as_the_error_says(tmp_path: Path) -> None:
    plain = lance.write_dataset(pa.table({"id": [1, 2], "country": ["US", "FR"]}), tmp_path / "plain")

    made = lp.create_table(tmp_path / "t", plain.schema, ["country"])
    made.append(plain.scanner().to_reader())

    assert made.scan("country = 'FR'").to_arrow().to_pylist() == [{"id": 2, "country": "FR"}]


def test_a_namespace_that_is_not_there_is_named_with_others_like_it(tmp_path: Path) -> None:
    catalog = lp.DirectoryNamespace(root=str(tmp_path))
    from lance_namespace import CreateNamespaceRequest

    catalog.create_namespace(CreateNamespaceRequest(id=["sales"]))
    with pytest.raises(NamespaceNotFoundError, match=r"'sale' does not exist in .*did you mean 'sales'"):
        lp.open_table(tmp_path, namespace=["sale"])
    with pytest.raises(InvalidInputError, match="list of names"):
        lp.open_table(tmp_path, namespace="sales")


WRONG: dict[str, tuple[Callable[[lp.PartitionedTable], Any], type[Exception], str]] = {
    "columns": (lambda t: t.scan(columns=["contry"]), TableColumnNotFoundError, "did you mean 'country'"),
    "where": (lambda t: t.scan("contry = 'US'"), InvalidInputError, "did you mean 'country'"),
    "delete": (lambda t: t.delete("contry = 'US'"), InvalidInputError, "did you mean 'country'"),
    "update": (lambda t: t.update({"contry": "1"}), TableColumnNotFoundError, "did you mean 'country'"),
    "rename": (lambda t: t.rename_column("Contry", "c"), TableColumnNotFoundError, "did you mean 'country'"),
    "join": (lambda t: t.join(t, on=["contry"]), TableColumnNotFoundError, "did you mean 'country'"),
    "join columns": (lambda t: t.join(t, on=["id"], columns=["idd"]), TableColumnNotFoundError, "did you mean 'id'"),
    "join with what": (lambda t: t.join("t", on=["id"]), InvalidInputError, "no file matches"),  # type: ignore[arg-type]
    "spec": (lambda t: t.update_spec(["contry"]), InvalidInputError, "did you mean 'country'"),
    "transform": (lambda t: t.update_spec(["buckets(4, id)"]), InvalidInputError, "did you mean 'bucket'"),
    "spec of numbers": (lambda t: t.update_spec([5]), InvalidInputError, "strings such as"),  # type: ignore[list-item]
    "columns of what": (lambda t: t.scan(columns=5), InvalidInputError, "list of names"),  # type: ignore[arg-type]
    "options": (lambda t: lp.open_table(t.root, storage_options=5), InvalidInputError, "dict"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("action", "error", "reason"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_name_or_argument_is_told_with_what_was_meant(
    tmp_path: Path, action: Callable[[lp.PartitionedTable], Any], error: type[Exception], reason: str
) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["country"])

    with pytest.raises(error, match=reason):
        action(table)
