"""The filter tree: what a filter asks of the columns, and the SQL that asks it.

A row matches only where the tree is TRUE; a comparison with NULL is neither TRUE nor FALSE.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from lancepart.model.aliases import Value
from lancepart.model.quoting import arrow_type_name, quote_identifier, quote_literal, quote_string
from lancepart.model.terms import Term

Names = Mapping[str, str]
"""What to call a column instead, for leaves that still know it by an older name."""

NO_NAMES: Names = {}

Column = str | Term
"""What a test compares: a column of the table, or a partition function of some."""

_FEW = 64
_GROUP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """TRUE where all are, FALSE where one is."""

    operands: tuple[Predicate, ...]

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset().union(*(operand.columns() for operand in self.operands))

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return "(" + _joined("AND", [operand.to_sql(names) for operand in self.operands]) + ")"


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    """TRUE where one is, FALSE where all are."""

    operands: tuple[Predicate, ...]

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset().union(*(operand.columns() for operand in self.operands))

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return "(" + _joined("OR", [operand.to_sql(names) for operand in self.operands]) + ")"


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """TRUE where the operand is FALSE: where it is NULL, so is this."""

    operand: Predicate

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return self.operand.columns()

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return f"(NOT {self.operand.to_sql(names)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Is:
    """Whether the operand comes out as TRUE, FALSE or NULL (``outcome`` None): never NULL itself."""

    operand: Predicate
    outcome: bool | None

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return self.operand.columns()

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return f"({self.operand.to_sql(names)} IS {'NULL' if self.outcome is None else str(self.outcome).upper()})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A column, widened to the literal's type where ``widened``, beside a literal: ``= <> < <= > >=``."""

    column: Column
    operator: str
    literal: Value
    widened: bool = False

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return _columns(self.column)

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        name = _identifier(self.column, names)
        side = f"arrow_cast({name}, '{arrow_type_name(self.literal.type)}')" if self.widened else name
        return f"({side} {self.operator} {quote_literal(self.literal)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """A column among literals; a NULL among them makes every miss NULL."""

    column: Column
    values: tuple[pa.Scalar, ...]
    negated: bool = False

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return _columns(self.column)

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        values = ", ".join(map(quote_literal, self.values))
        return f"({_identifier(self.column, names)} {'NOT ' if self.negated else ''}IN ({values}))"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """Whether a column is NULL; its opposite is ``Not``."""

    column: Column

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return _columns(self.column)

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return f"({_identifier(self.column, names)} IS NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsWith:
    """Whether a text column begins with a prefix."""

    column: Column
    prefix: str

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return _columns(self.column)

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return f"starts_with({_identifier(self.column, names)}, {quote_string(self.prefix)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanColumn:
    """A boolean column as a filter of its own."""

    column: str

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset({self.column})

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return _identifier(self.column, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same outcome for every row: TRUE, FALSE or NULL (None)."""

    value: bool | None

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads: none."""
        return frozenset()

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return "arrow_cast(NULL, 'Boolean')" if self.value is None else str(self.value).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """Anything else: evaluated in the leaves and never a reason to skip one.

    ``template`` is its SQL with ``{0}``, ``{1}``, … for the columns in ``sources``; ``portable`` says that Lance's
    own filter parser understands it.
    """

    template: str
    sources: tuple[str, ...]
    portable: bool = True

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset(self.sources)

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return self.template.format(*(_identifier(source, names) for source in self.sources))


Predicate = And | Or | Not | Is | Comparison | In | IsNull | StartsWith | BooleanColumn | Constant | Opaque


def is_portable(predicate: Predicate) -> bool:
    """Whether Lance's own filter parser reads the predicate's SQL; DataFusion always does."""
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            return all(map(is_portable, operands))
        case Not(operand=operand) | Is(operand=operand):
            return is_portable(operand)
        case Opaque(portable=portable):
            return portable
        case Comparison(column=column) | In(column=column) | IsNull(column=column) | StartsWith(column=column):
            return isinstance(column, str)
        case _:
            return True


def nesting(predicate: Predicate) -> int:
    """How many levels deep a parser goes into the predicate's SQL, at most."""
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            groups = 0 if len(operands) <= _FEW else math.ceil(math.log(len(operands), _GROUP))
            return 2 + groups + max(map(nesting, operands))
        case Not(operand=operand) | Is(operand=operand):
            return 2 + nesting(operand)
        case Opaque(template=template):
            return nesting_of(template)
        case _:
            return 2


def nesting_of(sql: str) -> int:
    """How deep parentheses are nested in SQL; those inside strings count too, which only makes it larger."""
    return max(accumulate((1 if letter == "(" else -1 for letter in sql if letter in "()"), initial=0))


def all_of(operands: Iterable[Predicate]) -> Predicate:
    """The conjunction of one or more predicates, without chains in chains; ``<>`` of one column become one NOT IN."""
    return _chain(And, operands)


def any_of(operands: Iterable[Predicate]) -> Predicate:
    """The disjunction of one or more predicates, without chains in chains; ``=`` of one column become one IN."""
    return _chain(Or, operands)


def none_of(operand: Predicate) -> Predicate:
    """The negation, without a negation inside."""
    return operand.operand if isinstance(operand, Not) else Not(operand=operand)


def _chain(kind: type[And] | type[Or], operands: Iterable[Predicate]) -> Predicate:
    flat = [part for each in operands for part in (each.operands if isinstance(each, kind) else (each,))]
    if sum(len(part.values) if isinstance(part, In) else 1 for part in flat) > _FEW:
        flat = _listed(flat, negated=kind is And)
    return flat[0] if len(flat) == 1 else kind(operands=tuple(flat))


def _listed(parts: Sequence[Predicate], *, negated: bool) -> list[Predicate]:
    """Equalities, or inequalities, of one column and type brought together, where the first of them stood."""
    lists: dict[tuple[Column, pa.DataType], list[pa.Scalar]] = {}
    kept: list[Predicate | tuple[Column, pa.DataType]] = []
    for part in parts:
        values = _values(part, negated=negated)
        if values is None:
            kept.append(part)
            continue
        key = (part.column, values[0].type)  # type: ignore[union-attr]
        if key not in lists:
            kept.append(key)
        lists.setdefault(key, []).extend(values)
    return [In(column=p[0], values=tuple(lists[p]), negated=negated) if isinstance(p, tuple) else p for p in kept]


def _values(part: Predicate, *, negated: bool) -> tuple[pa.Scalar, ...] | None:
    """What a part lists for its column; None for one that lists nothing, and for floats with their zeros and NaNs."""
    match part:
        case Comparison(operator=operator, literal=literal, widened=False) if operator == ("<>" if negated else "="):
            values: tuple[pa.Scalar, ...] = (literal,)
        case In(values=found, negated=other) if other == negated:
            values = found
        case _:
            return None
    plain = all(value.is_valid and value.type == values[0].type for value in values)
    return values if plain and not pa.types.is_floating(values[0].type) else None


def _joined(operator: str, texts: list[str]) -> str:
    """A chain as SQL; a long one in groups of groups, so that no parser has to go down link by link."""
    while len(texts) > _FEW:
        groups = [texts[at : at + _GROUP] for at in range(0, len(texts), _GROUP)]
        texts = [f"({f' {operator} '.join(group)})" for group in groups]
    return f" {operator} ".join(texts)


def _columns(column: Column) -> frozenset[str]:
    return frozenset({column}) if isinstance(column, str) else frozenset(column.columns)


def _identifier(column: Column, names: Names) -> str:
    return quote_identifier(names.get(column, column)) if isinstance(column, str) else column.to_sql(names)
