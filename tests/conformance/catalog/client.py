"""A catalog that is spoken to in few words, and the storage beneath it seen by other means than the catalog's own."""

from __future__ import annotations

import inspect
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import boto3
import lance
import lance_namespace
import pyarrow as pa
import pytest

from lancepart.errors import LanceNamespaceError
from tests.support.catalogs import Place, ipc, rows

V1 = {"manifest_enabled": "false"}
V2 = {"dir_listing_enabled": "false"}
COMPATIBILITY: dict[str, str] = {}

MODES = [pytest.param(V1, id="v1"), pytest.param(V2, id="v2"), pytest.param(COMPATIBILITY, id="compatibility")]
WITH_MANIFEST = MODES[1:]
WITH_LISTING = [MODES[0], MODES[2]]


class Client:
    """Makes the request of each operation: ``client.drop_table("ns", "t")``, its other fields by keyword."""

    def __init__(self, place: Place, **properties: str) -> None:
        self.place = place
        self.namespace = place.catalog(**properties)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        method = getattr(self.namespace, operation)
        model = _model_of(operation)

        def call(*path: str, data: Any = None, **fields: Any) -> Any:
            if "id" in model.model_fields:
                fields.setdefault("id", list(path))
            request = model(**fields)
            return method(request) if data is None else method(request, data if isinstance(data, bytes) else ipc(data))

        return call

    @property
    def inside(self) -> Any:
        """The catalog's own objects, to watch what it does and when."""
        return self.namespace._catalog

    @cached_property
    def storage(self) -> Storage:
        return Storage(self.place)

    def create(self, *path: str, data: pa.Table | None = None, **fields: Any) -> Any:
        """Create a table of two rows, unless told otherwise."""
        return self.create_table(*path, data=rows(1, 2) if data is None else data, **fields)

    def tables(self, *path: str) -> list[str]:
        return self.list_tables(*path).tables

    def namespaces(self, *path: str) -> list[str]:
        return self.list_namespaces(*path).namespaces

    def location(self, *path: str) -> str:
        """A table's directory, relative to the root."""
        found = self.describe_table(*path).location.removeprefix(self.place.root + "/")
        return unquote(found) if self.place.options else found

    def dataset(self, *path: str, **options: Any) -> lance.LanceDataset:
        """A table opened by plain pylance, from where the catalog says that it is."""
        location = self.describe_table(*path).location
        return lance.dataset(location, storage_options=self.place.storage_options, **options)

    def manifest(self) -> lance.LanceDataset:
        """The ``__manifest`` table, opened by plain pylance."""
        return lance.dataset(self.place.uri("__manifest"), storage_options=self.place.storage_options)

    def manifest_rows(self) -> dict[str, dict[str, Any]]:
        return {row["object_id"]: row for row in self.manifest().to_table().to_pylist()}

    def manage_versions(self) -> Client:
        self.namespace.set_root_properties({"table_version_management": "true"})
        return self


def _model_of(operation: str) -> Any:
    spelled = inspect.signature(getattr(lance_namespace.LanceNamespace, operation)).parameters["request"].annotation
    name = spelled if isinstance(spelled, str) else spelled.__name__
    return getattr(lance_namespace, name)


class Storage:
    """The files beneath a root, by the operating system or by boto3."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._local = not place.options
        if not self._local:
            self._bucket, _, self._prefix = place.root.removeprefix("s3://").partition("/")
            self._client = boto3.client(
                "s3",
                endpoint_url=place.options["aws_endpoint"],
                aws_access_key_id=place.options["aws_access_key_id"],
                aws_secret_access_key=place.options["aws_secret_access_key"],
                region_name=place.options["aws_region"],
            )

    def files(self, directory: str = "") -> set[str]:
        """All files at any depth, relative to the root."""
        if self._local:
            root = Path(self._place.root)
            found = (root / directory).rglob("*")
            return {str(path.relative_to(root)) for path in found if not path.is_dir()}
        prefix = f"{self._prefix}/{directory}/" if directory else f"{self._prefix}/"
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {key.removeprefix(self._prefix + "/") for key in keys}

    def read(self, path: str) -> bytes:
        if self._local:
            return (Path(self._place.root) / path).read_bytes()
        return self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}/{path}")["Body"].read()

    def write(self, path: str, content: bytes = b"") -> None:
        if self._local:
            target = Path(self._place.root) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        else:
            self._client.put_object(Bucket=self._bucket, Key=f"{self._prefix}/{path}", Body=content)

    def delete(self, path: str) -> None:
        if self._local:
            os.unlink(Path(self._place.root) / path)
        else:
            self._client.delete_object(Bucket=self._bucket, Key=f"{self._prefix}/{path}")

    def move(self, source: str, target: str) -> None:
        self.write(target, self.read(source))
        self.delete(source)


def write_plainly(place: Place, location: str, data: pa.Table | None = None, **options: Any) -> lance.LanceDataset:
    """A table that someone wrote with pylance, unknown to the catalog."""
    data = rows(1, 2) if data is None else data
    return lance.write_dataset(data, place.uri(location), storage_options=place.storage_options, **options)


@contextmanager
def refused(error: type[LanceNamespaceError], code: int) -> Iterator[pytest.ExceptionInfo[LanceNamespaceError]]:
    """The operation is refused with this error, which has this code."""
    with pytest.raises(error) as caught:
        yield caught
    assert int(caught.value.code) == code


@dataclass(frozen=True)
class StagedVersion:
    """A manifest of pylance's that waits in ``_versions`` under a staging name."""

    path: tuple[str, ...]
    version: int
    staged: str
    final: str

    @property
    def fields(self) -> dict[str, Any]:
        return {"id": list(self.path), "version": self.version, "manifest_path": self.staged}


def stage(client: Client, *path: str) -> StagedVersion:
    """Append two rows with plain pylance, and put the manifest of that aside as a staged one."""
    location = client.location(*path)
    before = client.storage.files(f"{location}/_versions")
    written = write_plainly(client.place, _quoted(client, location), rows(3, 4), mode="append")
    (final,) = client.storage.files(f"{location}/_versions") - before
    staged = f"{final}-{uuid.uuid4()}"
    client.storage.move(final, staged)
    return StagedVersion(path=path, version=written.version, staged=staged, final=final)


def _quoted(client: Client, location: str) -> str:
    return client.inside.root.uri_of(location).removeprefix(client.place.root + "/")


def commit_unfinished(client: Client, version: StagedVersion, metadata: Mapping[str, Any]) -> None:
    """Put the row of a version into ``__manifest`` by hand, as a writer does that dies before it finalises."""
    schema = client.manifest().schema
    table = client.manifest_rows()["$".join(version.path)]
    row = dict.fromkeys(schema.names) | {
        "object_id": f"{table['object_id']}${version.version}",
        "object_type": "table_version",
        "metadata": json.dumps(metadata),
    }
    source = pa.Table.from_pylist([row], schema=schema)
    builder = client.manifest().merge_insert("object_id").when_not_matched_insert_all().use_index(False)
    builder.execute(source)


@contextmanager
def watched(client: Client) -> Iterator[list[tuple[str, Any]]]:
    """Record, in their order, the writes to storage and the commits to ``__manifest`` that a call makes."""
    seen: list[tuple[str, Any]] = []
    files, manifest = client.inside.files, client.inside.manifest
    originals = {"put": files.put, "put_new": files.put_new, "delete": files.delete}
    publish, delete_directory = manifest.publish, files.delete_directory

    def recording(name: str) -> Callable[..., Any]:
        def call(path: str, *arguments: Any) -> Any:
            done = originals[name](path, *arguments)
            seen.append((name, path))
            return done

        return call

    def publishing(snapshot: Any, change: Any) -> Any:
        done = publish(snapshot, change)
        seen.append(("commit", change))
        return done

    def deleting(directory: str, **options: Any) -> None:
        seen.append(("delete_directory", directory))
        delete_directory(directory, **options)

    for name in originals:
        setattr(files, name, recording(name))
    manifest.publish, files.delete_directory = publishing, deleting
    try:
        yield seen
    finally:
        for name in [*originals, "delete_directory"]:
            delattr(files, name)
        del manifest.publish


@contextmanager
def interrupted_by(client: Client, rival: Callable[[], object]) -> Iterator[None]:
    """Let a rival act once, after the client planned its commit to ``__manifest`` and before it is published."""
    manifest = client.inside.manifest
    publish = manifest.publish
    waiting = [rival]

    def publishing(snapshot: Any, change: Any) -> Any:
        if waiting and snapshot.handle is not None:
            waiting.pop()()
        return publish(snapshot, change)

    manifest.publish = publishing
    try:
        yield
        assert not waiting, "the rival never came to act"
    finally:
        del manifest.publish
