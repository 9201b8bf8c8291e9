"""What a partitioned table's namespaces show as properties beyond those that are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lancepart.errors import LanceNamespaceError
from lancepart.format.names import REQUIRED_COLUMNS, SALT, SPEC_PREFIX, partition_column
from lancepart.model import draft
from lancepart.model.keys import value_texts
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
    found = snapshot.scan(None, columns=["object_id"], limit=1)
    return REQUIRED_COLUMNS in snapshot.properties and found is not None and not found.num_rows


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
    found = snapshot.scan(f"object_id = {literal('$'.join(path))}", columns=[column])
    values = value_texts(found.column(column)) if found is not None and found.num_rows else [None]
    return {} if values[0] is None else {f"partition.{field.field_id}": values[0]}
