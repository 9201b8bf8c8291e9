"""Plans that were made elsewhere and come as options: JSON with a version, of which every part is checked.

Anybody can give a data source any option. So a plan says what could be asked for by its path as well (which leaves of
which tables, which columns, which filter), nothing of it is code, and storage options travel beside it, under a name
that Spark does not show.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.format.records import Stats
from lancepart.layout.layouts import LAYOUTS
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model import hive_path
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.arrow_json import dump_schema, parse_schema
from lancepart.plan.output import Column, chosen, kind_of_join
from lancepart.read.group import GroupTask
from lancepart.read.join import Join, join_keys
from lancepart.read.leaf import LeafTask
from lancepart.read.scan import Scan
from lancepart.spark.shapes import checked
from lancepart.storage.root import Root, check_location
from lancepart.storage.snapshot import Snapshot

PLAN, COLUMNS, SECRETS = "lancepart.plan", "lancepart.columns", "lancepart.secrets"
OPTIONS = frozenset({PLAN, COLUMNS, SECRETS})
VERSION = 1
_MOST_BYTES = 256 << 20

_NUMBERS, _TEXTS = [(int, None)], [(str, None)]
_SIDE = {
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
    "constants": [{"id": int, "type": str, "texts": _TEXTS}],
}
_PLAIN = ("layout", "transactions", "salt", "last_field_id", "change", "foreign")
"""What a table's definition says beside its columns; of its specs nothing is needed once leaves are chosen."""
_PIECES = [[int]]
_SCAN = {"columns": [str], "where": (str, None), "limit": (int, None), "tasks": [_PIECES]}
_JOIN = {
    "on": [[str]],
    "how": str,
    "where": (str, None),
    "schema": str,
    "left": _TEXTS,
    "right": _TEXTS,
    "shown": [str],
    "memory": (int, None),
    "tasks": [[[_PIECES]]],
}
_SHAPE = {"version": int, "sides": [_SIDE], "scan": (_SCAN, None), "join": (_JOIN, None)}

Piece = list[int]
"""The place of a leaf in its side, and the fragments that are read of it; none for all."""
ScanTasks = list[tuple[LeafTask, ...]]
JoinTasks = list[tuple[GroupTask, ...]]


def scan_options(scan: Scan, tasks: Sequence[Sequence[LeafTask]]) -> dict[str, str]:
    """A scan as options."""
    side = _Leaves(scan)
    payload = {
        "columns": scan.schema.names,
        "where": scan.where,
        "limit": None if scan.limit is None else int(scan.limit),
        "tasks": [side.pieces(task) for task in tasks],
    }
    return _options((side,), scan=payload)


def join_options(join: Join, tasks: Sequence[Sequence[GroupTask]]) -> dict[str, str]:
    """A join as options."""
    left, right = _Leaves(join.left), _Leaves(join.right)
    payload = {
        "on": [[key.left, key.right] for key in join.keys],
        "how": join.how,
        "where": join.where,
        "schema": dump_schema(pa.schema([column.field for column in join.all_columns])),
        "left": [column.left for column in join.all_columns],
        "right": [column.right for column in join.all_columns],
        "shown": [column.name for column in join.columns],
        "memory": join.memory,
        "tasks": [[[left.pieces(group.left), right.pieces(group.right)] for group in task] for task in tasks],
    }
    return _options((left, right), join=payload)


def read_plan(options: Mapping[str, str]) -> tuple[ScanTasks, JoinTasks, int | None]:
    """The tasks that a plan in options names, those of a scan or of a join, and a join's memory."""
    given = _unpacked(options[PLAN])
    if not isinstance(given, dict) or given.get("version") != VERSION:
        raise _wrong(f"is not of version {VERSION}: use the same lancepart on both sides")
    checked(given, _SHAPE, PLAN)
    scan, join = given["scan"], given["join"]
    if (scan is None) == (join is None) or len(given["sides"]) != (1 if join is None else 2):
        raise _wrong("is neither a scan of one table nor a join of two")
    secrets = _secrets(options.get(SECRETS), len(given["sides"]))
    try:
        sides = [_Side(each, own) for each, own in zip(given["sides"], secrets, strict=True)]
        if scan is not None:
            return _scan_tasks(sides[0], scan), [], None
        return [], _join_tasks(sides[0], sides[1], join), join["memory"]
    except (ValueError, KeyError, IndexError, pa.ArrowException) as error:
        raise _wrong(f"can't be read: {error}") from None


class _Leaves:
    """The leaves of one table that tasks name, column by column: there may be many thousands."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._places: dict[str, int] = {}
        self._leaves: list[Leaf] = []

    @property
    def root(self) -> Root:
        return self._scan.root

    def pieces(self, tasks: Sequence[LeafTask]) -> list[Piece]:
        return [[self._place(task.leaf), *(task.fragments or ())] for task in tasks]

    def _place(self, leaf: Leaf) -> int:
        place = self._places.setdefault(leaf.object_id, len(self._leaves))
        if place == len(self._leaves):
            self._leaves.append(leaf)
        return place

    def to_json(self) -> JsonObject:
        stats, metadata = [leaf.stats for leaf in self._leaves], self._scan.metadata
        return {
            "uri": self.root.uri,
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


class _Side:
    """The table that a plan reads, and its leaves."""

    def __init__(self, given: JsonMapping, secrets: Mapping[str, str]) -> None:
        if given["layout"] not in LAYOUTS:
            raise _wrong(f"names an unknown layout, {given['layout']!r}")
        self.root = Root.parse(given["uri"], secrets)
        self.metadata = TableMetadata(
            schema=parse_schema(given["schema"]),
            specs=(),
            past=tuple((each["id"], tuple(each["names"])) for each in given["past"]),
            **{name: given[name] for name in _PLAIN},
        )
        constants = _constants(given["constants"], len(given["ids"]))
        names = ("ids", "specs", "locations", "versions", "rows", "bytes", "fragments")
        rows = zip(*(given[name] for name in names), constants, strict=True)
        self._leaves = [_leaf(*row) for row in rows]

    def scan(self, where: str | None = None, columns: Sequence[str] | None = None, limit: int | None = None) -> Scan:
        """A scan that stands for the table; it is planned already, so that its snapshot is one of nothing."""
        return Scan.of(self.root, Snapshot(None, self.root), self.metadata, where, columns, limit)

    def tasks(self, pieces: Sequence[Piece], make: Callable[[Leaf], LeafTask]) -> tuple[LeafTask, ...]:
        """The tasks that pieces stand for."""
        return tuple(_cut(make(self._leaves[at]), numbers) for at, *numbers in pieces)


def _leaf(
    object_id: str,
    spec_id: int,
    location: str,
    version: int | None,
    rows: int | None,
    size: int | None,
    fragments: int | None,
    constants: tuple[tuple[int, Any], ...],
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


def _constants(given: Sequence[JsonMapping], count: int) -> list[tuple[tuple[int, Any], ...]]:
    columns = []
    for each in given:
        kind = parse_schema(each["type"]).field(0).type
        values = hive_path.parse(each["texts"], kind, key=str(each["id"]))
        columns.append([(each["id"], value) for value in values])
    if any(len(column) != count for column in columns):
        raise _wrong("has columns of different lengths")
    return [tuple(row) for row in zip(*columns, strict=True)] if columns else [()] * count


def _scan_tasks(side: _Side, given: JsonMapping) -> ScanTasks:
    scan = side.scan(given["where"], given["columns"], given["limit"])
    return [side.tasks(task, scan.task_of) for task in given["tasks"]]


def _join_tasks(left: _Side, right: _Side, given: JsonMapping) -> JoinTasks:
    scans = left.scan(), right.scan()
    named = zip(parse_schema(given["schema"]), given["left"], given["right"], strict=True)
    columns = tuple(Column(field=field, left=one, right=other) for field, one, other in named)
    for side, scan in (("left", scans[0]), ("right", scans[1])):
        for name in {getattr(column, side) for column in columns} - {None}:
            scan.metadata.plain_schema.field(name)
    join = Join(
        left=scans[0],
        right=scans[1],
        keys=join_keys([tuple(pair) for pair in given["on"]], *(scan.metadata for scan in scans)),
        how=kind_of_join(given["how"]),
        where=given["where"],
        all_columns=columns,
        columns=chosen(columns, given["shown"]),
        memory=given["memory"],
    )
    query, one, other = join.makers()
    return [
        tuple(GroupTask(left=left.tasks(a, one), right=right.tasks(b, other), query=query) for a, b in task)
        for task in given["tasks"]
    ]


def _cut(task: LeafTask, fragments: Sequence[int]) -> LeafTask:
    return replace(task, fragments=tuple(fragments)) if fragments else task


def _options(sides: Sequence[_Leaves], **payload: Any) -> dict[str, str]:
    whole = {"version": VERSION, "sides": [each.to_json() for each in sides], "scan": None, "join": None, **payload}
    packed = zlib.compress(json.dumps(whole, separators=(",", ":")).encode())
    found = {PLAN: base64.b64encode(packed).decode()}
    secrets = [dict(each.root.storage_options) for each in sides]
    return found | ({SECRETS: json.dumps(secrets)} if any(secrets) else {})


def _unpacked(text: str) -> Any:
    """The JSON of a plan; one that would fill the memory is not unpacked."""
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise _wrong(f"has more than {_MOST_BYTES} bytes")
        return json.loads(found)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise _wrong("is not the JSON of a plan") from None


def _secrets(text: str | None, count: int) -> list[dict[str, str]]:
    if text is None:
        return [{}] * count
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    plain = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    if not plain or any(not isinstance(value, str) for each in found for value in each.values()):
        raise InvalidInputError(f"option {SECRETS!r} is not a list of storage options, one a table")
    return list(found)


def _wrong(fault: str) -> InvalidInputError:
    return InvalidInputError(f"option {PLAN!r} {fault}; scan.to_spark and join.to_spark make it")
