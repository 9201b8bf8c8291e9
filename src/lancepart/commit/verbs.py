"""The operations of a transaction on rows, each expressed as removing and adding rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionConfig, SessionContext

from lancepart.commit import upserts
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.own_row import OtherRowsError, refuse_other_rows
from lancepart.commit.upsert_keys import KeyIndex
from lancepart.commit.upserts import Addresses, Matches
from lancepart.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    reraise_interrupt,
)
from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import RowSource
from lancepart.model.binding import bound
from lancepart.model.filtering import matching_rows
from lancepart.model.mismatches import example_of, kind_of
from lancepart.model.parse import parse
from lancepart.model.predicate import Filter, Predicate
from lancepart.model.query_terms import bind_query
from lancepart.model.sql_errors import missing_column, plain
from lancepart.model.sql_text import depth, tokens
from lancepart.model.suggest import near
from lancepart.read import leaf as reading
from lancepart.read.key_lookup import narrowed
from lancepart.read.leaf import ADDRESS, LeafTask
from lancepart.write.conform import batches, fit, refuse_nulls
from lancepart.write.route import PartitionRows, in_partitions, route

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction

_MOST_NESTED, _MOST_OPERATORS = 20, 500
BATCH_ROWS = 65_536
_MOST_SHOWN = 200
_TIMES = frozenset({"date", "timestamp", "time of day"})


def append(transaction: Transaction, data: RowSource) -> int:
    """Add rows to the partitions that they belong to; how many there were."""
    count = 0
    for chunk in batches(data, transaction.metadata.plain_schema):
        count += chunk.num_rows
        add(transaction, list(route(chunk, transaction.metadata.schema, transaction.spec)))
    return count


def add(transaction: Transaction, parts: Sequence[PartitionRows]) -> list[LeafChanges]:
    """Add rows that are split by partition already; the changes of each partition."""
    works = transaction.work_for(parts)
    transaction.over(list(zip(works, parts, strict=True)), lambda pair: pair[0].append([pair[1].rows]))
    return works


def exchange(
    transaction: Transaction, doomed: Sequence[tuple[Leaf, Addresses]], fresh: Iterable[Sequence[PartitionRows]]
) -> list[LeafChanges]:
    """Remove rows of leaves and add others, which are split by partition; the changes of each partition."""
    gone = {item.object_id: addresses for item, addresses in doomed if len(addresses)}
    works = {name: transaction.work_on(item) for item, addresses in doomed if (name := item.object_id) in gone}
    rows: dict[str, list[pa.Table]] = {}
    for parts in fresh:
        for work, part in zip(transaction.work_for(parts), parts, strict=True):
            works[work.object_id] = work
            rows.setdefault(work.object_id, []).append(part.rows)
    nothing: Addresses = np.array([], dtype=np.uint64)
    transaction.over(
        list(works.values()),
        lambda work: work.exchange(gone.get(work.object_id, nothing), rows.get(work.object_id, [])),
    )
    return list(works.values())


def delete(transaction: Transaction, where: Filter) -> None:
    """Remove the rows that match a filter, which must be written out."""
    transaction.delete_matching(written_filter(where, transaction.metadata.plain_schema))


def filter_of(transaction: Transaction, where: Filter | None) -> Predicate | None:
    """A filter as a tree; None is none."""
    return None if where is None else written_filter(where, transaction.metadata.plain_schema)


def written_filter(where: Filter, schema: pa.Schema) -> Predicate:
    """A filter as a tree over a schema; nothing at all is not taken to mean all rows."""
    if isinstance(where, Predicate):
        return bound(where, schema)
    if not isinstance(where, str):
        raise InvalidInputError(f"the filter is {where!r}: give SQL as text, and 'true' to mean all rows")
    if not where.strip():
        raise InvalidInputError("the filter is empty: write 'true' to mean all rows")
    return parse(where, schema)


def shown(where: Filter) -> str:
    """A filter in messages: as it was written, or else as SQL."""
    return where if isinstance(where, str) else where.to_sql()


def overwrite(transaction: Transaction, data: RowSource, where: Filter | None) -> None:
    """Replace exactly the partitions that the data touches, or exactly the rows that a filter matches."""
    if where is not None:
        _replace_where(transaction, data, where)
        return
    keys: set[tuple[str, ...]] = set()
    for chunk in batches(data, transaction.metadata.plain_schema):
        parts = list(route(chunk, transaction.metadata.schema, transaction.spec))
        fresh = [part for part in parts if part.key not in keys]
        replace_all(transaction, transaction.work_for(fresh))
        keys |= {part.key for part in fresh}
        for work in add(transaction, parts):
            work.claim_all()
    clear_older(transaction, keys)


def replace_all(transaction: Transaction, works: Sequence[LeafChanges]) -> None:
    """Remove all rows of some partitions, those that others add meanwhile too."""
    transaction.over([work for work in works if work.head is not None or not work.is_new], LeafChanges.replace)


def clear_older(transaction: Transaction, keys: Set[tuple[str, ...]]) -> None:
    """Remove what older specs placed elsewhere of some partitions of the newest."""
    if not transaction.older_specs:
        transaction.bind_specs()
        return
    planned = transaction.plan(None, binding=transaction.older_specs)
    for item in planned.leaves:
        if item.spec_id != transaction.spec.id:
            _clear_rows(transaction, item, keys)


def _clear_rows(transaction: Transaction, item: Leaf, keys: Set[tuple[str, ...]]) -> None:
    metadata, spec = transaction.metadata, transaction.spec
    numbers = {number for field in spec.fields for number in field.source_ids}
    columns = list(dict.fromkeys(field.name for number, field in metadata.owners.items() if number in numbers))
    schema = pa.schema([metadata.schema.field(name) for name in columns])
    doomed = []
    for batch in reading.with_addresses(transaction.task(item, None, columns)):
        table = pa.Table.from_batches([batch])
        doomed.append(table.column(ADDRESS).to_numpy()[in_partitions(table.select(columns), schema, spec, keys)])
    addresses = np.concatenate(doomed) if doomed else np.array([], dtype=np.uint64)
    if len(addresses):
        transaction.work_on(item).delete(addresses)


def _replace_where(transaction: Transaction, data: RowSource, where: Filter) -> None:
    predicate = filter_of(transaction, where)
    assert predicate is not None
    found = batches(data, transaction.metadata.plain_schema)
    chunks = [matching(chunk, predicate, where) for chunk in found] if transaction.weak else found
    transaction.delete_matching(predicate, binding=transaction.all_specs)
    for chunk in chunks:
        kept = matching(chunk, predicate, where)
        add(transaction, list(route(kept, transaction.metadata.schema, transaction.spec)))


def matching(chunk: pa.Table, predicate: Predicate, where: Filter) -> pa.Table:
    """Rows that all match what they replace; others are refused."""
    kept = sum(matching_rows(batch, predicate).num_rows for batch in chunk.to_batches())
    if kept != chunk.num_rows:
        outside = chunk.num_rows - kept
        raise InvalidInputError(
            f"{outside} rows of the data do not match {shown(where)!r}, the filter of the rows that they replace"
        )
    return chunk


def update(transaction: Transaction, values: Mapping[str, str], where: Filter | None) -> None:
    """Set columns in the rows that match; a row whose partition changes moves."""
    metadata = transaction.metadata
    check_values(values, metadata.schema)
    predicate = filter_of(transaction, where)
    planned = transaction.plan(predicate)
    doomed, changed = [], []
    for item in holding(transaction, planned.leaves, predicate):
        task = transaction.task(item, predicate, metadata.schema.names)
        found = list(reading.with_addresses(reading.in_large_batches(task, BATCH_ROWS)))
        if found:
            table = pa.Table.from_batches(found)
            doomed.append((item, table.column(ADDRESS).to_numpy()))
            new = set_columns(table.drop_columns([ADDRESS]), values, metadata.plain_schema)
            transaction.updated += new.num_rows
            changed.append(list(route(new, metadata.schema, transaction.spec)))
    exchange(transaction, doomed, changed)


def check_values(values: Mapping[str, str], schema: pa.Schema) -> None:
    """Refuse columns that are not there, and values that are not SQL."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidInputError("update needs at least one column to set: give a dict of SQL expressions by column")
    unknown = [name for name in values if name not in schema.names]
    if unknown:
        raise TableColumnNotFoundError(
            f"there is no column {unknown[0]!r}: the table has {', '.join(schema.names)}"
            f"{near(unknown[0], schema.names)}"
        )
    for name, value in values.items():
        if not isinstance(value, str) or not value.strip():
            raise InvalidInputError(f"column {name!r} is to be set to {value!r}: give SQL as text, such as 'n + 1'")
        refuse_deep(f"column {name!r} is to be set to", value)


def refuse_deep(what: str, expression: str) -> None:
    """Refuse an expression with comments, or that DataFusion would overflow the stack with, or parse for hours."""
    found = depth(tokens(expression))
    if found.nested > _MOST_NESTED or found.chain > _MOST_OPERATORS:
        raise InvalidInputError(
            f"{what} an expression with {found.nested} levels and {found.chain} operators in a row: "
            f"{_MOST_NESTED} and {_MOST_OPERATORS} are the most"
        )


def set_columns(rows: pa.Table, values: Mapping[str, str], schema: pa.Schema) -> pa.Table:
    """Rows with some columns recomputed by DataFusion."""
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches("rows", [rows.to_batches()])
    columns = [f"({values[name]}) AS {_quoted(name)}" if name in values else _quoted(name) for name in schema.names]
    try:
        query = bind_query(context, f"SELECT {', '.join(columns)} FROM rows")
        frame = context.sql(query.text)
        refuse_other_rows(frame, values.values())
        table = pa.Table.from_batches(frame.collect())
        arrays = [cast_to(table.column(index), field) for index, field in enumerate(schema)]
    except (TableSchemaValidationError, OtherRowsError):
        raise
    except Exception as error:
        reraise_interrupt(error)
        first = str(error).split("\n")[0].removeprefix("DataFusion error: ")
        text = missing_column(first, " = " + ", ".join(values.values()), schema.names) or plain(first)
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        shown = given if len(given) <= _MOST_SHOWN else f"{given[:_MOST_SHOWN]}…"
        raise InvalidInputError(
            f"the values to set are not understood ({shown}): each is an SQL expression, texts in single quotes: {text}"
        ) from None
    found_rows = fit(pa.table(arrays, names=schema.names), schema)
    refuse_nulls(found_rows)
    return found_rows


def cast_to(array: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A computed column in the type of the table's; Arrow would take a number for a time since 1970."""
    reason = f"it is {array.type}"
    if kind_of(array.type) != "number" or kind_of(field.type) not in _TIMES:
        try:
            return pc.cast(array, field.type)
        except pa.ArrowException as error:
            reason = str(error)
    hint = "" if (example := example_of(field.type)) is None else f"; write it as in {example}"
    raise TableSchemaValidationError(
        f"column {field.name!r} is of type {field.type} and can't be set to this value: {reason}{hint}"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def upsert(transaction: Transaction, data: RowSource, on: Sequence[str]) -> None:
    """Replace the rows that have a key of the data's, in the columns that it names, and add its other rows."""
    schema = transaction.metadata.plain_schema
    upserts.check_key(schema, on)
    rows = upserts.gathered(data, schema, on)
    if rows is None:
        return
    index, matches = find_keys(transaction, rows.table.select(list(on)), keep=list(rows.unnamed))
    parts = list(route(upserts.completed(rows, matches, on), transaction.metadata.schema, transaction.spec))
    transaction.updated += min(rows.table.num_rows, len(np.unique(matches.rows)))
    guard_keys(exchange(transaction, matches.addresses, [parts]), on, index)


def find_keys(transaction: Transaction, keys: pa.Table, *, keep: Sequence[str] = ()) -> tuple[KeyIndex, Matches]:
    """Find the rows that have one of some keys, which must not repeat, and read the columns of theirs to keep."""
    on = keys.schema.names
    index = KeyIndex.of(keys)
    transaction.fenced = transaction.fenced or not key_decides_partition(transaction, on)
    wanted = upserts.key_filter(keys, on)
    planned = transaction.plan(wanted, binding=transaction.older_specs)
    leaves = holding(transaction, planned.leaves, wanted)

    def task(item: Leaf, columns: Sequence[str]) -> LeafTask:
        return reading.in_large_batches(transaction.task(item, None, columns), BATCH_ROWS)

    return index, upserts.find(leaves, task, index, on, keep, over=transaction.over)


def holding(transaction: Transaction, leaves: Sequence[Leaf], predicate: Predicate | None) -> Sequence[Leaf]:
    """The leaves that may hold a row that a filter matches, by the table-wide look-ups of keys."""
    return narrowed(transaction.manifest.root, transaction.snapshot, transaction.metadata, leaves, predicate)


def remove(transaction: Transaction, matches: Matches) -> list[LeafChanges]:
    """Remove rows that were found; the changes of each partition."""
    return exchange(transaction, matches.addresses, [])


def guard_keys(works: Iterable[LeafChanges], on: Sequence[str], index: KeyIndex) -> None:
    """Fail the commit if another writer adds one of the keys to a partition meanwhile."""
    for work in {id(work): work for work in works}.values():
        work.guard(on, index)


def key_decides_partition(transaction: Transaction, on: Sequence[str]) -> bool:
    """Whether rows with the same key are always in the same leaf, so that two writers of one key meet there."""
    if len(transaction.metadata.specs) > 1:
        return False
    names = {metadata_field.name for metadata_field in _sources(transaction)}
    return names <= set(on)


def _sources(transaction: Transaction) -> list[pa.Field]:
    columns = transaction.metadata.owners
    return [columns[number] for field in transaction.spec.fields for number in field.source_ids if number in columns]
