"""What the processes of a race do; plain functions, so that they pickle."""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import lance
import lance.fragment
import lance.namespace
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    CreateTableVersionRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    RegisterTableRequest,
    RenameTableRequest,
)

from lancepart.errors import LanceNamespaceError
from lancepart.model.versions import NamingScheme
from lancepart.storage import manifest_maintenance
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import NAMESPACE, Change, Row, RowUpdate, dump_metadata, now
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from tests.concurrency.audit import files
from tests.support.catalogs import Place, ipc, rows

Path = Sequence[str]


def create_namespace(place: Place, path: Path, number: int = 0, mode: str = "create") -> Any:
    request = CreateNamespaceRequest(id=list(path), mode=mode, properties={"by": str(number)})
    return place.catalog().create_namespace(request).properties


def drop_namespace(place: Place, path: Path, behavior: str = "restrict") -> None:
    place.catalog().drop_namespace(DropNamespaceRequest(id=list(path), behavior=behavior))


def declare_table(place: Place, path: Path, number: int = 0) -> str:
    return place.catalog().declare_table(DeclareTableRequest(id=list(path), properties={"by": str(number)})).location


def create_table(place: Place, path: Path, number: int = 0) -> str:
    return place.catalog().create_table(CreateTableRequest(id=list(path)), ipc(rows(number))).location


def register_table(place: Place, path: Path, location: str) -> None:
    place.catalog().register_table(RegisterTableRequest(id=list(path), location=location))


def drop_table(place: Place, path: Path) -> None:
    place.catalog().drop_table(DropTableRequest(id=list(path)))


def deregister_table(place: Place, path: Path) -> None:
    place.catalog().deregister_table(DeregisterTableRequest(id=list(path)))


def rename_table(place: Place, path: Path, target: Path) -> None:
    request = RenameTableRequest(id=list(path), new_namespace_id=list(target[:-1]), new_table_name=target[-1])
    place.catalog().rename_table(request)


def set_root_properties(place: Place, values: Mapping[str, str | None]) -> None:
    place.catalog().set_root_properties(values)


def append_often(place: Place, path: Path, times: int, number: int) -> int:
    """Append through pylance, which asks the catalog for versions; each row says who wrote it and when."""
    catalog = place.catalog()
    for turn in range(times):
        lance.write_dataset(
            rows(number * 1000 + turn),
            namespace_client=catalog,
            table_id=list(path),
            mode="append",
            storage_options=place.storage_options,
        )
    return times


def append_while_it_lasts(place: Place, path: Path, times: int, number: int) -> list[int]:
    """Append to a table that may go away; what was written for certain."""
    catalog = place.catalog()
    written: list[int] = []
    for turn in range(times):
        with contextlib.suppress(LanceNamespaceError, OSError):
            lance.write_dataset(
                rows(number * 1000 + turn), namespace_client=catalog, table_id=list(path), mode="append"
            )
            written.append(number * 1000 + turn)
    return written


def create_many(place: Place, parent: Path, times: int, number: int) -> None:
    """Make namespaces and tables of names that nobody else makes, by turns."""
    catalog = place.catalog()
    for turn in range(times):
        path = [*parent, f"o{number}_{turn}"]
        if turn % 2:
            catalog.declare_table(DeclareTableRequest(id=path))
        else:
            catalog.create_namespace(CreateNamespaceRequest(id=path))


def stage_version(place: Place, path: Path, number: int) -> CreateTableVersionRequest:
    """Write the manifest of a table's next version, which appends one row, beside its versions, as pylance does."""
    store = files(place)
    location = place.catalog().describe_table(DescribeTableRequest(id=list(path))).location.rsplit("/", 1)[-1]
    copy = f"copy-{uuid.uuid4().hex}"
    store.clone_directory(location, copy, skip=[".lance-reserved"])
    version = lance.write_dataset(
        rows(number), place.uri(copy), mode="append", storage_options=place.storage_options
    ).version
    final = NamingScheme.V2.file_name(version)
    content = store.read(f"{copy}/_versions/{final}")
    store.delete(f"{copy}/_versions/{final}")
    store.clone_directory(copy, location)
    store.delete_directory(copy)
    staged = f"{location}/_versions/{final}-{uuid.uuid4()}"
    store.put(staged, content)
    return CreateTableVersionRequest(
        id=list(path), version=version, manifest_path=place.uri(staged), manifest_size=len(content), naming_scheme="V2"
    )


def create_version(place: Place, request: CreateTableVersionRequest) -> int:
    return place.catalog().create_table_version(request).version.version


def count_up(place: Place, times: int, number: int = 0) -> None:
    """Read a number in a row, and write it back one higher."""
    manifest = Manifest(Root.parse(place.root, place.options))

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        row = snapshot.row("counter")
        assert row is not None
        assert row.metadata is not None
        count = dump_metadata({"n": str(int(row.metadata["n"]) + 1)})
        return Change(updates=(RowUpdate(object_id="counter", values={"metadata": count}),)), None

    for _ in range(times):
        manifest.transact(plan)


def hammer(place: Place, keys: Sequence[str], seed: int) -> int:
    """Insert keys that others insert too, with upkeep at nearly every commit; how many this process made."""
    manifest = Manifest(Root.parse(place.root, place.options))

    def claim(key: str) -> int:
        row = Row(object_id=key, object_type=NAMESPACE, metadata={"by": str(seed)}, created_at=now())

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, int]:
            taken = snapshot.row(key) is not None
            return (Change(), 0) if taken else (Change(inserts=(row,)), 1)

        return manifest.transact(plan)

    with busy_upkeep():
        return sum(map(claim, random.Random(seed).sample(list(keys), len(keys))))


@contextlib.contextmanager
def busy_upkeep() -> Iterator[None]:
    """Let upkeep of the manifest have something to do at nearly every commit."""
    usual = {
        name: getattr(manifest_maintenance, name) for name in ("EVERY", "FRAGMENTS", "NEWEST_LEFT_ALONE", "INDEX_EVERY")
    }
    (
        manifest_maintenance.EVERY,
        manifest_maintenance.FRAGMENTS,
        manifest_maintenance.NEWEST_LEFT_ALONE,
        manifest_maintenance.INDEX_EVERY,
    ) = 2, 3, 1, 6
    try:
        yield
    finally:
        for name, value in usual.items():
            setattr(manifest_maintenance, name, value)


def write_natively(place: Place, times: int, number: int) -> None:
    """Make namespaces with pylance's own catalog, which overwrites the manifest at each."""
    native = lance.namespace.DirectoryNamespace(**place.properties)
    for turn in range(times):
        native.create_namespace(CreateNamespaceRequest(id=[f"native{number}_{turn}"]))


def overwrite_manifest(place: Place, times: int) -> None:
    """Overwrite the manifest with its own content, as a commit that conflicts with whatever came since it was read."""
    for _ in range(times):
        handle = lance.dataset(place.uri("__manifest"), storage_options=place.storage_options)
        fragments = lance.fragment.write_fragments(
            handle.to_table(), handle, mode="overwrite", storage_options=place.storage_options
        )
        change = lance.LanceOperation.Overwrite(handle.schema, fragments)
        with contextlib.suppress(OSError):
            lance.LanceDataset.commit(handle, change, read_version=handle.version, max_retries=0)


def compact_manifest(place: Place, times: int) -> None:
    """Compact the manifest again and again."""
    manifest = Manifest(Root.parse(place.root, place.options))
    with busy_upkeep():
        for _ in range(times):
            with contextlib.suppress(LanceNamespaceError):
                manifest_maintenance.compact(manifest)


def live(place: Place, names: Sequence[str], steps: int, seed: int) -> list[tuple[str, int, str]]:
    """Do what comes to mind to a few tables, all of them in the root; what was refused, with the code."""
    chance = random.Random(seed)
    refused: list[tuple[str, int, str]] = []
    for _ in range(steps):
        name, other = chance.sample(list(names), 2)
        deed = chance.choice([create_table, declare_table, drop_table, deregister_table, rename_table])
        try:
            deed(place, [name], *([[other]] if deed is rename_table else []))
        except LanceNamespaceError as error:
            refused.append((deed.__name__, int(error.code), str(error)))
    return refused
