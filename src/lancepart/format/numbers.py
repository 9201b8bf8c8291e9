"""Numbers of fragments that are unique over a table, so that rows keep their ids in unions of later snapshots.

Each leaf has blocks of numbers, one for each range of so many of its own numbers. They are allocated in commits that
write the row in which commits meet anyway, the one with the counter, and are never allocated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lancepart.model.aliases import Value

SIZE = 256
"""How many numbers a block has."""

FIRST, END = 1 << 28, (1 << 32) - (1 << 20)
"""The numbers that are allocated; those below are given by single unions, and Lance needs some room above."""

MOST_BLOCKS = 32
_UNKNOWN = 64


def reach() -> int:
    """How many numbers of its own a leaf takes at most in one commit that gives it blocks."""
    return MOST_BLOCKS * SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of a leaf at a version: the first one is for the leaf's own numbers from ``first`` on.

    Without any its fragments have no numbers in the table, and ``first`` is what ids of rows count them from.
    """

    version: int
    first: int
    starts: tuple[int, ...]

    @property
    def end(self) -> int:
        """The first of the leaf's own numbers that has none in the table."""
        return self.first + SIZE * len(self.starts)

    def of(self, own: int) -> int | None:
        """The number in the table of a fragment of the leaf; None if it has none.

        >>> Blocks(version=1, first=256, starts=(1024, 4096)).of(515)
        4099
        """
        if not self.first <= own < self.end:
            return None
        return self.starts[(own - self.first) // SIZE] + (own - self.first) % SIZE

    def trimmed(self, least: int) -> Blocks:
        """Without the blocks of numbers that are below all that the leaf still has."""
        gone = min(max(0, least - self.first) // SIZE, len(self.starts))
        return replace(self, first=self.first + gone * SIZE, starts=self.starts[gone:])

    def renumbered(self, own: Sequence[int]) -> Blocks:
        """The blocks of a leaf whose fragments may have got their numbers in the table as their own ones.

        So have those in a block that the leaf's own numbers can't have reached by themselves in one commit.

        >>> Blocks(version=1, first=0, starts=(1024, 1 << 28)).renumbered([(1 << 28) + 3])
        Blocks(version=1, first=268435456, starts=(268435456,))
        >>> Blocks(version=1, first=1024, starts=(1024, 1536)).renumbered([1536])
        Blocks(version=1, first=1024, starts=(1024, 1536))
        """
        for start in self.starts:
            if start >= self.end + reach() and own and all(start <= each < start + SIZE for each in own):
                return replace(self, first=start, starts=(start,))
        return self

    def to_json(self) -> list[int]:
        """What is written down."""
        return [self.version, self.first, *self.starts]

    @classmethod
    def none(cls, version: int, least: int) -> Blocks | None:
        """No blocks for a leaf whose own numbers are from one on; None if it counts them from the beginning."""
        return cls(version=version, first=least - least % SIZE, starts=()) if least >= FIRST else None

    @classmethod
    def from_json(cls, spelled: Value, version: int | None) -> Blocks | None:
        """What was written down for a version of a leaf; None for anything else, and for another version."""
        if not isinstance(spelled, list) or len(spelled) < 2 or spelled[0] != version:
            return None
        if len(spelled) > 2 + MOST_BLOCKS or not all(type(number) is int for number in spelled):
            return None
        own, starts = spelled[1], tuple(spelled[2:])
        least = 0 if starts else FIRST
        sound = least <= own < END and own % SIZE == 0 and all(FIRST <= each <= END - SIZE for each in starts)
        return cls(version=spelled[0], first=own, starts=starts) if sound else None


@dataclass(slots=True, kw_only=True)
class Counter:
    """The next block that no leaf ever had, and whether any was taken."""

    next: int
    taken: bool = False

    def extended(self, known: Blocks | None, version: int, own: Sequence[int]) -> Blocks | None:
        """Blocks for all of a leaf's own numbers, more of them if need be; None if there is none left for them."""
        least = min(own, default=0)
        known = None if known is None else known.renumbered(own)
        base = known or Blocks(version=version, first=least - least % SIZE, starts=())
        lacking = -(-max(0, max(own, default=0) + 1 - base.end) // SIZE)
        start = self._next_for(base, lacking)
        fresh = (start + SIZE * each for each in range(lacking))
        kept = replace(base, version=version, starts=(*base.starts, *fresh)).trimmed(least)
        if not 0 < len(kept.starts) <= MOST_BLOCKS or start + SIZE * lacking > END:
            return None
        if lacking:
            self.next, self.taken = start + SIZE * lacking, True
        return kept

    def _next_for(self, base: Blocks, count: int) -> int:
        """The first number of the next blocks of a leaf.

        If the leaf has its numbers in the table as its own ones, these go on with the next block; where another leaf
        has that, with one so far away that the leaf's own numbers never reach it before they have become those. Of a
        leaf that has lost its blocks it is not known how many numbers it has used.
        """
        if base.first < FIRST or (base.starts and self.next == base.end):
            return self.next
        return max(self.next, base.end + SIZE * count + (1 if base.starts else _UNKNOWN) * reach())
