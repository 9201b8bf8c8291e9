"""Carrying out a merge in a transaction: rows are paired by key, clauses evaluated by DataFusion, rows moved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from lancepart.commit import upserts, verbs
from lancepart.commit.merge import MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE, Clause, Merge
from lancepart.commit.own_row import OtherRowsError, refuse_other_rows
from lancepart.commit.upsert_keys import KeyIndex
from lancepart.errors import InvalidInputError, TableSchemaValidationError, reraise_interrupt
from lancepart.layout.leaves import Leaf
from lancepart.model.filtering import DEEP_FILTERS
from lancepart.model.nested import nulls_inside
from lancepart.model.query_terms import bind_query
from lancepart.model.sql_errors import plain
from lancepart.read import leaf as reading
from lancepart.read.leaf import ADDRESS
from lancepart.write.casts import cast
from lancepart.write.conform import any_rows, fit, refuse_doubled, refuse_nulls
from lancepart.write.dicts import are_dicts, listed
from lancepart.write.route import route

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction

_NO_TEST = re.compile(r"(\w+)(?:\([^)]*\))? IS DISTINCT FROM Boolean")
_PAIR, _CHOICE = "__lancepart_pair", "__lancepart_clause"
_UNNAMED = "__lancepart_unnamed "
"""Begins the name of a column that says which rows of the source leave another column out."""
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Rows of one leaf that a merge reads: their addresses, and the source row that each matches, or -1."""

    leaf: Leaf
    rows: pa.Table
    addresses: npt.NDArray[np.uint64]
    partners: Positions


def run(transaction: Transaction, merge: Merge) -> None:
    """Run a merge; the rows that match, and the new rows, are held in memory."""
    schema = transaction.metadata.plain_schema
    upserts.check_key(schema, merge.on)
    for clause in merge.clauses:
        if clause.values:
            verbs.check_values(clause.values, schema)
        if clause.condition is not None:
            verbs.refuse_deep("the condition is", clause.condition)
    source = _source(merge, schema)
    index = KeyIndex.of(source.select(list(merge.on)))
    targets = _targets(transaction, merge, source, index)
    met = np.zeros(source.num_rows, dtype=bool)
    fresh, doomed = [], []
    for target in targets:
        met[target.partners[target.partners >= 0]] = True
        gone, rows, updated = _changed(target, merge, source, schema)
        transaction.updated += updated
        doomed.append((target.leaf, target.addresses[gone]))
        fresh += rows
    alone = source.take(pa.array(np.flatnonzero(~met)))
    fresh += _evaluated(merge.of(NOT_MATCHED), alone, None, schema, alone)[1]
    _apply(transaction, merge, index, doomed, fresh)


def _apply(
    transaction: Transaction,
    merge: Merge,
    index: KeyIndex,
    doomed: Sequence[tuple[Leaf, npt.NDArray[np.uint64]]],
    fresh: Sequence[pa.Table],
) -> None:
    """Remove and add rows; new rows are checked before any row is removed."""
    for rows in fresh:
        refuse_nulls(rows)
    parts = [list(route(rows, transaction.metadata.schema, transaction.spec)) for rows in fresh if rows.num_rows]
    verbs.guard_keys(verbs.exchange(transaction, doomed, parts), merge.on, index)


def _source(merge: Merge, schema: pa.Schema) -> pa.Table:
    """The source's rows, those columns that the table has in the table's types."""
    data = listed(merge.source)
    rows = nulls_inside(any_rows(data, schema))
    refuse_doubled(rows.schema.names)
    upserts.require_key(merge.on, [name for name in merge.on if name not in rows.schema.names])
    for at, name in enumerate(rows.schema.names):
        if name in schema.names:
            fitted = cast(rows.column(at), schema.field(name).type, name)
            rows = rows.set_column(at, pa.field(name, schema.field(name).type), fitted)
    dicts = data if are_dicts(data) else []
    for name in rows.schema.names if dicts else ():
        unnamed = [name not in row for row in dicts]
        if any(unnamed):
            upserts.require_key(merge.on, [name])
            rows = rows.append_column(f"{_UNNAMED}{name}", pa.array(unnamed))
    return rows


def _targets(transaction: Transaction, merge: Merge, source: pa.Table, index: KeyIndex) -> list[_Target]:
    """The rows of the table that the merge looks at; of leaves that can't hold a key only if all rows count."""
    names = list(transaction.metadata.schema.names)
    everything = bool(merge.of(NOT_MATCHED_BY_SOURCE))
    decides = verbs.key_decides_partition(transaction, merge.on)
    transaction.fenced = transaction.fenced or everything or not decides
    where = None if everything else upserts.key_filter(source, merge.on)
    planned = transaction.plan(where, binding=transaction.all_specs if everything else transaction.older_specs)
    found = []
    for item in planned.leaves:
        rows, addresses, partners = [], [], []
        task = reading.in_large_batches(transaction.task(item, None, names), verbs.BATCH_ROWS)
        for batch in reading.with_addresses(task):
            table = pa.Table.from_batches([batch])
            own = index.find(table.select(list(merge.on)))
            kept = np.ones(len(own), dtype=bool) if everything else own >= 0
            if kept.any():
                rows.append(table.select(names).filter(pa.array(kept)))
                addresses.append(table.column(ADDRESS).to_numpy()[kept])
                partners.append(own[kept])
        if rows:
            found.append(
                _Target(
                    leaf=item,
                    rows=pa.concat_tables(rows),
                    addresses=np.concatenate(addresses),
                    partners=np.concatenate(partners),
                )
            )
    return found


def _changed(
    target: _Target, merge: Merge, source: pa.Table, schema: pa.Schema
) -> tuple[Positions, list[pa.Table], int]:
    """The rows of a leaf to remove, the rows that replace them, and how many those are."""
    gone, fresh, updated = [], [], 0
    for when, positions in (
        (MATCHED, np.flatnonzero(target.partners >= 0)),
        (NOT_MATCHED_BY_SOURCE, np.flatnonzero(target.partners < 0)),
    ):
        clauses = merge.of(when)
        if not clauses or not len(positions):
            continue
        rows = target.rows.take(pa.array(positions))
        partner = source.take(pa.array(target.partners[positions])) if when == MATCHED else None
        touched, made = _evaluated(clauses, partner, rows, schema, rows)
        gone.append(positions[touched])
        fresh += made
        updated += sum(table.num_rows for table in made)
    return np.concatenate(gone) if gone else np.array([], dtype=np.int64), fresh, updated


def _evaluated(
    clauses: Sequence[Clause], source: pa.Table | None, target: pa.Table | None, schema: pa.Schema, rows: pa.Table
) -> tuple[Positions, list[pa.Table]]:
    """The positions of the rows that a clause applies to, and the new rows."""
    if not clauses or not rows.num_rows:
        return np.array([], dtype=np.int64), []
    session = _Session(source, target)
    tests = " ".join(f"WHEN ({clause.condition or 'true'}) IS TRUE THEN {at}" for at, clause in enumerate(clauses))
    chosen = session.select({_CHOICE: f"CASE {tests} ELSE -1 END"}).column(_CHOICE).to_numpy()
    made = []
    for at, clause in enumerate(clauses):
        if clause.values is None or not (chosen == at).any():
            continue
        values = _values(clause, source, target, schema)
        own = session if (chosen == at).all() else session.of_pairs(chosen == at)
        found = own.select({name: f"({value})" for name, value in values.items()})
        made.append(_fitted(found, schema))
    return np.flatnonzero(chosen >= 0), made


def _values(clause: Clause, source: pa.Table | None, target: pa.Table | None, schema: pa.Schema) -> Mapping[str, str]:
    """The SQL of every column of the rows that a clause makes."""
    assert clause.values is not None
    given = dict(clause.values)
    if not given and source is not None:
        named = [name for name in source.schema.names if not name.startswith(_UNNAMED)]
        extra = [name for name in named if name not in schema.names]
        if extra:
            raise TableSchemaValidationError(
                f"column {extra[0]!r} of the source is not in the table: name the columns to set instead of all"
            )
        given = {name: _given(name, source, target) for name in named}
    rest = {} if target is None else {name: f"target.{_quoted(name)}" for name in schema.names}
    return {**rest, **given}


def _given(name: str, source: pa.Table, target: pa.Table | None) -> str:
    """A column of the source or, in the rows that leave it out, of the target."""
    if target is None or f"{_UNNAMED}{name}" not in source.schema.names:
        return f"source.{_quoted(name)}"
    unnamed = _quoted(f"{_UNNAMED}{name}")
    return f"CASE WHEN source.{unnamed} THEN target.{_quoted(name)} ELSE source.{_quoted(name)} END"


def _fitted(found: pa.Table, schema: pa.Schema) -> pa.Table:
    arrays = {}
    for name in found.schema.names:
        arrays[name] = verbs.cast_to(found.column(name), schema.field(name))
    return fit(pa.table(arrays), schema)


class _Session:
    """Pairs of rows as the tables ``source`` and ``target``, for expressions over both."""

    def __init__(self, source: pa.Table | None, target: pa.Table | None) -> None:
        self.context = SessionContext(SessionConfig(DEEP_FILTERS).with_target_partitions(1))
        self.sides = {name: rows for name, rows in (("source", source), ("target", target)) if rows is not None}
        for name, rows in self.sides.items():
            numbered = rows.append_column(_PAIR, pa.array(np.arange(rows.num_rows)))
            self.context.register_record_batches(name, [numbered.to_batches()])

    def of_pairs(self, chosen: npt.NDArray[np.bool_]) -> _Session:
        """Some of the pairs: the values of a clause may fail for those that its condition leaves out."""
        kept = {name: rows.filter(pa.array(chosen)) for name, rows in self.sides.items()}
        return _Session(kept.get("source"), kept.get("target"))

    def select(self, expressions: Mapping[str, str]) -> pa.Table:
        """Columns of expressions over each pair, in the order of the pairs."""
        names = list(self.sides)
        joined = names[0] if len(names) == 1 else f"source JOIN target ON source.{_PAIR} = target.{_PAIR}"
        columns = ", ".join(f"{expression} AS {_quoted(name)}" for name, expression in expressions.items())
        query = f"SELECT {names[0]}.{_PAIR}, {columns} FROM {joined} ORDER BY {names[0]}.{_PAIR}"
        try:
            frame = self.context.sql(bind_query(self.context, query).text)
            refuse_other_rows(frame, expressions.values())
            return frame.to_arrow_table().drop_columns([_PAIR])
        except OtherRowsError:
            raise
        except Exception as error:
            reraise_interrupt(error)
            raise InvalidInputError(_reason(str(error))) from None


def _reason(error: str) -> str:
    """What is wrong with an expression, by DataFusion's error, whose last line says most."""
    if found := _NO_TEST.search(error):
        return f"a condition of the merge is of type {found[1]}, not Boolean: compare it with a value"
    last = [line for line in error.splitlines() if line.strip()][-1]
    return f"an expression of the merge is not understood: {plain(last.removeprefix('DataFusion error: '))}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
