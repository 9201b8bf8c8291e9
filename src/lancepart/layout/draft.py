"""The leaves of the expression draft, each at the version that its row's three columns name."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lancepart.errors import InvalidTableStateError, UnsupportedOperationError
from lancepart.format.names import OBJECT_ID, READ_BRANCH, READ_TAG, READ_VERSION, TABLE, of_type
from lancepart.layout import leaves
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import WEAK, TableMetadata
from lancepart.model.aliases import Value
from lancepart.model.spec import PartitionSpec
from lancepart.storage import refs
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError


def draft_leaves(snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata) -> tuple[Leaf, ...]:
    """Rows of leaves as values.

    Where a row names nothing, and the manifest has the columns at all, the latest version is looked up now, so that
    a scan reads one version however long it takes and a commit knows what it started from.
    """
    plain = leaves.manifest_leaves(snapshot, spec, rows, replace(metadata, transactions=WEAK))
    if metadata.transactions == WEAK:
        return plain
    pointers = [_column(rows, name) for name in (READ_VERSION.name, READ_BRANCH.name, READ_TAG.name)]
    return tuple(_pointed(snapshot, leaf, *what) for leaf, *what in zip(plain, *pointers, strict=True))


def _column(rows: pa.Table, name: str) -> list[Value]:
    found: list[Value] = rows.column(name).to_pylist() if name in rows.schema.names else [None] * rows.num_rows
    return found


def _pointed(snapshot: Snapshot, leaf: Leaf, version: int | None, branch: str | None, tag: str | None) -> Leaf:
    if tag is not None and (version is not None or branch is not None):
        raise InvalidTableStateError(f"leaf {leaf.object_id!r} has a read_tag beside a read_version or read_branch")
    if branch is not None and version is None:
        raise InvalidTableStateError(f"leaf {leaf.object_id!r} has a read_branch without a read_version")
    try:
        if tag is not None:
            found = refs.tagged(snapshot.root, leaf.location, tag)
            if found is None:
                raise InvalidTableStateError(f"leaf {leaf.object_id!r} is read at the tag {tag!r}, which it lacks")
            branch, version = found
        if version is None:
            version = refs.latest(snapshot.root, leaf.location)
    except MissingError as error:
        raise InvalidTableStateError(f"leaf {leaf.object_id!r} can't be read: its files are gone ({error})") from None
    location = refs.branch_location(leaf.location, branch)
    return replace(leaf, location=location, read_version=version, branch=branch)


def refuse_unpinned(snapshot: Snapshot) -> None:
    """Refuse time travel to a snapshot in which a leaf's row names no version, so that it is read at its latest."""
    known = snapshot.schema.names if snapshot.schema is not None else ()
    unnamed = [f"{field.name} IS NULL" for field in (READ_VERSION, READ_TAG) if field.name in known]
    found = snapshot.scan(" AND ".join([of_type(TABLE), *unnamed]), columns=[OBJECT_ID], limit=1)
    if found is not None and found.num_rows:
        raise UnsupportedOperationError(
            f"snapshot {snapshot.version} can't be read: leaf {found[OBJECT_ID][0].as_py()!r} of the 'draft' layout "
            "names no read_version there; use the table without a version, or lancepart.upgrade"
        )
