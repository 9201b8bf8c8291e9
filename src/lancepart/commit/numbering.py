"""Numbers of fragments that are unique over the table, allocated in the commits that publish these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancepart.commit.leaf_changes import LeafChanges
from lancepart.format.names import NEXT_NUMBER
from lancepart.format.numbers import FIRST, Blocks, Counter
from lancepart.format.rows import Row
from lancepart.model.aliases import JsonObject
from lancepart.storage import leaf_handle, leaf_record

ROLLBACK, COMPACT = "rollback", "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The numbers that one attempt to publish gives to the fragments of its leaves.

    ``counter`` is that of the row in which such commits conflict: a commit that takes numbers writes it. Leaves without
    numbers get some only where that row is written anyway, and by compaction.
    """

    counter: Counter
    allocating: bool
    operation: str

    @classmethod
    def at(cls, fence: Row | None, *, fencing: bool, operation: str) -> Numbering:
        """Begin with what the row says; what is no number of ours there gives out none."""
        found = ((fence.metadata if fence is not None else None) or {}).get(NEXT_NUMBER, FIRST)
        sound = type(found) is int and found >= FIRST
        return cls(
            counter=Counter(next=found if sound else FIRST),
            allocating=sound and (fencing or operation == COMPACT),
            operation=operation,
        )

    @property
    def mark(self) -> JsonObject:
        """What the row says from now on, if any number was taken."""
        return {NEXT_NUMBER: self.counter.next} if self.counter.taken else {}

    def of(self, work: LeafChanges) -> Blocks | None:
        """The numbers of a leaf's fragments; None if it has none, and counts them from the beginning.

        A version that is brought back goes on with numbers of its own that other fragments had since: all get new ones.
        A leaf that is made elsewhere counts its fragments from the beginning.
        """
        known = None if work.leaf is None or work.is_relocated or self.operation == ROLLBACK else work.leaf.numbers
        files, _ = leaf_record.noted(work.root, work.location, work.head)
        if work.head is None:
            return None
        own = [] if files is None else [item.id for item in files.fragments]
        if known is None and (files is None or not self.allocating):
            return self._unnumbered(work, work.head, own)
        made = self.counter.extended(known, work.head, own or ([] if known is None else [known.first]))
        return made or self._unnumbered(work, work.head, own)

    def _unnumbered(self, work: LeafChanges, head: int, own: Sequence[int]) -> Blocks | None:
        """What remains to be known of a leaf whose fragments once had their numbers in the table as their own ones."""
        if own or work.leaf is None or work.is_relocated:
            least = min(own, default=0)
        elif self.operation == ROLLBACK:
            handle = leaf_handle.open_leaf(work.root, work.location, head)
            least = min((int(item.fragment_id) for item in handle.get_fragments()), default=0)
        else:
            least = work.leaf.first_fragment
        return Blocks.none(head, least)
