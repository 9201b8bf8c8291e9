"""A catalog whose root is a partitioned table: which objects belong to the table, and how they are described."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lancepart.errors import LanceNamespaceError, UnsupportedOperationError
from lancepart.format.names import (
    MODE,
    OBJECT_ID,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    REQUIRED_COLUMNS,
    SALT,
    SPEC_PREFIX,
    TABLE_VERSION,
    partition_column,
)
from lancepart.format.records import LeafRecord, VersionRecord
from lancepart.format.rows import Row
from lancepart.model import draft
from lancepart.model.ids import object_id
from lancepart.model.partition_keys import value_texts
from lancepart.model.spec import PartitionSpec
from lancepart.storage.snapshot import Snapshot, literal

_VERSION = re.compile(r"^v(\d+)$")
_SPEC = re.compile(rf"^{SPEC_PREFIX}\d+$")


def is_partitioned(properties: Mapping[str, str]) -> bool:
    """Whether the properties of a root are those of a partitioned table: it has at least one spec."""
    return any(_SPEC.match(key) for key in properties)


def is_table(snapshot: Snapshot, *, identity: str | None = None) -> bool:
    """Whether a manifest is that of a partitioned table, complete or half made; of one table if its id is known."""
    if identity is not None:
        return snapshot.properties.get(SALT) == identity
    if is_partitioned(snapshot.properties):
        return True
    found = snapshot.scan(None, columns=[OBJECT_ID], limit=1)
    return REQUIRED_COLUMNS in snapshot.properties and found is not None and not found.num_rows


def is_strong(snapshot: Snapshot) -> bool:
    """Whether the root is a partitioned table whose transactions say which version of a leaf is read."""
    if not is_partitioned(snapshot.properties):
        return False
    recorded = snapshot.schema is not None and READ_VERSION.name in snapshot.schema.names
    return snapshot.properties.get(MODE, "strong" if recorded else "weak") == "strong"


def owns(snapshot: Snapshot, path: Sequence[str]) -> bool:
    """Whether a path is that of a partitioned table's spec version, partition or leaf."""
    return bool(path) and _VERSION.match(path[0]) is not None and is_partitioned(snapshot.properties)


def refuse_owned(snapshot: Snapshot, path: Sequence[str], call: str) -> None:
    """Refuse what makes, moves or removes objects of a partitioned table behind its back."""
    if owns(snapshot, path):
        raise UnsupportedOperationError(
            f"{object_id(path)!r} belongs to the partitioned table at {snapshot.root.uri!r}: "
            f"use lancepart.open_table(…).{call} instead"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The part of a leaf to read: a version or a tag, on main or on a branch; ``number`` counts the leaf's versions."""

    version: int | str | None
    branch: str | None = None
    number: int = 0


def published(snapshot: Snapshot, row: Row) -> Published:
    """What a reader of a leaf of a strong table must read.

    The highest ``table_version`` row is the truth; the leaf's own row says the same, unless another writer moved only
    the former. A leaf of the older draft may name a tag or a branch.
    """
    record = LeafRecord.from_row(row)
    newest = max(_versions(snapshot, row), key=lambda version: version.number, default=None)
    if newest is not None and newest.number > record.number:
        return Published(version=newest.read_version, number=newest.number)
    tag, branch = (row.columns.get(field.name) for field in (READ_TAG, READ_BRANCH))
    return Published(version=tag if tag is not None else record.read_version, branch=branch, number=record.number)


def numbered(snapshot: Snapshot, row: Row, number: int) -> Published | None:
    """One version of a leaf by its number; None if there is none of that number."""
    current = published(snapshot, row)
    if number in (current.number, current.version):
        return current
    found = next((version for version in _versions(snapshot, row) if version.number == number), None)
    return None if found is None else Published(version=found.read_version, number=number)


def _versions(snapshot: Snapshot, row: Row) -> list[VersionRecord]:
    found = (VersionRecord.from_row(below) for below in snapshot.below(row.object_id, TABLE_VERSION))
    return [version for version in found if version is not None and version.read_version is not None]


def runtime_properties(snapshot: Snapshot, path: Sequence[str]) -> Mapping[str, str]:
    """The spec of a spec version's namespace, the value of a partition's namespace; nothing elsewhere."""
    match = _VERSION.match(path[0]) if path else None
    spelled = snapshot.properties.get(f"partition_spec_v{match.group(1)}") if match else None
    if spelled is None:
        return {}
    if len(path) == 1:
        return {"partition_spec": spelled}
    try:
        array = draft.is_array(spelled)
        fields = (draft.spec_from_array(1, spelled) if array else PartitionSpec.from_json(spelled)).fields
    except LanceNamespaceError:
        return {}
    if len(path) - 2 >= len(fields):
        return {}
    field = fields[len(path) - 2]
    column = partition_column(field.field_id)
    if snapshot.schema is None or column not in snapshot.schema.names:
        return {}
    found = snapshot.scan(f"{OBJECT_ID} = {literal('$'.join(path))}", columns=[column])
    values = value_texts(found.column(column)) if found is not None and found.num_rows else [None]
    return {} if values[0] is None else {f"partition.{field.field_id}": values[0]}
