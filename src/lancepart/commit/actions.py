"""Changes to the rows of a table, as values: the same for every layout and executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypedDict

from lancepart.commit.write_job import APPEND, OVERWRITE, UPSERT, WHERE
from lancepart.model.aliases import RowSource
from lancepart.model.predicate import Filter
from lancepart.write.conform import is_rereadable
from lancepart.write.frames import AUTO, check_distribution


class RowChanges(Protocol):
    """What can be done to rows: a transaction, or a write to a Hive-style tree."""

    def append(self, data: RowSource, /) -> None:
        """Add rows."""

    def overwrite(self, data: RowSource, where: Filter | None, /) -> None:
        """Replace the partitions that the data touches, or the rows that a filter matches."""

    def delete(self, where: Filter, /) -> None:
        """Remove the rows that match."""

    def update(self, values: Mapping[str, str], where: Filter | None, /) -> None:
        """Set columns to SQL expressions in the rows that match."""

    def upsert(self, data: RowSource, on: Sequence[str], /) -> None:
        """Replace the rows that have the same key, and add the others."""


class Action(Protocol):
    """One change of a table's rows."""

    @property
    def name(self) -> str:
        """What the commit is called in the table's history."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be done again on a newer snapshot."""

    def apply(self, changes: RowChanges) -> None:
        """Do it."""


class JobOptions(TypedDict, total=False):
    """How other processes write the rows of an action."""

    mode: str
    where: Filter | None
    on: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAction(ABC):
    """A change that brings rows; ``distribution`` says how those of a Spark DataFrame are spread over its tasks."""

    data: RowSource
    distribution: str = AUTO

    def __post_init__(self) -> None:
        check_distribution(self.distribution)

    @property
    def is_repeatable(self) -> bool:
        """Whether the rows can be read again."""
        return is_rereadable(self.data)

    @property
    @abstractmethod
    def job(self) -> JobOptions:
        """The options of a write by other processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(RowsAction):
    """Add rows."""

    name: ClassVar[str] = "append"

    @property
    def job(self) -> JobOptions:
        """The options of a write by other processes."""
        return {"mode": APPEND}

    def apply(self, changes: RowChanges) -> None:
        """Do it."""
        changes.append(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite(RowsAction):
    """Replace the partitions that the data touches, or the rows that a filter matches."""

    where: Filter | None = None
    name: ClassVar[str] = "overwrite"

    @property
    def job(self) -> JobOptions:
        """The options of a write by other processes."""
        return {"mode": OVERWRITE if self.where is None else WHERE, "where": self.where}

    def apply(self, changes: RowChanges) -> None:
        """Do it."""
        changes.overwrite(self.data, self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert(RowsAction):
    """Replace the rows that have the same key, and add the others."""

    on: Sequence[str]
    name: ClassVar[str] = "upsert"

    @property
    def job(self) -> JobOptions:
        """The options of a write by other processes."""
        return {"mode": UPSERT, "on": self.on}

    def apply(self, changes: RowChanges) -> None:
        """Do it."""
        changes.upsert(self.data, self.on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Remove the rows that match."""

    where: Filter
    name: ClassVar[str] = "delete"
    is_repeatable: ClassVar[bool] = True

    def apply(self, changes: RowChanges) -> None:
        """Do it."""
        changes.delete(self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Set columns to SQL expressions in the rows that match."""

    values: Mapping[str, str]
    where: Filter | None = None
    name: ClassVar[str] = "update"
    is_repeatable: ClassVar[bool] = True

    def apply(self, changes: RowChanges) -> None:
        """Do it."""
        changes.update(self.values, self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """Change no row, and record an idempotency key only."""

    name: str
    is_repeatable: ClassVar[bool] = True

    def apply(self, changes: RowChanges) -> None:
        """There is nothing to do."""
