"""Bin packing: work of different sizes in bins of about equal size."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def pack(sizes: Sequence[int], bins: int) -> list[list[int]]:
    """Indices in at most ``bins`` groups, none empty: the largest first, each into the lightest so far.

    >>> pack([5, 9, 4, 1], 2)
    [[1, 3], [0, 2]]
    """
    weights = [(0, place) for place in range(max(1, min(bins, len(sizes))))]
    groups: list[list[int]] = [[] for _ in weights]
    for index in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        weight, place = heapq.heappop(weights)
        groups[place].append(index)
        heapq.heappush(weights, (weight + max(1, sizes[index]), place))
    return [group for group in groups if group]
