"""What a transaction can do to rows, each in terms of removing and adding them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext

from lancepart.commit.keys import KeyIndex
from lancepart.commit.work import Work
from lancepart.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    reraise_interrupt,
)
from lancepart.model.filtering import matching_rows
from lancepart.model.parse import parse
from lancepart.model.predicate import And, In, Predicate
from lancepart.read import leaf as reading
from lancepart.read.leaf import ADDRESS
from lancepart.write.conform import batches, fit
from lancepart.write.route import Part, in_partitions, route

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction

_MOST_KEYS = 1_000


def append(transaction: Transaction, data: Any) -> int:
    """Add rows to the partitions that they belong to; how many there were."""
    count = 0
    for chunk in batches(data, transaction.metadata.plain_schema):
        count += chunk.num_rows
        add(transaction, list(route(chunk, transaction.metadata.schema, transaction.spec)))
    return count


def add(transaction: Transaction, parts: Sequence[Part]) -> list[Work]:
    """Add rows that are split by partition already; what is done to each partition."""
    works = transaction.work_for(parts)
    transaction.over(list(zip(works, parts, strict=True)), lambda pair: pair[0].append([pair[1].rows]))
    return works


def delete(transaction: Transaction, where: str) -> None:
    """Remove the rows that match."""
    transaction.delete_matching(filter_of(transaction, where))


def filter_of(transaction: Transaction, where: str | None) -> Predicate | None:
    """A filter as a tree."""
    if where is None:
        return None
    if not isinstance(where, str) or not where.strip():
        raise InvalidInputError("the filter is empty: write 'true' to mean all rows")
    return parse(where, transaction.metadata.plain_schema)


def overwrite(transaction: Transaction, data: Any, where: str | None) -> None:
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
            work.replaced = True
    clear_older(transaction, keys)


def replace_all(transaction: Transaction, works: Sequence[Work]) -> None:
    """Remove all rows of some partitions, those that others add meanwhile too."""
    transaction.over([work for work in works if work.head is not None or not work.is_new], Work.replace)


def clear_older(transaction: Transaction, keys: Set[tuple[str, ...]]) -> None:
    """Remove what older specs placed elsewhere of some partitions of the newest."""
    if not transaction.older_specs:
        transaction.bind_specs()
        return
    planned = transaction.plan(None, binding=transaction.older_specs)
    for item in planned.leaves:
        if item.spec_id != transaction.spec.id:
            _clear_rows(transaction, item, keys)


def _clear_rows(transaction: Transaction, item: Any, keys: Set[tuple[str, ...]]) -> None:
    metadata, spec = transaction.metadata, transaction.spec
    numbers = {number for field in spec.fields for number in field.source_ids}
    columns = [field.name for number, field in metadata.columns.items() if number in numbers]
    schema = pa.schema([metadata.schema.field(name) for name in columns])
    doomed = []
    for batch in reading.with_addresses(transaction.task(item, None, columns)):
        table = pa.Table.from_batches([batch])
        doomed.append(table.column(ADDRESS).to_numpy()[in_partitions(table.select(columns), schema, spec, keys)])
    addresses = np.concatenate(doomed) if doomed else np.array([], dtype=np.uint64)
    if len(addresses):
        transaction.work_on(item).delete(addresses)


def _replace_where(transaction: Transaction, data: Any, where: str) -> None:
    predicate = filter_of(transaction, where)
    assert predicate is not None
    found = batches(data, transaction.metadata.plain_schema)
    chunks = [matching(chunk, predicate, where) for chunk in found] if transaction.weak else found
    transaction.delete_matching(predicate, binding=transaction.all_specs)
    for chunk in chunks:
        kept = matching(chunk, predicate, where)
        add(transaction, list(route(kept, transaction.metadata.schema, transaction.spec)))


def matching(chunk: Any, predicate: Predicate, where: str) -> Any:
    """Rows that all match what they replace; others are refused."""
    kept = sum(matching_rows(batch, predicate).num_rows for batch in chunk.to_batches())
    if kept != chunk.num_rows:
        outside = chunk.num_rows - kept
        raise InvalidInputError(f"{outside} rows of the data do not match {where!r}, which is what they replace")
    return chunk


def update(transaction: Transaction, values: Mapping[str, str], where: str | None) -> None:
    """Set columns in the rows that match; a row whose partition changes moves."""
    metadata = transaction.metadata
    unknown = [name for name in values if name not in metadata.schema.names]
    if unknown:
        known = ", ".join(metadata.schema.names)
        raise TableColumnNotFoundError(f"there is no column {unknown[0]!r}: the table has {known}")
    if not values:
        raise InvalidInputError("update needs at least one column to set")
    predicate = filter_of(transaction, where)
    planned = transaction.plan(predicate)
    doomed, changed = [], []
    for item in planned.leaves:
        found = list(reading.with_addresses(transaction.task(item, predicate, metadata.schema.names)))
        if found:
            table = pa.Table.from_batches(found)
            doomed.append((item, table.column(ADDRESS).to_numpy()))
            new = set_columns(table.drop_columns([ADDRESS]), values, metadata.plain_schema)
            changed.append(list(route(new, metadata.schema, transaction.spec)))
    for item, addresses in doomed:
        transaction.work_on(item).delete(addresses)
    for parts in changed:
        add(transaction, parts)


def set_columns(rows: Any, values: Mapping[str, str], schema: Any) -> Any:
    """Rows with some columns computed anew, by DataFusion."""
    context = SessionContext()
    context.register_record_batches("rows", [rows.to_batches()])
    columns = [f"({values[name]}) AS {_quoted(name)}" if name in values else _quoted(name) for name in schema.names]
    try:
        found = context.sql(f"SELECT {', '.join(columns)} FROM rows").collect()
        table = pa.Table.from_batches(found)
        arrays = [_cast(table.column(index), field) for index, field in enumerate(schema)]
    except TableSchemaValidationError:
        raise
    except Exception as error:
        reraise_interrupt(error)
        text = str(error).split("\n")[0]
        raise InvalidInputError(f"the values to set are not understood: {text}") from None
    return fit(pa.table(arrays, names=schema.names), schema)


def _cast(array: Any, field: Any) -> Any:
    try:
        return pc.cast(array, field.type)
    except pa.ArrowException as error:
        raise TableSchemaValidationError(f"column {field.name!r} can't be set to that: {error}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def upsert(transaction: Transaction, data: Any, on: Sequence[str]) -> None:
    """Replace the rows that have a key of the data's, and add its other rows."""
    check_key(transaction, on)
    chunks = list(batches(data, transaction.metadata.plain_schema))
    if not chunks:
        return
    rows = pa.concat_tables(chunks)
    index, works = remove_keys(transaction, rows.select(list(on)))
    parts = list(route(rows, transaction.metadata.schema, transaction.spec))
    guard_keys([*works, *add(transaction, parts)], on, index)


def check_key(transaction: Transaction, on: Sequence[str]) -> None:
    """Refuse a key that is no list of columns of the table."""
    if isinstance(on, str) or not on:
        raise InvalidInputError("on is a list of the columns that make the key")
    unknown = [name for name in on if name not in transaction.metadata.schema.names]
    if unknown:
        raise TableColumnNotFoundError(f"there is no column {unknown[0]!r} to match on")


def remove_keys(transaction: Transaction, keys: Any) -> tuple[KeyIndex, list[Work]]:
    """Remove the rows that have one of some keys, which must not repeat; what is done to which partitions."""
    on = keys.schema.names
    index = KeyIndex.of(keys)
    transaction.fenced = transaction.fenced or not _key_decides_partition(transaction, on)
    planned = transaction.plan(key_filter(keys, on), binding=transaction.older_specs)
    works = []
    for item in planned.leaves:
        doomed = [
            batch.column(ADDRESS).to_numpy()[index.contains(pa.Table.from_batches([batch]).select(on))]
            for batch in reading.with_addresses(transaction.task(item, None, on))
        ]
        addresses = np.concatenate(doomed) if doomed else np.array([], dtype=np.uint64)
        if len(addresses):
            works.append(transaction.work_on(item))
            works[-1].delete(addresses)
    return index, works


def guard_keys(works: Iterable[Work], on: Sequence[str], index: KeyIndex) -> None:
    """Let no other writer have added one of the keys to a partition when the transaction commits."""
    for work in {id(work): work for work in works}.values():
        work.keys = (*work.keys, (tuple(on), index))


def _key_decides_partition(transaction: Transaction, on: Sequence[str]) -> bool:
    """Whether rows with the same key are always in the same leaf, so that two writers of one key meet there."""
    if len(transaction.metadata.specs) > 1:
        return False
    names = {metadata_field.name for metadata_field in _sources(transaction)}
    return names <= set(on)


def _sources(transaction: Transaction) -> list[Any]:
    columns = transaction.metadata.columns
    return [columns[number] for field in transaction.spec.fields for number in field.source_ids if number in columns]


def key_filter(rows: Any, on: Sequence[str]) -> Predicate | None:
    """What the keys imply for where they can stand, as far as they can be listed."""
    tests: list[Predicate] = []
    for name in on:
        distinct = rows.column(name).combine_chunks().unique()
        if len(distinct) <= _MOST_KEYS and not pa.types.is_nested(distinct.type):
            values = tuple(distinct.drop_null())
            tests.append(In(column=name, values=values, negated=False))
    return None if not tests else tests[0] if len(tests) == 1 else And(operands=tuple(tests))
