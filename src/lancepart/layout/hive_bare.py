"""The definition of a Hive-style tree without a catalog: levels from directory names, columns from its first leaf."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancepart.errors import InvalidTableStateError, LanceNamespaceError
from lancepart.layout import hive
from lancepart.layout.metadata import HIVE, WEAK, TableMetadata
from lancepart.model import hive_path
from lancepart.model.schema import assign_field_ids, field_id, max_field_id
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Identity, Transform
from lancepart.model.transforms.hive import Unknown
from lancepart.model.values import logical_type
from lancepart.storage import leaf_handle
from lancepart.storage.root import Root

_FUNCTIONS = ("year", "month", "day", "hour", "hash")
_UNKNOWN = {"_bucket": pa.int32(), "_trunc": None}


def inferred(root: Root, paths: Sequence[Sequence[str]], location: str) -> tuple[TableMetadata, tuple[str, ...]]:
    """A definition for a tree that has none, and the keys of its levels.

    A key that is a column's name and a function's suffix is that function of the column; any other is a column of
    its own, after those of the leaves, of whole numbers, dates or text.
    """
    pairs = [hive_path.split(name) for name in paths[0]]
    keys = tuple(pair[0] for pair in pairs if pair is not None)
    if len(keys) != len(pairs):
        raise InvalidTableStateError(f"leaf {'/'.join(paths[0])!r} is not named by key=value throughout")
    stored = leaf_handle.shape_of(leaf_handle.open_leaf(root, location, None)).schema
    given: dict[str, tuple[str, Transform, pa.DataType | None]] = {}
    extra = []
    for level, key in enumerate(keys):
        found = None if key in stored.names else _function(key, stored)
        if found is None and key not in stored.names:
            texts = [_text(path, level) for path in paths]
            extra.append(pa.field(key, hive_path.guessed(texts)))
        given[key] = found or (key, Identity(), None)
    schema = assign_field_ids(pa.schema([*(field.remove_metadata() for field in stored), *extra]))
    fields = []
    for key, (name, transform, result) in given.items():
        source = schema.field(name)
        kind = result or transform.result_type([logical_type(source.type)])
        number = int(field_id(source) or 0)
        fields.append(
            PartitionField(field_id=hive.field_name(key), source_ids=(number,), transform=transform, result_type=kind)
        )
    spec = PartitionSpec(id=1, fields=tuple(fields))
    metadata = TableMetadata(
        schema=schema,
        specs=(spec,),
        transactions=WEAK,
        salt="",
        last_field_id=max_field_id(schema),
        layout=HIVE,
    )
    return metadata, keys


def _text(path: Sequence[str], level: int) -> str | None:
    pair = hive_path.split(path[level]) if level < len(path) else None
    return None if pair is None else pair[1]


def _function(key: str, stored: pa.Schema) -> tuple[str, Transform, pa.DataType | None] | None:
    for suffix, kind in _UNKNOWN.items():
        name = key.removesuffix(suffix)
        if name != key and name in stored.names:
            return name, Unknown(), kind
    for function in _FUNCTIONS:
        name = key.removesuffix(f"_{function}")
        if name == key or name not in stored.names:
            continue
        column = hive.HiveColumn(name=name, function=function)
        try:
            column.check(stored.field(name).type)
        except LanceNamespaceError:
            continue
        return name, column.transform, None
    return None
