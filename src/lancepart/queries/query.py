"""Queries over named tables, planned by DataFusion, with partitions pruned by the filters pushed to each table."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from datafusion import DataFrame, RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions
from datafusion.plan import LogicalPlan

from lancepart.errors import InvalidInputError, reraise_interrupt
from lancepart.model.filtering import DEEP_FILTERS
from lancepart.model.parse_tree import from_filters
from lancepart.model.predicate import Predicate, any_of
from lancepart.model.query_terms import bind_query
from lancepart.queries.floats import guarded_columns, plan_text, register_guarded
from lancepart.queries.sources import Source, TableSource
from lancepart.read.memory import default_memory
from lancepart.read.result import Result

Name = tuple[str, ...]

_READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_SCAN = "TableScan: "


@dataclass(frozen=True, kw_only=True)
class Query(Result):
    """A query's rows, computed when they are asked for, each table at the snapshot it had when the query was made."""

    text: str
    sources: Mapping[Name, Source]

    @classmethod
    def of(cls, text: str, sources: Mapping[Name, Source]) -> Query:
        """Check a query by planning it; nothing is read yet."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInputError(f"the query is {text!r}: give SQL in a string")
        for name in sources:
            if not 1 <= len(name) <= 3:
                raise InvalidInputError(
                    f"table {'.'.join(name)!r} is nested too deep for SQL, which knows catalog.schema.table: "
                    "give it a name, as in sql('SELECT … FROM t', t=connection.table(…))"
                )
        query = cls(text=text, sources=sources)
        _ = query.schema
        return query

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._planned[0]

    @cached_property
    def _planned(self) -> tuple[pa.Schema, Mapping[Name, Predicate | None], str]:
        """The schema, of each table that is read what all its scans are filtered by, and the plan as text."""
        context = self._context()
        for name, source in self.sources.items():
            _register_empty(context, name, source)
        frame = self._frame(context)
        try:
            plan = frame.optimized_logical_plan()
        except Exception as error:
            raise self._invalid(error) from None
        return frame.schema(), _filters(plan, self.sources), plan_text(plan)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as DataFusion gives them."""
        context, _ = self._ready()
        try:
            for batch in self._frame(context).execute_stream():
                rows = batch.to_pyarrow()
                if rows.num_rows:
                    yield rows.cast(self.schema) if rows.schema != self.schema else rows
        except Exception as error:
            reraise_interrupt(error)
            raise self._invalid(error) from error

    def explain(self) -> str:
        """How each table is read, and DataFusion's plan."""
        context, ways = self._ready()
        lines = [f"{'.'.join(name)}: {self._told(name, way)}" for name, way in ways.items()]
        return "\n".join([*lines, "", self._frame(context).execution_plan().display_indent()])

    def _told(self, name: Name, way: str) -> str:
        source = self.sources[name]
        if not isinstance(source, TableSource):
            return way
        return way.replace(" partitions", f" of {source.partitions} partitions", 1)

    def _ready(self) -> tuple[SessionContext, dict[Name, str]]:
        """A context in which the tables that the query reads have their rows.

        The others are there without rows: the text still names a table whose filter can't hold for any row.
        """
        context, (_, filters, plan) = self._context(), self._planned
        ways = {}
        for name, source in self.sources.items():
            if name not in filters:
                _register_empty(context, name, source)
                continue
            guarded = guarded_columns(plan, source.schema) if source.takes_filters else ()
            own = (*name[:-1], f"{name[-1]} unguarded") if guarded else name
            ways[name] = source.register(context, _quoted(own), filters[name])
            if guarded:
                register_guarded(context, _quoted(name), _quoted(own), source.schema, guarded)
        return context, ways

    def _context(self) -> SessionContext:
        settings = {**DEEP_FILTERS, "datafusion.sql_parser.dialect": "PostgreSQL"}
        config = SessionConfig(settings).with_target_partitions(os.cpu_count() or 1).with_information_schema(False)
        runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(default_memory() * 2)
        context = SessionContext(config, runtime)
        for catalog in dict.fromkeys(name[0] for name in self.sources if len(name) == 3):
            context.sql(f"CREATE DATABASE {_quoted((catalog,))}")
        for schema in dict.fromkeys(name[:-1] for name in self.sources if len(name) > 1):
            context.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        return context

    def _frame(self, context: SessionContext) -> DataFrame:
        try:
            schemas = {".".join(name): source.schema for name, source in self.sources.items()}
            return context.sql_with_options(bind_query(context, self.text, schemas), _READ_ONLY)
        except Exception as error:
            raise self._invalid(error) from None

    def _invalid(self, error: Exception) -> Exception:
        reraise_interrupt(error)
        if isinstance(error, InvalidInputError):
            return error
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        known = ", ".join(".".join(name) for name in self.sources) or "none"
        hint = f"; the tables are {known}" if "not found" in first and "table" in first.lower() else ""
        return InvalidInputError(f"the query fails: {first.removeprefix('DataFusion error: ')}{hint}")

    def __repr__(self) -> str:
        return f"Query({self.text!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def _quoted(name: Name) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


def _register_empty(context: SessionContext, name: Name, source: Source) -> None:
    context.register_record_batches(_quoted(name), [[pa.RecordBatch.from_pylist([], schema=source.schema)]])


def _filters(plan: LogicalPlan, sources: Mapping[Name, Source]) -> dict[Name, Predicate | None]:
    """What prunes each table that is read: any of its scans' filters, nothing if one scan has none.

    A scan inside an expression's subquery is only seen in the plan's text; its table is then read whole.
    """
    found: dict[Name, list[Predicate | None]] = {}
    for scanned, filters in _scans(plan, ()):
        name = _known(scanned, sources)
        found.setdefault(name, []).append(from_filters(filters, sources[name].schema))
    lines = [line.strip() for line in plan.display_indent().splitlines()]
    shown = [line[len(_SCAN) :] for line in lines if line.startswith(_SCAN)]
    pruned: dict[Name, Predicate | None] = {}
    for name in sources:
        dotted = ".".join(name)
        times = sum(1 for text in shown if text == dotted or text.startswith(f"{dotted} "))
        own = found.get(name, [])
        whole = times != len(own) or any(each is None for each in own)
        if times or own:
            pruned[name] = None if whole else any_of([each for each in own if each is not None])
    return pruned


def _known(name: str, sources: Mapping[Name, Source]) -> Name:
    return next(each for each in sources if ".".join(each) == name)


def _scans(plan: LogicalPlan, above: Sequence[object]) -> Iterator[tuple[str, list[object]]]:
    """Each scan of a plan with the filters that stand right above it."""
    variant = plan.to_variant()
    kind = type(variant).__name__
    if kind == "TableScan":
        yield _full_name(variant), [*above, *variant.filters()]
        return
    passed = [*above, variant.predicate()] if kind == "Filter" else []
    for inner in plan.inputs():
        yield from _scans(inner, passed)


def _full_name(scan: object) -> str:
    catalog, schema, name = scan.fqn()  # type: ignore[attr-defined]
    return ".".join(part for part in (catalog, schema, name) if part is not None)
