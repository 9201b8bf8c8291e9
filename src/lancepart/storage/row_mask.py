"""Sets of row addresses in the format of Lance's ``row_addr_allowlist``: a Roaring bitmap a fragment."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

_COOKIE = 12346
_MOST_LISTED = 4096
_CONTAINER = 1 << 16


def allow_list(addresses: npt.ArrayLike) -> bytes:
    """Spell row addresses, fragment and offset in one number each, in any order.

    >>> allow_list([]).hex()
    '00000000'
    """
    ordered = _ascending(np.asarray(addresses, dtype=np.uint64))
    fragments = (ordered >> np.uint64(32)).astype(np.uint32)
    offsets = (ordered & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    parts = []
    for number, start, stop in _runs(fragments):
        bitmap = _bitmap(offsets[start:stop])
        parts.append(struct.pack("<II", number, len(bitmap)) + bitmap)
    return struct.pack("<I", len(parts)) + b"".join(parts)


def _ascending(addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each address once, in order; most callers have them so, which is found faster than they are sorted."""
    if (addresses[1:] > addresses[:-1]).all():
        return addresses
    ordered = np.sort(addresses, axis=None)
    kept: npt.NDArray[np.uint64] = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return kept


def _runs(values: npt.NDArray[np.unsignedinteger]) -> list[tuple[int, int, int]]:
    """Each value of a sorted array, and where its run starts and stops."""
    if not len(values):
        return []
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])).tolist()
    return [(int(values[at]), at, to) for at, to in zip(starts, [*starts[1:], len(values)], strict=True)]


def _bitmap(offsets: npt.NDArray[np.uint32]) -> bytes:
    """Sorted offsets as a Roaring bitmap in its portable form, without run containers."""
    runs = _runs((offsets >> np.uint32(16)).astype(np.uint16))
    low = (offsets & np.uint32(_CONTAINER - 1)).astype("<u2")
    described = b"".join(struct.pack("<HH", key, stop - start - 1) for key, start, stop in runs)
    containers = [_container(low[start:stop]) for _, start, stop in runs]
    first = 8 + 8 * len(runs)
    ends = np.cumsum([first, *map(len, containers)])[:-1].astype("<u4")
    return struct.pack("<II", _COOKIE, len(runs)) + described + ends.tobytes() + b"".join(containers)


def _container(low: npt.NDArray[np.uint16]) -> bytes:
    if len(low) <= _MOST_LISTED:
        return bytes(low.tobytes())
    bits = np.zeros(_CONTAINER, dtype=np.uint8)
    bits[low] = 1
    return bytes(np.packbits(bits, bitorder="little").tobytes())
