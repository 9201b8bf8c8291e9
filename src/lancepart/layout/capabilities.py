"""What a table can do, which depends on its layout and on its transactions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CommitMode(Enum):
    """How a write becomes visible to readers."""

    STRONG = "strong"
    """All leaves at once, by one commit to ``__manifest``."""
    WEAK = "weak"
    """Leaf by leaf, by commits to their main branches; new leaves by a commit to ``__manifest`` each."""
    DIRECT = "direct"
    """Leaf by leaf, by commits to their main branches; the catalog only registers the leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What readers, writers and maintenance may rely on.

    ``snapshots`` are time travel and tags, ``version_rows`` the ``table_version`` rows by which every change of a leaf
    is recorded, ``evolution`` changes of schema and partitioning, ``distributed_writes`` fragments that other processes
    write for a commit, ``declared_indices`` those that the manifest records for all leaves.
    """

    publishing: CommitMode
    snapshots: bool
    version_rows: bool
    evolution: bool
    maintenance: bool
    distributed_writes: bool
    declared_indices: bool

    @property
    def transactions(self) -> bool:
        """Whether several changes can be one commit."""
        return self.publishing is CommitMode.STRONG

    @property
    def idempotency(self) -> bool:
        """Whether a commit can carry an idempotency key."""
        return self.transactions
