"""The tree of a filter, and its SQL.

A row matches only where the tree is TRUE; a comparison with NULL is neither TRUE nor FALSE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import pyarrow as pa

from lancepart.model.aliases import Value
from lancepart.model.quoting import arrow_type_name, quote_identifier, quote_literal, quote_string
from lancepart.model.terms import Term

Names = Mapping[str, str]
"""What to call a column instead, for leaves that still know it by an older name."""

NO_NAMES: Names = {}

Column = str | Term
"""What a test compares: a column of the table, or a partition function of some."""

FEW = 64
"""So many operands are a chain that every parser reads link by link."""
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
    """Whether the operand evaluates to TRUE, FALSE or NULL (``outcome`` None): never NULL itself."""

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

    def __reduce__(self) -> tuple[Callable[[Column, Sequence[pa.Array], bool], In], tuple[Value, ...]]:
        """Pickle the values as arrays, those that follow each other and have one type together."""
        runs = [pa.array(list(run), kind) for kind, run in groupby(self.values, key=lambda value: value.type)]
        return _listed, (self.column, runs, self.negated)

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return _columns(self.column)

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        values = ", ".join(map(quote_literal, self.values))
        return f"({_identifier(self.column, names)} {'NOT ' if self.negated else ''}IN ({values}))"


def _listed(column: Column, runs: Sequence[pa.Array], negated: bool) -> In:
    return In(column=column, values=tuple(value for run in runs for value in run), negated=negated)


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

Filter = str | Predicate
"""A filter as SQL, or as the tree that was read from it."""


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
            groups = 0 if len(operands) <= FEW else math.ceil(math.log(len(operands), _GROUP))
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


def _joined(operator: str, texts: list[str]) -> str:
    """A chain as SQL; a long one in groups of groups, so that no parser has to go down link by link."""
    while len(texts) > FEW:
        groups = [texts[at : at + _GROUP] for at in range(0, len(texts), _GROUP)]
        texts = [f"({f' {operator} '.join(group)})" for group in groups]
    return f" {operator} ".join(texts)


def _columns(column: Column) -> frozenset[str]:
    return frozenset({column}) if isinstance(column, str) else frozenset(column.columns)


def _identifier(column: Column, names: Names) -> str:
    return quote_identifier(names.get(column, column)) if isinstance(column, str) else column.to_sql(names)
