"""Plans of scans and joins as JSON with a version, of which every part is checked when it is read.

A plan contains only what a user could also request by path (which leaves of which tables, which columns, which
filter), and nothing of it is code. Storage options are not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.model.arrow_json import dump_schema, parse_schema
from lancepart.model.predicate import Predicate
from lancepart.model.predicate_json import predicate_from_json, predicate_to_json
from lancepart.plan.output import Column, chosen, kind_of_join, schema_of
from lancepart.read.group import JoinQuery
from lancepart.read.join import join_keys
from lancepart.read.scan import Scan
from lancepart.spark.leaves_json import TABLE_SHAPE, LeafList, read_leaves, read_pieces, read_table
from lancepart.spark.shapes import checked
from lancepart.spark.spark_plan import SparkJoin, SparkPlan, SparkScan, SparkTask, TableRead
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

VERSION = 2

_PIECES = [[int]]
_JOIN = {
    "on": [[str]],
    "how": str,
    "where": (dict, None),
    "schema": str,
    "left": [(str, None)],
    "right": [(str, None)],
    "shown": [str],
    "memory": (int, None),
}
_SHAPE = {
    "version": int,
    "sides": [{**TABLE_SHAPE, "columns": [str], "where": (dict, None)}],
    "limit": (int, None),
    "join": (_JOIN, None),
    "tasks": [{"pieces": _PIECES, "groups": [[_PIECES]]}],
}


def plan_to_json(plan: SparkPlan, tasks: Sequence[SparkTask]) -> JsonObject:
    """A plan of rows; aggregates and row identities are not part of what is handed over."""
    sides = (plan.side,) if isinstance(plan, SparkScan) else (plan.left, plan.right)
    lists = [LeafList(side.root, side.metadata) for side in sides]
    dealt = [
        {
            "pieces": lists[0].numbers(task.pieces),
            "groups": [[own.numbers(part) for own, part in zip(lists, group, strict=True)] for group in task.groups],
        }
        for task in tasks
    ]
    return {
        "version": VERSION,
        "sides": [
            {**own.to_json(), "columns": list(side.columns), "where": _filter(side.predicate)}
            for own, side in zip(lists, sides, strict=True)
        ],
        "limit": plan.limit if isinstance(plan, SparkScan) else None,
        "join": _join(plan) if isinstance(plan, SparkJoin) else None,
        "tasks": dealt,
    }


def plan_from_json(given: Value, secrets: Sequence[Mapping[str, str]], what: str) -> tuple[SparkPlan, list[SparkTask]]:
    """A plan and its tasks, with the storage options of each table; ``what`` is what errors call the JSON."""
    if not isinstance(given, dict) or given.get("version") != VERSION:
        raise InvalidInputError(f"{what} is not of version {VERSION}: use the same lancepart on both sides")
    checked(given, _SHAPE, what)
    join = given["join"]
    if len(given["sides"]) != (1 if join is None else 2):
        raise InvalidInputError(f"{what} is neither a scan of one table nor a join of two")
    try:
        sides = [_side(each, own, given["limit"]) for each, own in zip(given["sides"], secrets, strict=True)]
        plan = SparkScan(side=sides[0], limit=given["limit"]) if join is None else _read_join(join, *sides)
        leaves = [read_leaves(each) for each in given["sides"]]
        return plan, [_task(each, leaves, is_join=join is not None) for each in given["tasks"]]
    except (ValueError, KeyError, IndexError, TypeError, pa.ArrowException) as error:
        raise InvalidInputError(f"{what} can't be read: {error}") from None


def _side(given: JsonMapping, secrets: Mapping[str, str], limit: int | None) -> TableRead:
    """A table, and what is read of it, checked as a scan of a user's is."""
    root, metadata = Root.parse(given["uri"], secrets), read_table(given)
    scan = Scan.of(root, Snapshot(None, root), metadata, None, given["columns"], limit)
    predicate = _read_filter(given["where"], metadata.plain_schema)
    return TableRead(root=root, metadata=metadata, columns=tuple(scan.schema.names), predicate=predicate)


def _task(given: JsonMapping, leaves: Sequence[Sequence[Leaf]], *, is_join: bool) -> SparkTask:
    if given["pieces"] if is_join else given["groups"]:
        raise ValueError("a task of a join has groups, and one of a scan has pieces")
    groups = []
    for group in given["groups"]:
        left, right = (read_pieces(own, known) for own, known in zip(group, leaves, strict=True))
        groups.append((left, right))
    return SparkTask(pieces=read_pieces(given["pieces"], leaves[0]), groups=tuple(groups))


def _join(plan: SparkJoin) -> JsonObject:
    query = plan.query
    return {
        "on": [[key.left, key.right] for key in query.keys],
        "how": query.how,
        "where": _filter(query.where),
        "schema": dump_schema(schema_of(query.needed)),
        "left": [column.left for column in query.needed],
        "right": [column.right for column in query.needed],
        "shown": list(query.shown),
        "memory": plan.memory,
    }


def _read_join(given: JsonMapping, left: TableRead, right: TableRead) -> SparkJoin:
    named = zip(parse_schema(given["schema"]), given["left"], given["right"], strict=True)
    needed = tuple(Column(field=field, left=one, right=other) for field, one, other in named)
    keys = join_keys([tuple(pair) for pair in given["on"]], left.metadata, right.metadata)
    for side, read in (("left", left), ("right", right)):
        used = {getattr(each, side) for each in (*needed, *keys)} - {None}
        if missing := used - set(read.columns):
            raise ValueError(f"it uses the column {min(missing)!r} of the {side} table and does not read it")
    if any(column.left is None and column.right is None for column in needed):
        raise ValueError("it shows a column of neither table")
    query = JoinQuery(
        how=kind_of_join(given["how"]),
        keys=keys,
        left=_only(left),
        right=_only(right),
        needed=needed,
        shown=tuple(column.name for column in chosen(needed, given["shown"])),
        where=_read_filter(given["where"], schema_of(needed)),
    )
    return SparkJoin(left=left, right=right, query=query, memory=given["memory"])


def _only(side: TableRead) -> pa.Schema:
    plain = side.metadata.plain_schema
    return pa.schema([plain.field(name) for name in side.columns])


def _filter(predicate: Predicate | None) -> JsonObject | None:
    return None if predicate is None else predicate_to_json(predicate)


def _read_filter(given: JsonMapping | None, schema: pa.Schema) -> Predicate | None:
    return None if given is None else predicate_from_json(given, schema)
