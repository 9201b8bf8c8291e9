"""A merge as callers build it: what happens to rows that match a source, and to those of either side that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lancepart.commit.result import CommitResult
from lancepart.errors import InvalidInputError
from lancepart.model.aliases import RowSource
from lancepart.model.html_text import html_table
from lancepart.model.public import public

MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One WHEN of a merge: ``values`` are SQL by column, None for a deletion, and empty for all of the source's."""

    when: str
    values: Values | None
    condition: str | None = None

    def __post_init__(self) -> None:
        if self.condition is not None and (not isinstance(self.condition, str) or not self.condition.strip()):
            raise InvalidInputError(f"the condition is {self.condition!r}: give SQL over source and target")
        if self.values is not None and not isinstance(self.values, Mapping):
            raise InvalidInputError(f"the values are {self.values!r}: give a dict of SQL expressions by column")

    @property
    def what(self) -> str:
        """What happens to the rows, in words."""
        if self.values is None:
            return "delete"
        verb = "insert" if self.when == NOT_MATCHED else "update"
        return f"{verb} {', '.join(f'{name} = {value}' for name, value in self.values.items()) or 'all columns'}"


@public(
    "execute",
    "when_matched_delete",
    "when_matched_update",
    "when_matched_update_all",
    "when_not_matched_by_source_delete",
    "when_not_matched_by_source_update",
    "when_not_matched_insert",
    "when_not_matched_insert_all",
)
@dataclass(frozen=True, kw_only=True)
class Merge:
    """A merge that is being described; nothing happens before ``execute``.

    Of the clauses for one kind of row the first whose condition holds applies. Expressions name columns as
    ``source.n`` and ``target.n``.
    """

    source: RowSource
    on: Sequence[str]
    run: Callable[[Merge, str | None], CommitResult | None] = field(repr=False)
    clauses: tuple[Clause, ...] = ()

    def __repr__(self) -> str:
        done = [f"when {clause.when} {clause.what}" for clause in self.clauses]
        return f"Merge(on={list(self.on)!r}: {'; '.join(done) or 'no clause yet'})"

    def _repr_html_(self) -> str:
        rows = [[clause.when, clause.condition, clause.what] for clause in self.clauses]
        return html_table(["rows", "condition", "what happens"], rows)

    def _with(self, when: str, values: Values | None, condition: str | None) -> Merge:
        return replace(self, clauses=(*self.clauses, Clause(when=when, values=values, condition=condition)))

    def when_matched_update_all(self, condition: str | None = None) -> Merge:
        """Give matching rows the source's values in all columns that it has."""
        return self._with(MATCHED, {}, condition)

    def when_matched_update(self, set: Values, condition: str | None = None) -> Merge:
        """Set some columns of matching rows to SQL expressions over ``source`` and ``target``."""
        return self._with(MATCHED, _written(set), condition)

    def when_matched_delete(self, condition: str | None = None) -> Merge:
        """Remove matching rows."""
        return self._with(MATCHED, None, condition)

    def when_not_matched_insert_all(self, condition: str | None = None) -> Merge:
        """Add rows of the source that match none of the table; columns that it lacks are NULL."""
        return self._with(NOT_MATCHED, {}, condition)

    def when_not_matched_insert(self, values: Values, condition: str | None = None) -> Merge:
        """Add such rows with SQL expressions over ``source`` as values; columns that are not named are NULL."""
        return self._with(NOT_MATCHED, _written(values), condition)

    def when_not_matched_by_source_update(self, set: Values, condition: str | None = None) -> Merge:
        """Set some columns of rows that no row of the source matches to SQL expressions over ``target``."""
        return self._with(NOT_MATCHED_BY_SOURCE, _written(set), condition)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Merge:
        """Remove rows that no row of the source matches."""
        return self._with(NOT_MATCHED_BY_SOURCE, None, condition)

    def execute(self, *, idempotency_key: str | None = None) -> CommitResult | None:
        """Run the merge in one commit; its version and row counts (``None`` in weak mode)."""
        if not self.clauses:
            raise InvalidInputError("the merge has no clause: add one, such as when_matched_update_all()")
        return self.run(self, idempotency_key)

    def of(self, when: str) -> tuple[Clause, ...]:
        """The clauses for one kind of rows."""
        return tuple(clause for clause in self.clauses if clause.when == when)


def _written(values: Values) -> Values:
    if not isinstance(values, Mapping) or not values:
        raise InvalidInputError(f"the values are {values!r}: give a dict of SQL expressions by column")
    return dict(values)
