"""The filter tree: what a filter asks of the columns, and the SQL that asks it.

A row matches only where the tree is TRUE; a comparison with NULL is neither TRUE nor FALSE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lancepart.model.quoting import arrow_type_name, quote_identifier, quote_literal, quote_string

Names = Mapping[str, str]
"""What to call a column instead, for leaves that still know it by an older name."""

NO_NAMES: Names = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """TRUE where all are, FALSE where one is."""

    operands: tuple[Predicate, ...]

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset().union(*(operand.columns() for operand in self.operands))

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return "(" + " AND ".join(operand.to_sql(names) for operand in self.operands) + ")"


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    """TRUE where one is, FALSE where all are."""

    operands: tuple[Predicate, ...]

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset().union(*(operand.columns() for operand in self.operands))

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return "(" + " OR ".join(operand.to_sql(names) for operand in self.operands) + ")"


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

    column: str
    operator: str
    literal: Any
    widened: bool = False

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset({self.column})

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        name = _identifier(self.column, names)
        side = f"arrow_cast({name}, '{arrow_type_name(self.literal.type)}')" if self.widened else name
        return f"({side} {self.operator} {quote_literal(self.literal)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """A column among literals; a NULL among them makes every miss NULL."""

    column: str
    values: tuple[Any, ...]
    negated: bool = False

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset({self.column})

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        values = ", ".join(map(quote_literal, self.values))
        return f"({_identifier(self.column, names)} {'NOT ' if self.negated else ''}IN ({values}))"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """Whether a column is NULL; its opposite is ``Not``."""

    column: str

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset({self.column})

    def to_sql(self, names: Names = NO_NAMES) -> str:
        """The filter as SQL."""
        return f"({_identifier(self.column, names)} IS NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsWith:
    """Whether a text column begins with a prefix."""

    column: str
    prefix: str

    def columns(self) -> frozenset[str]:
        """The columns that the filter reads."""
        return frozenset({self.column})

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
        case _:
            return True


def _identifier(column: str, names: Names) -> str:
    return quote_identifier(names.get(column, column))
