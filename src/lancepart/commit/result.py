"""What a commit did: a number that is the new snapshot's version, with the rows and partitions that it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancepart.model.html_text import html_record
from lancepart.model.public import public

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lancepart.commit.leaf_changes import LeafChanges


@public("partitions", "rows_added", "rows_deleted", "rows_updated")
class CommitResult(int):
    """The version of a new snapshot, and what was done.

    Versions grow with every commit, not always by one: some steps of a commit take a number of their own.

    >>> done = CommitResult(7, rows_added=3, partitions=2)
    >>> done == 7, done.rows_added, f"{done}"
    (True, 3, '7')
    """

    rows_added: int
    """How many rows are new; updated ones are not among them."""
    rows_updated: int
    """How many rows were replaced by others with the same key, or changed in place."""
    rows_deleted: int
    """How many rows are gone; updated ones are not among them."""
    partitions: int
    """How many partitions the commit changed."""

    def __new__(
        cls, version: int, *, rows_added: int = 0, rows_updated: int = 0, rows_deleted: int = 0, partitions: int = 0
    ) -> CommitResult:
        """Make a version that knows what led to it."""
        made = super().__new__(cls, version)
        made.rows_added, made.rows_updated, made.rows_deleted = rows_added, rows_updated, rows_deleted
        made.partitions = partitions
        return made

    @classmethod
    def of(cls, version: int, changed: Iterable[LeafChanges], updated: int) -> CommitResult:
        """Sum up the changes of partitions; an updated row was deleted and inserted."""
        works = list(changed)
        return cls(
            version,
            rows_added=sum(work.added for work in works) - updated,
            rows_updated=updated,
            rows_deleted=sum(work.deleted for work in works) - updated,
            partitions=len(works),
        )

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]:
        return (int(self),), dict(vars(self))

    def __str__(self) -> str:
        return str(int(self))

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def _repr_html_(self) -> str:
        done = {name.replace("_", " "): value for name, value in vars(self).items()}
        return html_record(f"snapshot {int(self)}", done)

    def __repr__(self) -> str:
        done = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"CommitResult({int(self)}, {done})"
