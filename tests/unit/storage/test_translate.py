"""What storage layers raise becomes errors that say what is wrong and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    LanceNamespaceError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
    UnauthenticatedError,
    reraise_interrupt,
)
from lancepart.model.parse import parse
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors
from tests.support.catalogs import Place

ROOT = Root.parse("/somewhere", {"aws_secret_access_key": "swordfish"})
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("LanceError(IO): No space left on device (os error 28)", ServiceUnavailableError, "make room"),
        ("LanceError(IO): Read-only file system (os error 30)", PermissionDeniedError, "Read-only"),
        ("Unable to walk dir: /a/__manifest: Not a directory (os error 20)", InvalidInputError, "must be a directory"),
        (
            "LanceError(IO): Failed to get AWS credentials: ProviderError(ProviderError { source: status: 403 })",
            UnauthenticatedError,
            "storage_options",
        ),
        ("Server returned non-2xx status code: 403: <Code>InvalidAccessKeyId</Code>", UnauthenticatedError, "give"),
        ("Server returned non-2xx status code: 403 Forbidden", PermissionDeniedError, "403"),
        (
            "Generic S3 error: Failed to resolve region for bucket 'b'",
            InvalidInputError,
            "aws_region in storage_options",
        ),
        ("Invalid user input: no Azure account name in URI", InvalidInputError, "account_name in storage_options"),
        ("404 Not Found: <Code>NoSuchBucket</Code>", InvalidInputError, "no such bucket: look at the name in"),
        ("Error performing GET http://h/b in 2ms - HTTP error: builder error", InvalidInputError, "give allow_http in"),
        ("LanceError(IO): file size is too small", InvalidTableStateError, "too small"),
        ("Dataset at path x was not found", InvalidTableStateError, "was not found"),
        ("HTTP error: error sending request", ServiceUnavailableError, "look at the endpoint"),
        (
            "Error applying filter expression to batch: Arrow error: Divide by zero error",
            InvalidInputError,
            "TRY_CAST or NULLIF",
        ),
    ],
)
def test_an_error_is_of_the_class_that_fits(text: str, kind: type[LanceNamespaceError], told: str) -> None:
    with pytest.raises(kind, match=told) as caught, storage_errors("write 'x'", ROOT):
        raise OSError(f"{text} swordfish")
    assert "swordfish" not in str(caught.value)
    assert "write 'x'" in str(caught.value)


@pytest.mark.parametrize("place", ["/rustc/48a2/library/core/src/ops/function.rs:250:5", "rust/lance/src/io.rs:1:2"])
def test_a_place_in_the_source_of_a_library_is_not_shown(place: str) -> None:
    with (
        pytest.raises(InvalidTableStateError, match=r"inspect\.broken") as caught,
        storage_errors("read the leaf", ROOT),
    ):
        raise OSError(f"Not found: /t/data/x.lance, {place}")
    assert ".rs" not in str(caught.value)
    assert "/t/data/x.lance" in str(caught.value)


@pytest.mark.parametrize("wrapped", [pa.ArrowInvalid, OSError, InvalidInputError])
def test_an_interrupt_that_a_library_wrapped_is_one_again(wrapped: type[Exception]) -> None:
    with pytest.raises(KeyboardInterrupt), storage_errors("read", ROOT):
        raise wrapped("External error: KeyboardInterrupt: ")


def test_only_an_interrupt_itself_is_one() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(InvalidInputError, match="invalid filter"):
            parse("k = 'KeyboardInterrupt' AND", SCHEMA)
    broken = SystemError("returned a result with an exception set")
    broken.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        reraise_interrupt(broken)


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a table")
    for root in (file, file / "below"):
        with pytest.raises(InvalidInputError, match="this is a file"):
            lp.open_table(root)
        with pytest.raises(InvalidInputError, match="this is a file"):
            lp.create_table(root, SCHEMA, ["k"])
    assert file.read_text() == "not a table"


@pytest.mark.parametrize("version", [-1, 0, 1, 999, 2**63, 10**30])
def test_a_version_that_is_none_is_told_as_that(local: Place, version: int) -> None:
    table = lp.create_table(local.root, SCHEMA, ["k"])
    table.append([{"id": 1, "k": "a"}])
    before = table.version
    asked = (
        lambda: lp.open_table(local.root, version=version),
        lambda: table.scan(version=version),
        lambda: table.changes(version),
        lambda: table.changes(before, version),
        lambda: table.maintenance.rollback(version),
        lambda: table.tags.create("name", version),
    )
    for ask in asked:
        with pytest.raises(TableVersionNotFoundError, match=f"no snapshot {version}"):
            ask()
    for ask in (lambda: table.maintenance.rollback(None), lambda: table.changes(None)):
        with pytest.raises(InvalidInputError, match="version is missing"):
            ask()
    with pytest.raises(InvalidInputError, match="Ref"):
        table.tags.create("a/b", before)
    assert (table.version, table.tags.list()) == (before, {})


@pytest.mark.parametrize("how", ["cut", "empty"])
def test_a_damaged_file_of_the_manifest_is_named(local: Place, how: str) -> None:
    table = lp.create_table(local.root, SCHEMA, ["k"])
    table.append([{"id": 1, "k": "a"}])
    versions = Path(local.root) / "__manifest" / "_versions"
    newest = min(versions.iterdir())
    kept = newest.read_bytes()
    newest.write_bytes(kept[:30] if how == "cut" else b"")

    with pytest.raises(InvalidTableStateError, match=newest.name) as caught:
        lp.open_table(local.root)
    assert "backup" in str(caught.value)

    newest.write_bytes(kept)
    assert lp.open_table(local.root).scan().count() == 1


def test_a_manifest_that_lost_all_its_versions_is_not_taken_for_none(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["k"])
    table.append([{"id": 1, "k": "a"}])
    shutil.rmtree(Path(local.root) / "__manifest" / "_versions")

    with pytest.raises(InvalidTableStateError, match="_versions"):
        lp.open_table(local.root)


@pytest.mark.parametrize("where", ["10 / id > 1", "CAST(k AS INT) = 1", "k = DATE '2024-01-01'"])
def test_a_filter_that_fails_at_a_row_is_wrong_input(tmp_path: Path, where: str) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["id"])
    table.append([{"id": 0, "k": "x"}])
    for read in (lambda: table.count_rows(where), lambda: table.scan(where).to_arrow()):
        with pytest.raises(InvalidInputError, match="applying filter expression"):
            read()
