"""Partition functions in whole queries: ``year(e.ts)``, ``bucket(16, id)``, each bound to its arguments' types.

Only DataFusion's planner knows what a name means where it stands. Each function is first registered with an argument of
a type that nothing can be cast to: the planner refuses it, and says what the argument is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import pyarrow as pa
from datafusion import ScalarUDF, SessionContext, SQLOptions, udf

from lancepart.errors import UnsupportedOperationError, reraise_interrupt
from lancepart.model.distinct_tests import with_distinct_tests
from lancepart.model.sql_text import Token, arguments, closing, tokens
from lancepart.model.terms import FUNCTION_NAMES, bound_function, has_terms, split_size, transform_of
from lancepart.model.transforms import Transform
from lancepart.model.zoned_literals import with_zones

_UNFIT = pa.map_(pa.string(), pa.struct([("lancepart", pa.duration("s"))]))
_MARK = "lancepart_term_"
_REFUSED = re.compile(rf"call to '(?P<name>{_MARK}\d+)' function: coercion from (?P<types>.*?) to the signature", re.S)
_ABOUT_TYPES = ("coerc", "signature", "no function matches")
READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_SET_OPERATORS = frozenset({"union", "intersect", "except"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A query whose partition functions have the names of ``functions``, which a context needs to run it."""

    text: str
    functions: tuple[ScalarUDF, ...] = ()

    def register(self, context: SessionContext) -> str:
        """Give a context the functions; the text that it can run."""
        for function in self.functions:
            context.register_udf(function)
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of a partition function: where its name is, and what stands in the text for its number."""

    mark: str
    transform: Transform
    arity: int
    name: tuple[int, int]
    number: tuple[int, int] | None


def bind_query(context: SessionContext, sql: str) -> BoundQuery:
    """The same query with each partition function renamed to one for the types of its arguments.

    The context has the tables that the query reads; they may be empty.
    """
    sql = with_distinct_tests(with_zones(sql))
    if not has_terms(sql):
        return BoundQuery(text=sql)
    calls = list(_calls(sql))
    names: dict[str, str] = {}
    functions: dict[str, ScalarUDF] = {}
    for call in calls:
        context.register_udf(_unfit(call))
    for _ in range(len(calls) + 1):
        found = _refused(context, _written(sql, calls, names))
        if found is None:
            break
        mark, types = found
        call = next(call for call in calls if call.mark == mark)
        names[mark], functions[mark] = _bound(context, call, types)
    for call in calls:
        if call.mark not in names:
            names[call.mark], functions[call.mark] = _bound(context, call, [pa.null()] * call.arity)
    return BoundQuery(text=_written(sql, calls, names), functions=tuple(functions.values()))


def _bound(context: SessionContext, call: _Call, types: Sequence[pa.DataType]) -> tuple[str, ScalarUDF]:
    name, function = bound_function(call.transform, types)
    context.register_udf(function)
    return name, function


def _refused(context: SessionContext, sql: str) -> tuple[str, list[pa.DataType]] | None:
    """The first function that the planner refuses, with the types of its arguments."""
    try:
        context.sql_with_options(sql, READ_ONLY).optimized_logical_plan()
    except Exception as error:
        reraise_interrupt(error)
        if (refused := refused_call(str(error))) is None:
            raise
        return refused[0], _types(context, refused[1])
    return None


def refused_call(message: str) -> tuple[str, str] | None:
    """The function that an error of the planner refuses, and the types of its arguments; None for another error.

    DataFusion's Python package has no other way to learn the type of an expression inside a query: the nodes of a plan
    show neither types nor schemas, and a function's types are fixed when it is registered.
    """
    if (found := _REFUSED.search(message)) is not None:
        return found["name"], found["types"]
    if _MARK in message and any(words in message.lower() for words in _ABOUT_TYPES):
        raise UnsupportedOperationError(
            f"datafusion {version('datafusion')} does not tell the types of a partition function's arguments as "
            f"release 54.1 does: install that one ({message.splitlines()[0]})"
        )
    return None


def _types(context: SessionContext, text: str) -> list[pa.DataType]:
    """Types as DataFusion writes them, in a row."""
    found = tokens(text)
    ends = [token for at, token in enumerate(found) if token.text == "," and _level(found[:at]) == 0]
    starts = [0, *(token.end for token in ends)]
    names = [
        text[start:stop].strip() for start, stop in zip(starts, [*(t.start for t in ends), len(text)], strict=True)
    ]
    quoted = [name.replace("'", "''") for name in names]
    casts = [f"arrow_cast(NULL, '{name}') AS c{at}" for at, name in enumerate(quoted)]
    frame = context.sql(f"SELECT {', '.join(casts)}")
    return [field.type for field in frame.schema()]


def _level(found: Sequence[Token]) -> int:
    return sum({"(": 1, ")": -1}.get(token.text, 0) for token in found)


def _unfit(call: _Call) -> ScalarUDF:
    """A function that takes nothing but NULL."""
    kind = call.transform.result_type([call.transform.null_type] * call.arity)

    def compute(*arrays: pa.Array) -> pa.Array:
        return pa.nulls(len(arrays[0]), kind)

    return udf(compute, [_UNFIT] * call.arity, kind, "immutable", name=call.mark)


def _written(sql: str, calls: Sequence[_Call], names: Mapping[str, str]) -> str:
    """The query with the calls under their names, without the numbers that are part of these."""
    edits = [(call.name, names.get(call.mark, call.mark)) for call in calls]
    edits += [(call.number, "") for call in calls if call.number is not None]
    pieces, position = [], 0
    for (start, end), text in sorted(edits):
        pieces += [sql[position:start], text]
        position = end
    return "".join([*pieces, sql[position:]])


def _calls(sql: str) -> Iterator[_Call]:
    """The calls of partition functions; equal ones in one SELECT have one mark, so that groups are found again."""
    found = tokens(sql)
    scopes = _scopes(found)
    marks: dict[tuple[int, str], str] = {}
    for at, token in enumerate(found[:-1]):
        if token.kind != "word" or token.name not in FUNCTION_NAMES or found[at + 1].text != "(":
            continue
        end = closing(found, at + 1)
        spans = list(arguments(found, at + 1, end))
        size, place = split_size(str(token.name), [sql[start:stop] for start, stop in spans])
        kept = spans if place is None else spans[1:] if place == 0 else spans[:-1]
        number = None if place is None else (spans[0][0], spans[1][0]) if place == 0 else (spans[-2][1], spans[-1][1])
        transform = transform_of(str(token.name), size)
        transform.check([transform.null_type] * len(kept))
        same = " ".join(each.name if each.kind == "word" and each.name else each.text for each in found[at : end + 1])
        mark = marks.setdefault((scopes[at], same), f"{_MARK}{len(marks)}")
        yield _Call(mark=mark, transform=transform, arity=len(kept), name=(token.start, token.end), number=number)


def _scopes(found: Sequence[Token]) -> list[int]:
    """For each token the number of the SELECT that it is in."""
    scopes, stack, last = [], [0], 0
    for at, token in enumerate(found):
        following = found[at + 1].name if at + 1 < len(found) else None
        if token.text == "(":
            if following in ("select", "with"):
                last += 1
                stack.append(last)
            else:
                stack.append(stack[-1])
        elif token.text == ")" and len(stack) > 1:
            stack.pop()
        elif token.kind == "word" and token.name in _SET_OPERATORS:
            last += 1
            stack[-1] = last
        scopes.append(stack[-1])
    return scopes
