"""The columns of a join's result, and the parts of its filter that can be pushed to each side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.model.binding import renamed
from lancepart.model.predicate import And, Predicate
from lancepart.model.suggest import near
from lancepart.plan.join_compatibility import JoinKey
from lancepart.plan.join_planner import ANTI, FULL, INNER, LEFT, RIGHT, SEMI

_KINDS = {
    "inner": INNER,
    "left": LEFT,
    "left_outer": LEFT,
    "right": RIGHT,
    "right_outer": RIGHT,
    "full": FULL,
    "outer": FULL,
    "full_outer": FULL,
    "semi": SEMI,
    "left_semi": SEMI,
    "anti": ANTI,
    "left_anti": ANTI,
}
_ONE_SIDED = (SEMI, ANTI)


def kind_of_join(how: str) -> str:
    """The kind of join that a name refers to, Spark's names too.

    >>> kind_of_join("leftouter"), kind_of_join("LEFT SEMI")
    ('left', 'semi')
    """
    plain = str(how).lower().replace("_", "").replace(" ", "")
    found = {name.replace("_", ""): kind for name, kind in _KINDS.items()}.get(plain)
    if found is None:
        raise InvalidInputError(f"how is {how!r}: give inner, left, right, full, semi or anti")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the result, and the column of either side, or of both for a key of one name, that it shows."""

    field: pa.Field
    left: str | None
    right: str | None

    @property
    def name(self) -> str:
        """What the result calls it."""
        return str(self.field.name)


def result_columns(
    left: pa.Schema, right: pa.Schema, keys: Sequence[JoinKey], how: str, suffix: str
) -> tuple[Column, ...]:
    """All columns of the result: the left ones, then the right ones; a key of one name appears once."""
    shared = {key.left: key for key in keys if key.left == key.right}
    columns = []
    for field in left:
        key = shared.get(field.name)
        if key is not None and how not in _ONE_SIDED:
            kind = field.type if key.left_type == key.right_type else key.compared
            columns.append(Column(field=_nullable(field.with_type(kind), how, FULL), left=key.left, right=key.right))
        else:
            columns.append(Column(field=_nullable(field, how, RIGHT, FULL), left=field.name, right=None))
    if how not in _ONE_SIDED:
        taken = set(left.names)
        for field in right:
            if field.name not in shared:
                name = f"{field.name}{suffix}" if field.name in taken else field.name
                shown = _nullable(field, how, LEFT, FULL).with_name(name)
                columns.append(Column(field=shown, left=None, right=field.name))
    _refuse_twice(columns, suffix)
    return tuple(columns)


def _nullable(field: pa.Field, how: str, *kinds: str) -> pa.Field:
    return field.with_nullable(True) if how in kinds else field


def _refuse_twice(columns: Sequence[Column], suffix: str) -> None:
    seen: dict[str, Column] = {}
    for column in columns:
        other = seen.setdefault(column.name, column)
        if other is not column:
            raise InvalidInputError(
                f"the result would have two columns {column.name!r}, of the "
                f"{'left' if other.left else 'right'} and of the right table: give another suffix than {suffix!r}"
            )


def chosen(columns: Sequence[Column], names: Sequence[str] | None) -> tuple[Column, ...]:
    """The requested columns of the result, in that order."""
    if names is None:
        return tuple(columns)
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInputError(f"columns is {names!r}: give a list of names")
    known = {column.name: column for column in columns}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TableColumnNotFoundError(
            f"there is no column {unknown[0]!r}: the join has {', '.join(known)}{near(unknown[0], known)}"
        )
    if not names or len(set(names)) != len(names):
        raise InvalidInputError("columns is empty or has a name twice: name each column once, or leave it out for all")
    return tuple(known[name] for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """A join's filter split into what is pushed down to each side and what filters the result."""

    left: Predicate | None = None
    right: Predicate | None = None
    result: Predicate | None = None


def split(
    where: Predicate | None,
    columns: Sequence[Column],
    keys: Sequence[JoinKey],
    how: str,
    left: pa.Schema,
    right: pa.Schema,
) -> Filters:
    """Push down what concerns one side only, unless that changes which rows of the other have no match."""
    if where is None:
        return Filters()
    parts = where.operands if isinstance(where, And) else (where,)
    pushed: dict[str, list[Predicate]] = {LEFT: [], RIGHT: [], "result": []}
    for part in parts:
        is_pushed = False
        for side, schema in ((LEFT, left), (RIGHT, right)):
            names = _names(side, columns, keys, how)
            if part.columns() and _fits(part, names, columns, schema):
                pushed[side].append(renamed(part, names))
                is_pushed = True
        if not is_pushed or how not in (INNER, SEMI, ANTI):
            pushed["result"].append(part)
    return Filters(left=_all(pushed[LEFT]), right=_all(pushed[RIGHT]), result=_all(pushed["result"]))


def _names(side: str, columns: Sequence[Column], keys: Sequence[JoinKey], how: str) -> dict[str, str]:
    """The result's columns whose filters can be pushed down to one side, and their names there.

    A side that keeps its rows without a match may not lose rows by a filter on the other; a filter on a
    key is pushed down to both, since rows with another key would not have matched.
    """
    names = {}
    left = side == LEFT
    equal = {key.right: key.left for key in keys} if left else {key.left: key.right for key in keys}
    own_kinds, other_kinds = ({INNER, SEMI, ANTI, LEFT}, {INNER, RIGHT})[:: 1 if left else -1]
    for column in columns:
        own, other = (column.left, column.right) if left else (column.right, column.left)
        if own is not None and (other is not None or how in own_kinds):
            names[column.name] = own
        elif own is None and other in equal and how in other_kinds:
            names[column.name] = equal[other]
    return names


def _fits(part: Predicate, names: Mapping[str, str], columns: Sequence[Column], schema: pa.Schema) -> bool:
    """Whether a side has all of a filter's columns in the types that the filter was read in."""
    types = {column.name: column.field.type for column in columns}
    return all(name in names and schema.field(names[name]).type == types[name] for name in part.columns())


def _all(parts: Sequence[Predicate]) -> Predicate | None:
    return None if not parts else parts[0] if len(parts) == 1 else And(operands=tuple(parts))


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The result's schema."""
    return pa.schema([column.field for column in columns])
