"""A table and the leaves that a plan reads of it as JSON, column by column: there may be many thousands."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancepart.format.records import Stats
from lancepart.layout.layouts import LAYOUTS
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model import hive_path
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.arrow_json import dump_schema, parse_schema
from lancepart.read.pieces import Piece
from lancepart.storage.root import Root, check_location

_NUMBERS = [(int, None)]
TABLE_SHAPE = {
    "uri": str,
    "schema": str,
    "layout": str,
    "transactions": str,
    "salt": str,
    "last_field_id": int,
    "change": int,
    "past": [{"id": int, "names": [str]}],
    "foreign": bool,
    "ids": [str],
    "specs": [int],
    "locations": [str],
    "versions": _NUMBERS,
    "rows": _NUMBERS,
    "bytes": _NUMBERS,
    "fragments": _NUMBERS,
    "constants": [{"id": int, "type": str, "texts": [(str, None)]}],
}
_PLAIN = ("layout", "transactions", "salt", "last_field_id", "change", "foreign")
"""What a table's definition says beside its columns; of its specs nothing is needed once leaves are chosen."""

Numbers = list[int]
"""The position of a leaf in the table's list, and the fragments that are read of it; none for all."""


class LeafList:
    """The leaves of one table that tasks name."""

    def __init__(self, root: Root, metadata: TableMetadata) -> None:
        self._root = root
        self._metadata = metadata
        self._positions: dict[str, int] = {}
        self._leaves: list[Leaf] = []

    def numbers(self, pieces: Sequence[Piece]) -> list[Numbers]:
        """What stands for some pieces."""
        return [[self._position(piece.leaf), *(piece.fragments or ())] for piece in pieces]

    def _position(self, leaf: Leaf) -> int:
        position = self._positions.setdefault(leaf.object_id, len(self._leaves))
        if position == len(self._leaves):
            self._leaves.append(leaf)
        return position

    def to_json(self) -> JsonObject:
        """The table, and the leaves that were named so far."""
        stats, metadata = [leaf.stats for leaf in self._leaves], self._metadata
        return {
            "uri": self._root.uri,
            "schema": dump_schema(metadata.schema),
            **{name: getattr(metadata, name) for name in _PLAIN},
            "past": [{"id": number, "names": list(names)} for number, names in metadata.past],
            "ids": [leaf.object_id for leaf in self._leaves],
            "specs": [leaf.spec_id for leaf in self._leaves],
            "locations": [leaf.location for leaf in self._leaves],
            "versions": [leaf.read_version for leaf in self._leaves],
            "rows": [None if each is None else each.rows for each in stats],
            "bytes": [None if each is None else each.bytes for each in stats],
            "fragments": [None if each is None else each.fragments for each in stats],
            "constants": self._constants(),
        }

    def _constants(self) -> list[JsonObject]:
        """The columns that paths hold; all leaves of a table have the same."""
        numbers = [number for number, _ in self._leaves[0].constants] if self._leaves else []
        found = []
        for at, number in enumerate(numbers):
            values = [leaf.constants[at][1] for leaf in self._leaves]
            kind = values[0].type
            texts = hive_path.texts(pa.array(values, kind), "identity")
            found.append({"id": number, "type": dump_schema(pa.schema([("value", kind)])), "texts": texts})
        return found


def read_table(given: JsonMapping) -> TableMetadata:
    """The definition of a table, as far as reading chosen leaves needs it."""
    if given["layout"] not in LAYOUTS:
        raise ValueError(f"it names an unknown layout, {given['layout']!r}")
    return TableMetadata(
        schema=parse_schema(given["schema"]),
        specs=(),
        past=tuple((each["id"], tuple(each["names"])) for each in given["past"]),
        **{name: given[name] for name in _PLAIN},
    )


def read_leaves(given: JsonMapping) -> list[Leaf]:
    """The leaves that a table's JSON lists."""
    constants = _read_constants(given["constants"], len(given["ids"]))
    names = ("ids", "specs", "locations", "versions", "rows", "bytes", "fragments")
    rows = zip(*(given[name] for name in names), constants, strict=True)
    return [_leaf(*row) for row in rows]


def read_pieces(numbers: Sequence[Numbers], leaves: Sequence[Leaf]) -> tuple[Piece, ...]:
    """The pieces that positions and fragments stand for."""
    return tuple(_piece(leaves[at], fragments) for at, *fragments in numbers)


def _piece(leaf: Leaf, fragments: Sequence[int]) -> Piece:
    return Piece(leaf=leaf, bytes=leaf.stats.bytes if leaf.stats else 0, fragments=tuple(fragments) or None)


def _leaf(
    object_id: str,
    spec_id: int,
    location: str,
    version: int | None,
    rows: int | None,
    size: int | None,
    fragments: int | None,
    constants: tuple[tuple[int, pa.Scalar], ...],
) -> Leaf:
    known = None not in (rows, size, fragments)
    return Leaf(
        object_id=object_id,
        spec_id=spec_id,
        location=check_location(location),
        key=(),
        values=(),
        read_version=version,
        stats=Stats(rows=rows or 0, bytes=size or 0, fragments=fragments or 0) if known else None,
        constants=constants,
    )


def _read_constants(given: Sequence[JsonMapping], count: int) -> list[tuple[tuple[int, pa.Scalar], ...]]:
    columns = []
    for each in given:
        kind = parse_schema(each["type"]).field(0).type
        values = hive_path.parse(each["texts"], kind, key=str(each["id"]))
        columns.append([(each["id"], value) for value in values])
    if any(len(column) != count for column in columns):
        raise ValueError("it has columns of different lengths")
    return [tuple(row) for row in zip(*columns, strict=True)] if columns else [()] * count
