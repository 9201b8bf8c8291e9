"""Single Lance tables: opened, written, cloned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lance
import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors


def open_dataset(root: Root, location: str, version: int | str | None = None) -> lance.LanceDataset:
    """Open the table at a location, at a version or tag if given; MissingError if there is none."""
    with storage_errors(f"open the table at {location!r}", root):
        return lance.dataset(root.uri_of(location), version=version, storage_options=_options(root))


def open_managed(
    root: Root, namespace: Any, path: Sequence[str], version: int | str | None = None
) -> lance.LanceDataset:
    """Open a table whose versions the namespace keeps."""
    with storage_errors(f"open the table {'$'.join(path)!r}", root):
        return lance.dataset(
            namespace_client=namespace, table_id=list(path), version=version, storage_options=_options(root)
        )


def write_dataset(root: Root, location: str, data: pa.RecordBatchReader, mode: str) -> lance.LanceDataset:
    """Write a table in one commit; ExistsError if ``mode`` is create and there is one."""
    with storage_errors(f"write the table at {location!r}", root):
        return lance.write_dataset(data, root.uri_of(location), mode=mode, storage_options=_options(root))


def write_managed(
    root: Root, namespace: Any, path: Sequence[str], data: pa.RecordBatchReader, mode: str
) -> lance.LanceDataset:
    """Write a table whose versions the namespace keeps."""
    with storage_errors(f"write the table {'$'.join(path)!r}", root):
        return lance.write_dataset(
            data, namespace_client=namespace, table_id=list(path), mode=mode, storage_options=_options(root)
        )


def read_ipc(body: bytes | None) -> pa.RecordBatchReader:
    """Read the Arrow IPC stream (or file) of a request's body."""
    if not body:
        raise InvalidInputError("the request has no data: send an Arrow IPC stream")
    try:
        if body[:6] == b"ARROW1":
            return pa.ipc.open_file(pa.py_buffer(body)).read_all().to_reader()
        return pa.ipc.open_stream(pa.py_buffer(body)).read_all().to_reader()
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidInputError(f"the request's data is not an Arrow IPC stream: {error}") from None


def write_ipc(table: pa.Table) -> bytes:
    """Spell a table as an Arrow IPC file, which is what QueryTable answers with."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _options(root: Root) -> dict[str, str] | None:
    return dict(root.storage_options) or None
