"""From SQL to the filter tree, by DataFusion's own parser, type coercion and constant folding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from threading import Lock

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionContext

from lancepart.errors import InvalidInputError, reraise_interrupt
from lancepart.model import filter_text
from lancepart.model.aliases import RawExpr
from lancepart.model.decimals import Replacement, decimal_names, exact_numbers
from lancepart.model.distinct_tests import with_distinct_tests
from lancepart.model.filter_text import Atom, Chain, Negation, Node, TooDeepError
from lancepart.model.filtering import session_config
from lancepart.model.mismatches import blamed, refuse_mismatches
from lancepart.model.parse_tree import from_plan
from lancepart.model.predicate import Predicate, nesting_of
from lancepart.model.predicate_chains import all_of, any_of
from lancepart.model.sql_errors import filter_hint, missing_column, missing_function, plain
from lancepart.model.sql_text import Token, depth, tokens
from lancepart.model.terms import FUNCTION_NAMES, bind_terms
from lancepart.model.zoned_literals import with_zones

_LOCK = Lock()
_TABLE = "filtered_rows"
_FEW = 64
_SHALLOW = 12
_SHORT_TEXT = 10_000
_SHOWN = 1_000
_MOST_WORDS = 2_000
_CONNECTIVE = re.compile(r"\b(?:and|or|not|case)\b", re.IGNORECASE)
_OPERATOR = re.compile(r"[^\w\s,'\"`().]+")
_PLACEHOLDER = re.compile(r"Unimplemented Expr type: (\$\w+)")
_QUESTION = re.compile(r"Unimplemented Expr type: \?")
_EMPTY_LIST = re.compile(r"\bin\s*\(\s*\)", re.IGNORECASE)
_LIST, _NULL = re.compile(r"\bin\s*\(", re.IGNORECASE), re.compile(r"(?<!\bis )(?<!\bnot )\bnull\b", re.IGNORECASE)
_NO_TABLE = re.compile(r"table '[^']*' not found", re.IGNORECASE)
_RESHAPING = ("common_sub_expression_eliminate", "extract_leaf_expressions", "push_down_leaf_projections")


def parse(sql: str, schema: pa.Schema) -> Predicate:
    """Read a filter over a table's schema, with every literal in the type that it is compared in.

    >>> parse("day >= '2025-12-10' AND NOT (n < 5)", pa.schema([("day", pa.date32()), ("n", pa.int32())])).to_sql()
    "((`day` >= DATE '2025-12-10') AND (`n` >= 5))"
    """
    if not isinstance(sql, str):
        raise InvalidInputError(f"invalid filter {sql!r}: a filter is SQL in a string")
    if not sql.strip():
        raise InvalidInputError(f"invalid filter {sql!r}: it is empty: write 'true' to mean all rows")
    try:
        return _Reader(sql, schema).whole()
    except Exception as error:
        reraise_interrupt(error)
        reason = f"{_reason(error, sql, schema)}{filter_hint(sql)}"
        raise InvalidInputError(f"invalid filter {_shown(sql)}: {reason}") from error


class _Reader:
    """Parses one filter: a short one at once, a long one in pieces that DataFusion's recursion can handle."""

    def __init__(self, sql: str, schema: pa.Schema) -> None:
        self._sql = with_distinct_tests(with_zones(sql))
        self._schema = schema
        self._apart = bool(_LIST.search(self._sql) and _NULL.search(self._sql))

    def whole(self) -> Predicate:
        """The filter as a tree."""
        if nesting_of(self._sql) > _SHALLOW:
            _refuse_tried(self._sql)
        decimals = decimal_names(self._schema)
        if not decimals and not self._apart and _is_plain(self._sql):
            return self._read(self._sql)
        try:
            found = tokens(self._sql)
            shape = filter_text.tree(found)
        except InvalidInputError as error:
            deep = isinstance(error, TooDeepError) or nesting_of(self._sql) > _SHALLOW
            if deep or len(self._sql) > _SHORT_TEXT:
                raise
            return self._read(self._sql)
        atoms = list(_atoms(shape))
        for atom in atoms:
            _refuse_long(found[atom.first : atom.last])
        replaced = exact_numbers(found, atoms, decimals)
        if not self._apart and _is_plain(self._sql):
            return self._read(_with(self._sql, 0, len(self._sql), replaced))
        return self._built(shape, self._texts(found, atoms, replaced))

    def _texts(self, found: list[Token], atoms: list[Atom], replaced: list[Replacement]) -> dict[Atom, str]:
        texts, rest = {}, 0
        for atom in atoms:
            start, end = found[atom.first].start, found[atom.last - 1].end
            own = []
            while rest < len(replaced) and replaced[rest][0] < end:
                own.append(replaced[rest])
                rest += 1
            texts[atom] = _with(self._sql, start, end, own)
        return texts

    def _built(self, node: Node, texts: dict[Atom, str], *, negated: bool = False) -> Predicate:
        """A large node, or its negation: its small operands are read together, its large ones by themselves.

        All are, where a list has a NULL: DataFusion would merge it with other lists as if it had none. Each is read as
        a filter, in which NULL is as good as false, so that a NOT must be part of what is read.
        """
        if isinstance(node, Atom) or (not self._apart and node.size <= _FEW and node.depth <= _SHALLOW):
            text = _spelled(node, texts)
            return self._read(f"NOT ({text})" if negated else text)
        if isinstance(node, Negation):
            return self._built(node.operand, texts, negated=not negated)
        assert isinstance(node, Chain)
        joined = any_of if (node.operator == "OR") != negated else all_of
        parts = node.parts if self._apart else _grouped(node)
        return joined([self._built(part, texts, negated=negated) for part in parts])

    def _read(self, sql: str) -> Predicate:
        context = _context(_with_storage_types(self._schema))
        with _LOCK:
            bound = bind_terms(context, sql, self._schema)
        table = context.table(_TABLE)
        expression = table.parse_sql_expr(bound)
        refuse_mismatches(expression.expr, self._schema)
        try:
            return self._tree(table, expression)
        except Exception as error:
            reraise_interrupt(error)
            if (reason := blamed(expression.expr, self._schema, partial(_is_valid, table))) is not None:
                raise InvalidInputError(reason) from error
            raise

    def _tree(self, table: DataFrame, expression: Expr) -> Predicate:
        plan = table.filter(expression)
        if "<subquery>" in plan.logical_plan().display_indent():
            raise InvalidInputError("subqueries are not supported")
        return from_plan(plan.optimized_logical_plan(), self._schema)


def _is_valid(table: DataFrame, left: RawExpr, right: RawExpr) -> bool:
    """Whether DataFusion compares two expressions."""
    try:
        table.filter(Expr(left) == Expr(right)).optimized_logical_plan()
    except Exception as error:
        reraise_interrupt(error)
        return False
    return True


def _refuse_tried(sql: str) -> None:
    """Refuse what DataFusion's parser would read again and again."""
    found = tokens(sql)
    if any(depth(found[atom.first : atom.last]).tried > _SHALLOW for atom in _atoms(filter_text.tree(found))):
        raise TooDeepError(f"casts, NOTs or CASEs in it are nested more than {_SHALLOW} levels deep")


def _atoms(node: Node) -> Iterator[Atom]:
    match node:
        case Atom():
            yield node
        case Negation(operand=operand):
            yield from _atoms(operand)
        case Chain(parts=parts):
            for part in parts:
                yield from _atoms(part)


def _grouped(chain: Chain) -> Iterator[Node]:
    """A chain's operands, neighbours that are small put together as far as they stay so."""
    waiting: list[Node] = []
    size = 0
    for part in chain.parts:
        small = part.size <= _FEW and part.depth < _SHALLOW
        if waiting and (not small or size + part.size > _FEW):
            yield _group(chain.operator, waiting)
            waiting, size = [], 0
        if not small:
            yield part
            continue
        waiting.append(part)
        size += part.size
    if waiting:
        yield _group(chain.operator, waiting)


def _group(operator: str, parts: list[Node]) -> Node:
    if len(parts) == 1:
        return parts[0]
    return Chain(operator, tuple(parts), sum(part.size for part in parts), max(part.depth for part in parts) + 1)


def _spelled(node: Node, texts: dict[Atom, str]) -> str:
    match node:
        case Atom():
            return texts[node]
        case Negation(operand=operand):
            return f"NOT ({_spelled(operand, texts)})"
        case Chain(operator=operator, parts=parts):
            return f" {operator} ".join(f"({_spelled(part, texts)})" for part in parts)


def _with(sql: str, start: int, end: int, replaced: list[Replacement]) -> str:
    pieces = []
    for first, last, text in replaced:
        pieces += [sql[start:first], text]
        start = last
    return "".join([*pieces, sql[start:end]])


def _is_plain(sql: str) -> bool:
    """Whether DataFusion can read a filter at once: few ANDs, ORs and NOTs, few operators, and not deep."""
    few = len(_CONNECTIVE.findall(sql)) < _FEW and len(_OPERATOR.findall(sql)) < _MOST_WORDS
    return few and nesting_of(sql) <= _SHALLOW


def _refuse_long(own: list[Token]) -> None:
    """Refuse what can't be taken apart and is too long to be read at once; lists of values may be of any length."""
    weight = sum(token.kind == "word" or (token.kind == "symbol" and token.text not in ",-()") for token in own)
    if weight > _MOST_WORDS:
        raise InvalidInputError(
            f"one test of it has {weight} names and operators, and {_MOST_WORDS} are the most: write it as several "
            "tests joined by AND or OR"
        )


def _with_storage_types(schema: pa.Schema) -> pa.Schema:
    """A schema without extension types, which can't be hashed and which DataFusion does not know."""
    kinds = [field.type for field in schema]
    plain = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind in kinds]
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, plain, strict=True)])


@lru_cache(maxsize=64)
def _context(schema: pa.Schema) -> SessionContext:
    context = SessionContext(session_config())
    for rule in _RESHAPING:
        context.remove_optimizer_rule(rule)
    context.register_record_batches(_TABLE, [[pa.RecordBatch.from_pylist([], schema=schema)]])
    return context


def _shown(sql: str) -> str:
    return repr(sql) if len(sql) <= _SHOWN else f"{sql[:_SHOWN]!r}… ({len(sql)} characters)"


def _reason(error: Exception, sql: str, schema: pa.Schema) -> str:
    """What is wrong with a filter, in a line: a function or a column that is not known, with names like it."""
    text = str(error)
    if function := missing_function(text, known_functions):
        return function
    lines = [line for line in text.splitlines() if line and line != "caused by"]
    last = (lines[-1] if lines else type(error).__name__).removeprefix("DataFusion error: ")
    last = last.replace(f"{_TABLE}.", "")
    if column := missing_column(last, sql, schema.names):
        return column
    if parameter := _PLACEHOLDER.search(last):
        return f"there is no value for {parameter[1]}: give it in params, as params={{{parameter[1][1:]!r}: …}}"
    if _QUESTION.search(last):
        return "? stands for no value: write the value itself, or $name with its value in params"
    if "found: )" in last and _EMPTY_LIST.search(sql):
        return "IN () has no values: give at least one, or leave the test out"
    if "PGOverlap" in last:
        return "&& is not supported: write AND, and OR in place of ||"
    if _NO_TABLE.search(last):
        return "a filter has no subqueries: use lancepart.sql or table.join"
    return plain(text if "Candidate functions" in text else last)


@cache
def known_functions() -> list[str]:
    """The names of the functions that a filter can use."""
    context = SessionContext(session_config().with_information_schema(True))
    query = "SELECT DISTINCT routine_name FROM information_schema.routines WHERE function_type = 'SCALAR'"
    return sorted({*context.sql(query).to_pydict()["routine_name"], *FUNCTION_NAMES})
