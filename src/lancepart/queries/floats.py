"""Filters on floats stay with DataFusion: Lance and pyarrow compare NaN and -0.0 in other ways.

A column that such a filter reads is wrapped in a volatile function that returns it as it is. DataFusion moves no filter
past a volatile expression, so it evaluates these itself and pushes down only the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
from datafusion import SessionContext, udf
from datafusion.plan import LogicalPlan

from lancepart.model.nested import null_inside

_Column = Callable[[pa.Array], pa.Array]
_FLOATING = re.compile(r"float|double", re.IGNORECASE)
_NESTED = re.compile(r"get_field\(([^,]*),")
"""A field of a struct: the plan may compute it below the filter, which then has another name for it."""
_FILTER = re.compile(r"filter", re.IGNORECASE)


def plan_text(plan: LogicalPlan) -> str:
    """A plan as text, a line for each node; as one filter if that can't be, as with line breaks in a literal.

    A subquery inside an expression has lines of its own too. Then each column counts as read by a filter.
    """
    text = plan.display_indent()
    lines = text.splitlines()
    return text if len(lines) == _nodes(plan) else f"Filter: {' '.join(lines)}".replace(" AND ", " ")


def _nodes(plan: LogicalPlan) -> int:
    return 1 + sum(_nodes(inner) for inner in plan.inputs())


def guarded_columns(plan: str, schema: pa.Schema) -> tuple[str, ...]:
    """The columns of a table that filters of an optimized plan, given as text, read to compute with floats.

    >>> guarded_columns("Filter: t.f > Float64(1) AND t.i = Int64(2)", pa.schema([("f", "double"), ("i", "int64")]))
    ('f',)
    """
    parts = [part for line in plan.splitlines() if _FILTER.search(line) for part in line.split(" AND ")]
    every = _words(" ".join(parts))
    computing = _words(" ".join(part for part in parts if _FLOATING.search(part)))
    nested = _words(" ".join(_NESTED.findall(plan)))
    every, computing = (every | nested if every else every), (computing | nested if computing else computing)
    return tuple(
        field.name
        for field in schema
        if not (named := _words(field.name)) or named & (every if _FLOATING.search(str(field.type)) else computing)
    )


def _words(text: str) -> set[str]:
    """What may name a column in a plan, which quotes some names: rather one column too many than one too few."""
    return set(re.findall(r"\w+", text))


def register_guarded(
    context: SessionContext, name: str, source: str, schema: pa.Schema, guarded: Sequence[str]
) -> None:
    """Register a view of a table of the context, both names quoted, through which no filter on some columns passes."""
    _register_view(context, name, source, schema, guarded, _same)


def register_without_hidden(
    context: SessionContext, name: str, source: str, schema: pa.Schema, structs: Sequence[str]
) -> None:
    """Register such a view, in which some structs have NULL in their fields where they are NULL themselves."""
    _register_view(context, name, source, schema, structs, null_inside)


def _register_view(
    context: SessionContext, name: str, source: str, schema: pa.Schema, passed: Sequence[str], function: _Column
) -> None:
    shown = []
    for field in schema:
        column = quoted(field.name)
        made = f"{_volatile(context, field.type, function)}({column}) AS {column}"
        shown.append(made if field.name in passed else column)
    context.sql(f"CREATE VIEW {name} AS SELECT {', '.join(shown)} FROM {source}")


def _volatile(context: SessionContext, kind: pa.DataType, function: _Column) -> str:
    """The quoted name of a function in SQL that no filter is moved past."""
    name = f"{function.__name__} {kind}"
    context.register_udf(udf(function, [kind], kind, "volatile", name))
    return quoted(name)


def _same(values: pa.Array) -> pa.Array:
    return values


def quoted(name: str) -> str:
    """A name as DataFusion reads it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'
