"""What a partitioned table's namespaces show as properties beyond those that are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lancepart.errors import LanceNamespaceError
from lancepart.format.names import partition_column
from lancepart.model import draft
from lancepart.model.keys import value_texts
from lancepart.model.spec import PartitionSpec
from lancepart.storage.snapshot import Snapshot, literal

_VERSION = re.compile(r"^v(\d+)$")


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
