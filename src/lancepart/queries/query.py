"""Queries over named tables, planned by DataFusion, with partitions pruned by the filters pushed to each table."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from datafusion import DataFrame, RuntimeEnvBuilder, SessionConfig, SessionContext
from datafusion.plan import LogicalPlan

from lancepart.errors import InvalidInputError, reraise_interrupt
from lancepart.model.distinct_tests import with_distinct_tests
from lancepart.model.filtering import DEEP_FILTERS
from lancepart.model.parse import known_functions
from lancepart.model.parse_tree import from_filters
from lancepart.model.predicate import Predicate
from lancepart.model.predicate_chains import any_of
from lancepart.model.public import public
from lancepart.model.query_terms import READ_ONLY, BoundQuery, bind_query
from lancepart.model.sql_errors import cause, missing_column, missing_function, missing_table, plain
from lancepart.model.terms import has_terms, spelled
from lancepart.model.zoned_literals import with_zones
from lancepart.queries import kept_columns
from lancepart.queries.floats import guarded_columns, plan_text, register_guarded
from lancepart.queries.scan_filters import ScanFilter, scans_of
from lancepart.queries.sources import QuerySource, TableSource, no_rows
from lancepart.queries.statements import in_place_of
from lancepart.read.memory import default_memory
from lancepart.read.result import Result

Name = tuple[str, ...]

BY_NAME = "lp.sql(query, events=table)"
"""How tables are given to a query in Python; the command says how it takes them."""
_DEFAULT = "lancepart$default"
"""The catalog and the schema of tables without such; no name in a warehouse has a dollar sign."""
_SCAN = "TableScan: "
MOST_NAMES = 3
_SETTINGS = {
    "datafusion.sql_parser.dialect": "PostgreSQL",
    "datafusion.optimizer.enable_leaf_expression_pushdown": "false",
}
"""Fields of structs are computed where they are used: moved below an outer join of a view, they make planning fail."""
_RIGHT_JOIN = "Right Join"
_SORTED_JOINS = {"datafusion.optimizer.prefer_hash_join": "false"}
"""Hash joins that keep the right side move a filter on the left one to the right one's column of the same name.

DataFusion sorts only if it has several partitions, and can't plan that over some unions.
"""
_NO_VALUE = re.compile(r"Placeholder '\$(\w+)' was not provided")
_PROJECTION = " projection=["

Pruning = Mapping[Name, Predicate | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A planned query: its schema, its scans, what prunes each table that it reads, and its plan as text.

    ``hidden`` are the tables that are also read inside an expression, which only the text shows, with their columns.
    """

    schema: pa.Schema
    scans: tuple[ScanFilter, ...]
    pruning: Pruning
    hidden: Mapping[Name, tuple[str, ...]]
    text: str


@public("explain", "text")
@dataclass(frozen=True, kw_only=True)
class Query(Result):
    """A query's rows, computed when they are read, each table at the snapshot it had when the query was made."""

    text: str
    """The SQL of the query."""
    sources: Mapping[Name, QuerySource]
    known: tuple[Name, ...] = ()

    @classmethod
    def of(cls, text: str, sources: Mapping[Name, QuerySource], known: Sequence[Name] = ()) -> Query:
        """Check a query by planning it; nothing is read yet. ``known`` are all tables that it could name."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInputError(f"the query is {text!r}: give SQL in a string")
        query = cls(text=text, sources=sources, known=tuple(known) or tuple(sources))
        _ = query.schema
        return query

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._planned.schema

    @cached_property
    def _planned(self) -> _Planned:
        """The query as DataFusion plans it over tables without rows."""
        context = self._without_rows()
        frame = self._frame(context)
        try:
            plan = frame.optimized_logical_plan()
        except Exception as error:
            raise self._invalid(error) from None
        scans = tuple(scans_of(plan, {".".join(name): source.schema for name, source in self.sources.items()}))
        pruning, hidden = _pruning(plan, scans, self.sources)
        return _Planned(
            schema=_spelled(frame.schema()), scans=scans, pruning=pruning, hidden=hidden, text=plan_text(plan)
        )

    def _without_rows(self) -> SessionContext:
        context = self._context()
        for name, source in self.sources.items():
            _register_empty(context, name, source)
        return context

    @cached_property
    def _bound(self) -> BoundQuery:
        """The query with its partition functions bound to the types that DataFusion plans it with."""
        if not has_terms(self.text):
            return BoundQuery(text=with_distinct_tests(with_zones(self.text)))
        try:
            return bind_query(self._without_rows(), self.text)
        except Exception as error:
            raise self._invalid(error) from None

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as DataFusion gives them."""
        begun = False
        try:
            for batch in self._executed(in_memory=True):
                begun = True
                yield batch
        except Exception as error:
            if begun or not kept_columns.was_missed(error):
                raise
            yield from self._executed(in_memory=False)

    def _executed(self, *, in_memory: bool) -> Iterator[pa.RecordBatch]:
        context, _ = self._ready(in_memory=in_memory)
        try:
            for batch in self._frame(context).execute_stream():
                rows = batch.to_pyarrow()
                if rows.num_rows:
                    yield (
                        rows if rows.schema == self.schema else rows.rename_columns(self.schema.names).cast(self.schema)
                    )
        except Exception as error:
            reraise_interrupt(error)
            raise self._invalid(error) from error

    def explain(self) -> str:
        """How each table is read, and DataFusion's plan."""
        context, ways = self._ready(reading=False)
        lines = [f"{'.'.join(name)}: {self._explained(name, way)}" for name, way in ways.items()]
        return "\n".join([*lines, "", self._frame(context).execution_plan().display_indent()])

    def _explained(self, name: Name, way: str) -> str:
        source = self.sources[name]
        if not isinstance(source, TableSource):
            return way
        return way.replace(" partitions", f" of {source.partitions} partitions", 1)

    def _ready(self, *, in_memory: bool = True, reading: bool = True) -> tuple[SessionContext, dict[Name, str]]:
        """A context in which the tables that the query reads have their rows.

        The others are there without rows: the text still names a table whose filter can't hold for any row. With
        ``in_memory``, columns that earlier queries read too are kept there; without ``reading``, none is added.
        """
        pruning = self._planned.pruning
        sorted_joins = _RIGHT_JOIN in self._planned.text
        context = self._context(sorted_joins=sorted_joins)
        ways = {}
        for name, source in self.sources.items():
            if name not in pruning:
                _register_empty(context, name, source)
                continue
            kept = self._kept(name, source, reading=reading) if in_memory else None
            if kept is not None:
                rows, ways[name] = kept
                kept_columns.register(context, _quoted(name), rows, source.schema)
                continue
            guarded = self._guarded(name, source) if source.takes_filters else ()
            own = (*name[:-1], f"{name[-1]} unguarded") if guarded else name
            ways[name] = source.register(context, _quoted(own), pruning[name], whole=sorted_joins)
            if guarded:
                register_guarded(context, _quoted(name), _quoted(own), source.schema, guarded)
        return context, ways

    def _kept(self, name: Name, source: QuerySource, *, reading: bool) -> tuple[pa.Table, str] | None:
        """The columns of a table that the query reads, if they are kept in memory."""
        scans = [scan for scan in self._planned.scans if scan.table == ".".join(name)]
        columns = [column for scan in scans for column in (*scan.projected, *scan.columns)]
        columns += self._planned.hidden.get(name, ())
        return source.in_memory(self._planned.pruning[name], columns, reading=reading)

    def _guarded(self, name: Name, source: QuerySource) -> tuple[str, ...]:
        """The columns whose filters DataFusion evaluates itself: those on floats, and those that keep many rows."""
        floats = guarded_columns(self._planned.text, source.schema)
        scans = [scan for scan in self._planned.scans if scan.table == ".".join(name) and scan.filters]
        if not scans or not source.keeps_many(self._planned.pruning[name], scans):
            return floats
        return tuple(dict.fromkeys([*floats, *(column for scan in scans for column in scan.columns)]))

    def _context(self, *, sorted_joins: bool = False) -> SessionContext:
        config = SessionConfig({**DEEP_FILTERS, **_SETTINGS, **(_SORTED_JOINS if sorted_joins else {})})
        config = config.with_target_partitions(max(1 + sorted_joins, os.cpu_count() or 1)).with_information_schema(
            False
        )
        config = config.with_default_catalog_and_schema(_DEFAULT, _DEFAULT)
        runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(default_memory() * 2)
        context = SessionContext(config, runtime)
        for catalog in dict.fromkeys(name[0] for name in self.sources if len(name) == 3):
            context.sql(f"CREATE DATABASE {_quoted((catalog,))}")
        for schema in dict.fromkeys(name[:-1] for name in self.sources if len(name) > 1):
            context.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        return context

    def _frame(self, context: SessionContext) -> DataFrame:
        try:
            return context.sql_with_options(self._bound.register(context), READ_ONLY)
        except Exception as error:
            raise self._invalid(error) from None

    def _invalid(self, error: Exception) -> Exception:
        reraise_interrupt(error)
        if isinstance(error, InvalidInputError):
            return error
        if (instead := in_place_of(self.text)) is not None:
            return InvalidInputError(instead)
        text = spelled(
            (cause(str(error)) or type(error).__name__).removeprefix("DataFusion error: ").replace(f"{_DEFAULT}.", "")
        )
        return InvalidInputError(f"the query fails: {self._reason(text)}")

    def _reason(self, text: str) -> str:
        """What is wrong with the query, in plain words, and what to do."""
        names = sorted(".".join(name) for name in self.known)
        if table := missing_table(text, names):
            return f"{table}; give {'others' if names else 'the tables'} by name: {BY_NAME}"
        if deep := [name for name in self.known if len(name) > MOST_NAMES and ".".join(name) in self.text]:
            return (
                f"{plain(text)}; table {'.'.join(deep[0])!r} is nested too deep for SQL, which knows "
                "catalog.schema.table: give it a name, as in sql('SELECT … FROM t', t=connection.table(…))"
            )
        columns = list(dict.fromkeys(name for source in self.sources.values() for name in source.schema.names))
        if reason := missing_function(text, known_functions) or missing_column(text, self.text, columns):
            return reason
        if missing := _NO_VALUE.search(text):
            return f"there is no value for ${missing[1]}: give it in params, as params={{{missing[1]!r}: …}}"
        return plain(text)

    def __repr__(self) -> str:
        return f"Query({self.text!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def _quoted(name: Name) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


def _spelled(schema: pa.Schema) -> pa.Schema:
    """The columns of a query, with partition functions in their names as the query has them."""
    names = [spelled(name) for name in schema.names]
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)], schema.metadata)


def _register_empty(context: SessionContext, name: Name, source: QuerySource) -> None:
    context.register_record_batches(_quoted(name), [[no_rows(source.schema)]])


def _pruning(
    plan: LogicalPlan, scans: Sequence[ScanFilter], sources: Mapping[Name, QuerySource]
) -> tuple[Pruning, Mapping[Name, tuple[str, ...]]]:
    """What prunes each table that is read: any of its scans' filters, nothing if one scan has none.

    A scan inside an expression's subquery is only seen in the plan's text; its table is then read whole. These tables
    are the second value, with the columns that the text names.
    """
    every = [line.strip() for line in plan.display_indent().splitlines()]
    shown = [line[len(_SCAN) :] for line in every if line.startswith(_SCAN)]
    pruned: dict[Name, Predicate | None] = {}
    hidden: dict[Name, tuple[str, ...]] = {}
    for name, source in sources.items():
        dotted = ".".join(name)
        lines = [text for text in shown if text == dotted or text.startswith(f"{dotted} ")]
        times = len(lines)
        own = [from_filters(scan.filters, source.schema) for scan in scans if scan.table == dotted]
        whole = times != len(own) or any(each is None for each in own)
        if times or own:
            pruned[name] = None if whole else any_of([each for each in own if each is not None])
            if times != len(own):
                hidden[name] = _named(lines, source.schema)
    return pruned, hidden


def _named(scans: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """The columns that scans name in the text of a plan; all if one of them names none."""
    if not all(_PROJECTION in text for text in scans):
        return tuple(schema.names)
    words = {word for text in scans for word in re.findall(r"\w+", text)}
    return tuple(name for name in schema.names if words.intersection(re.findall(r"\w+", name)))
