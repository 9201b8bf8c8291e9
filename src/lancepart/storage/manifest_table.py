"""``__manifest`` as a Lance table: how it is created, made ready for commits, and changed by one merge."""

from __future__ import annotations

import contextlib

import lance
import pyarrow as pa

from lancepart.errors import InternalError, InvalidTableStateError, LanceNamespaceError
from lancepart.format.names import OBJECT_ID, of_ids
from lancepart.format.rows import CREATED_AT, PRIMARY_KEY, PRIMARY_KEY_POSITION, SCHEMA
from lancepart.storage import manifest_maintenance
from lancepart.storage.dataset import create_dataset
from lancepart.storage.manifest_rows import Change, source_table
from lancepart.storage.root import Root
from lancepart.storage.root_contents import make_directory
from lancepart.storage.snapshot import Snapshot, literals
from lancepart.storage.translate import ConflictError, ExistsError, KeyExistsError, storage_errors


def create(root: Root, name: str, uri: str) -> None:
    """Write an empty manifest with its indices, unless another writer has."""
    make_directory(root)
    try:
        handle = create_dataset(root, name, SCHEMA.empty_table(), uri=uri)
    except ExistsError:
        return
    with contextlib.suppress(LanceNamespaceError), storage_errors("index __manifest", root):
        manifest_maintenance.create_indices(handle)


def make_ready(handle: lance.LanceDataset, root: Root) -> None:
    """Give a manifest of another client the key and columns that commits rely on; ConflictError if one was missing."""
    if handle.schema.field(OBJECT_ID).nullable:
        _require_keys(handle, root)
        raise ConflictError("the manifest's key was made one that is never null")
    key = handle.schema.field(OBJECT_ID).metadata or {}
    if PRIMARY_KEY.encode() not in key and PRIMARY_KEY_POSITION.encode() not in key:
        with storage_errors("mark the key of __manifest", root):
            handle.update_field_metadata({OBJECT_ID: {PRIMARY_KEY_POSITION: "0"}})
        raise ConflictError("the manifest's key was marked")
    if CREATED_AT.name not in handle.schema.names:
        with storage_errors("add created_at to __manifest", root):
            handle.add_columns([CREATED_AT])
        raise ConflictError("the manifest got its created_at column")


def _require_keys(handle: lance.LanceDataset, root: Root) -> None:
    """Make the key of a manifest that another client created non-nullable, as Lance requires for keys."""
    if handle.count_rows(f"{OBJECT_ID} IS NULL"):
        raise InvalidTableStateError("__manifest has rows whose object_id is null: delete them with another client")
    with storage_errors("require object_id in __manifest", root):
        handle.alter_columns({"path": OBJECT_ID, "nullable": False})  # type: ignore[dict-item]


def refuse_doubles(change: Change) -> None:
    """Refuse a change that names one object twice."""
    ids = [*(row.object_id for row in change.inserts), *change.existing_ids, *change.deletes]
    if len(set(ids)) != len(ids):
        raise InternalError("a change names the same object twice")


def merge(handle: lance.LanceDataset, change: Change, snapshot: Snapshot) -> pa.Table | None:
    """One merge that inserts, updates and deletes; with no index and no retries it is a compare-and-swap.

    Moves the handle to the new version, and gives back the rows that it wrote.
    """
    gone = of_ids(literals(change.deletes)) if change.deletes else None
    if not change.inserts and not change.existing_ids:
        assert gone is not None
        if handle.delete(gone, conflict_retries=0)["num_deleted_rows"] != len(change.deletes):
            raise ConflictError("a row to be deleted was gone already")
        return None
    keys = [*(row.object_id for row in change.inserts), *change.existing_ids]
    present = snapshot.table_of(keys)
    found = set(present.column(OBJECT_ID).to_pylist())
    taken = [row.object_id for row in change.inserts if row.object_id in found]
    if taken:
        raise KeyExistsError(taken[0])
    if len(found) != len(change.existing_ids):
        raise ConflictError("a row to be changed is gone")
    source = source_table(change, handle.schema, present)
    builder = handle.merge_insert(OBJECT_ID).when_matched_update_all().when_not_matched_insert_all()
    if gone is not None:
        builder = builder.when_not_matched_by_source_delete(gone)
    builder.use_index(False).conflict_retries(0).execute(source)
    return source
