"""Work packed into a few tasks of about the same size."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def pack(sizes: Sequence[int], bins: int) -> list[list[int]]:
    """Indices of sizes in at most so many groups, the largest first into the emptiest; no group is empty.

    >>> pack([5, 1, 4, 2], 2)
    [[0, 1], [2, 3]]
    """
    groups: list[list[int]] = [[] for _ in range(min(bins, len(sizes)))]
    emptiest = [(0, number) for number in range(len(groups))]
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        filled, number = heapq.heappop(emptiest)
        groups[number].append(index)
        heapq.heappush(emptiest, (filled + max(sizes[index], 1), number))
    return [sorted(group) for group in groups]
