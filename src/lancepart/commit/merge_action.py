"""A merge as one change of a table's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lancepart.commit import merging
from lancepart.commit.actions import RowChanges
from lancepart.commit.merge import Merge
from lancepart.commit.transaction import Transaction
from lancepart.errors import UnsupportedOperationError


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """Do what the clauses of a merge say, in a transaction."""

    merge: Merge
    name: ClassVar[str] = "merge"
    is_repeatable: ClassVar[bool] = True

    def apply(self, changes: RowChanges) -> None:
        """Do it."""
        if not isinstance(changes, Transaction):
            raise UnsupportedOperationError("a merge needs a table whose writes are transactions")
        merging.run(changes, self.merge)
