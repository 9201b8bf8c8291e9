"""What a commit has to say of an index that is there already, so that other datasets use its files where they are."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import lance
from lance.bitmap import Bitmap
from lance.dataset import Index, IndexFile

from lancepart.model.aliases import JsonObject
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.root import Root, check_location
from lancepart.storage.translate import storage_errors

Checked = TypeVar("Checked")

IndexEntry: TypeAlias = Index
"""A part of an index as a manifest names it."""


def of(built: Index) -> JsonObject:
    """What there is to know of an index that was built; Lance itself shows only some of it later."""
    type_url, value = built.index_details or ("", b"")
    return {
        "uuid": str(built.uuid),
        "index_version": int(built.index_version),
        "details": [type_url, base64.b64encode(value).decode()],
        "files": [[file.path, int(file.size_bytes)] for file in built.files or ()],
    }


def checked(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What was recorded of an index, every value checked: any client may have written it."""
    uuid.UUID(checked_value(facts["uuid"], str))
    checked_value(facts["index_version"], int)
    type_url, details = facts["details"]
    base64.b64decode(checked_value(details, str), validate=True)
    files = [(check_location(checked_value(path, str)), checked_value(size, int)) for path, size in facts["files"]]
    return {**facts, "details": (checked_value(type_url, str), details), "files": files}


def checked_value(value: object, kind: type[Checked]) -> Checked:
    """A value that was read, if it is of a kind."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not {kind.__name__}")
    return value


def entry(
    handle: LeafHandle, name: str, column: int, facts: Mapping[str, Any], numbers: Iterable[int], base: int | None
) -> IndexEntry:
    """An index over some fragments, whose files are in the directory with a number, or in the dataset's own."""
    type_url, value = facts["details"]
    return Index(
        uuid=facts["uuid"],
        name=name,
        fields=[column],
        dataset_version=int(handle.version),
        fragment_ids=Bitmap(numbers),
        index_version=facts["index_version"],
        base_id=base,
        files=[IndexFile(path, size) for path, size in facts["files"]],
        index_details=(type_url, base64.b64decode(value)),
    )


def with_entries(root: Root, handle: Dataset, added: Sequence[IndexEntry], removed: Sequence[IndexEntry]) -> Dataset:
    """A union with more parts of indices, and without others; ConflictError if it was changed since."""
    with storage_errors("use indices in a union", root):
        return lance.LanceDataset.commit(
            handle,
            lance.LanceOperation.CreateIndex(list(added), list(removed)),
            read_version=handle.version,
            storage_options=root.lance_options,
            max_retries=0,
        )
