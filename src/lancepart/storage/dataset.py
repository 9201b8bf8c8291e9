"""Opening, writing and cloning single Lance tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.storage.alignment import aligned
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError, ExistsError, MissingError, storage_errors

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription as IndexDescription  # noqa: PLC0414
    from lance_namespace import LanceNamespace

Session: TypeAlias = lance.Session
"""Caches that several open tables share."""

Dataset: TypeAlias = lance.LanceDataset
"""A single Lance table, open at one version."""


def open_dataset(root: Root, location: str, version: int | str | None = None) -> lance.LanceDataset:
    """Open the table at a location, at a version or tag if given; MissingError if there is none."""
    with storage_errors(f"open the table at {location!r}", root):
        return lance.dataset(root.uri_of(location), version=version, storage_options=root.lance_options)


def open_managed(
    root: Root, namespace: LanceNamespace, path: Sequence[str], version: int | str | None = None
) -> lance.LanceDataset:
    """Open a table whose versions the namespace keeps."""
    with storage_errors(f"open the table {'$'.join(path)!r}", root):
        return lance.dataset(
            namespace_client=namespace, table_id=list(path), version=version, storage_options=root.lance_options
        )


def create_dataset(
    root: Root,
    location: str,
    data: pa.RecordBatchReader | pa.Table,
    *,
    uri: str | None = None,
    namespace: LanceNamespace | None = None,
    path: Sequence[str] | None = None,
) -> lance.LanceDataset:
    """Write a new table, whose versions a namespace keeps if one is given; ExistsError if there is one.

    pylance's own mode create lets a second writer overwrite the first; a commit without retries does not. A commit that
    is reported as failed but is present is a success.
    """
    uri, options = uri or root.uri_of(location), root.lance_options
    action = f"create the table at {location!r}"
    with storage_errors(action, root):
        written = write_fragments(aligned(data), uri, mode="create", return_transaction=True, storage_options=options)
    try:
        with storage_errors(action, root):
            return lance.LanceDataset.commit(
                uri,
                written,
                storage_options=options,
                enable_v2_manifest_paths=True,
                max_retries=0,
                namespace_client=namespace,
                table_id=None if path is None else list(path),
                namespace_client_managed_versioning=namespace is not None,
            )
    except LanceNamespaceError as error:
        there = _committed(uri, options)
        if there == written.uuid and namespace is None:
            return lance.dataset(uri, storage_options=options)
        if not isinstance(error, ExistsError | MissingError | ConflictError):
            raise
        if there not in (None, written.uuid):
            _discard(root, location, written)
        raise ExistsError(f"there is a table by now: {error}") from None


def _committed(uri: str, options: dict[str, str] | None) -> str | None:
    """The id of the transaction that made a table, if its first version still exists."""
    try:
        transaction = lance.dataset(uri, version=1, storage_options=options).read_transaction(1)
    except (OSError, ValueError):
        return None
    return None if transaction is None else transaction.uuid


def _discard(root: Root, location: str, written: lance.Transaction) -> None:
    """Remove the files of a creation that lost, which would look like a declared table if the winner is dropped."""
    files = Files(root)
    for fragment in getattr(written.operation, "fragments", ()):
        for item in fragment.files:
            files.delete(f"{location}/data/{item.path}")
    files.delete(f"{location}/_transactions/{written.read_version}-{written.uuid}.txn")


def overwrite_dataset(root: Root, location: str, data: pa.RecordBatchReader) -> lance.LanceDataset:
    """Write new data over a table in one commit."""
    with storage_errors(f"write the table at {location!r}", root):
        return lance.write_dataset(
            aligned(data), root.uri_of(location), mode="overwrite", storage_options=root.lance_options
        )


def overwrite_managed(
    root: Root, namespace: LanceNamespace, path: Sequence[str], data: pa.RecordBatchReader
) -> lance.LanceDataset:
    """Write new data over a table whose versions the namespace keeps."""
    with storage_errors(f"write the table {'$'.join(path)!r}", root):
        return lance.write_dataset(
            aligned(data),
            namespace_client=namespace,
            table_id=list(path),
            mode="overwrite",
            storage_options=root.lance_options,
        )


def table_metadata(dataset: lance.LanceDataset) -> dict[str, str]:
    """The metadata map of a table, which every version carries on."""
    return dict(dataset.metadata)


def set_table_metadata(root: Root, dataset: lance.LanceDataset, values: Mapping[str, str]) -> None:
    """Set entries of a table's metadata map, in a commit of its own; those that are not named stay."""
    if any(dataset.metadata.get(key) != value for key, value in values.items()):
        with storage_errors("set the properties of the table", root):
            dataset.update_metadata(dict(values))


def read_ipc(body: bytes | None) -> pa.RecordBatchReader:
    """Read the Arrow IPC stream (or file) of a request's body."""
    if not body:
        raise InvalidInputError("the request has no data: send an Arrow IPC stream")
    try:
        if body[:6] == b"ARROW1":
            return aligned(pa.ipc.open_file(pa.py_buffer(body)).read_all()).to_reader()
        return aligned(pa.ipc.open_stream(pa.py_buffer(body)).read_all()).to_reader()
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidInputError(f"the request's data is not an Arrow IPC stream: {error}") from None


def write_ipc(table: pa.Table) -> bytes:
    """Spell a table as an Arrow IPC file, which is what QueryTable answers with."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
