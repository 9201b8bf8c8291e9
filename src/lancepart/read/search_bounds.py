"""Up to how many bytes of vectors searches keep in memory, which also says whether an index over the table pays."""

from __future__ import annotations

LEAF_BYTES, UNION_BYTES = 16 << 20, 64 << 20
"""Up to so many bytes of vectors are searched in memory, which takes less time than an index, and finds all.

CPU ms of one leaf in memory, by its index, and row by row by Lance: 0.7, 1.9, 2.0 at 1 MiB; 2.3, 3.2, 11 at 16; 3.8,
4.0, 23 at 31; 6.9, 3.9, 61 at 62. The second bound is for leaves that no table-wide index covers, and for exact
searches: beyond it memory is worth more than the time. ``python -m benchmarks.search_rules`` measures all of these.
"""
