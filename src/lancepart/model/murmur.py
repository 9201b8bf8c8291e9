"""Murmur3 (x86, 32 bits, seed 0) on numpy buffers, many values at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.uint32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Longs: TypeAlias = npt.NDArray[np.int64]

_LANE = 1 << 14
_LONG = 64
_C1, _C2, _M, _N = np.uint32(0xCC9E2D51), np.uint32(0x1B873593), np.uint32(5), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)


def hash_longs(longs: Longs, out: Words) -> None:
    """Hash each number by its 8 little-endian bytes."""
    halves = np.ascontiguousarray(longs).view("<u4").reshape(-1, 2)
    scratch, words = np.empty((2, min(_LANE, len(out))), np.uint32)
    for start in range(0, len(out), _LANE):
        state = out[start : start + _LANE]
        size = len(state)
        state[:] = 0
        for half in (0, 1):
            words[:size] = halves[start : start + size, half]
            _absorb(state, words[:size], scratch[:size])
        state ^= np.uint32(8)
        _finish(state, scratch[:size])


def hash_bytes(data: Bytes, starts: Longs, lengths: Longs, out: Words) -> None:
    """Hash each range of ``data``, which must be at least 4 bytes long."""
    for first in range(0, len(out), _LANE):
        rows = slice(first, first + _LANE)
        _hash_lane(data, starts[rows], lengths[rows], out[rows])


def _hash_lane(data: Bytes, starts: Longs, lengths: Longs, out: Words) -> None:
    """Walk all rows block by block, the longest first, so that those with blocks left are a prefix."""
    blocks = np.minimum(lengths >> 2, _LONG).astype(np.int16)
    order = np.argsort(-blocks, kind="stable")
    starts, lengths, blocks = starts[order], lengths[order], blocks[order]
    long = len(blocks) - int(np.searchsorted(blocks[::-1], _LONG))
    state = np.zeros(len(out), np.uint32)
    scratch = np.empty_like(state)
    state[:long] = [mmh3.hash(data[start:end].tobytes(), signed=False) for start, end in _spans(starts, lengths, long)]
    _hash_short(data, starts[long:], lengths[long:], state[long:], scratch[long:])
    out[order] = state


def _spans(starts: Longs, lengths: Longs, rows: int) -> Iterator[tuple[int, int]]:
    """Long values one by one: their blocks depend on each other, so there is nothing to vectorise."""
    return zip(starts[:rows].tolist(), (starts[:rows] + lengths[:rows]).tolist(), strict=True)


def _hash_short(data: Bytes, starts: Longs, lengths: Longs, state: Words, scratch: Words) -> None:
    blocks = lengths >> 2
    words_at = _words(data)
    most = int(blocks[0]) if len(blocks) else 0
    active_rows = len(blocks) - np.searchsorted(blocks[::-1], np.arange(most), side="right")
    for block, active in enumerate(active_rows.tolist()):
        _absorb(state[:active], words_at[starts[:active] + 4 * block], scratch[:active])
    _hash_tails(data, starts + (lengths & ~3), lengths, state, scratch)
    state ^= lengths.astype(np.uint32)
    _finish(state, scratch)


def _hash_tails(data: Bytes, ends: Longs, lengths: Longs, state: Words, scratch: Words) -> None:
    """Take in the last 0 to 3 bytes, never reading past the buffer."""
    rest = lengths & 3
    last = len(data) - 4
    inside = np.minimum(ends, last)
    tails = _words(data)[inside]
    over = ((ends - inside) << 3).astype(np.uint32)
    tails >>= np.minimum(over, np.uint32(31))
    tails &= _TAIL_MASKS[rest]
    _stir(tails, scratch)
    state ^= tails


def _words(data: Bytes) -> Words:
    """Every 4 bytes of the buffer as one word, at any byte position."""
    return np.ndarray((len(data) - 3,), "<u4", buffer=data.data, strides=(1,))


def _rotate(words: Words, bits: int, scratch: Words) -> None:
    np.right_shift(words, np.uint32(32 - bits), out=scratch)
    np.left_shift(words, np.uint32(bits), out=words)
    np.bitwise_or(words, scratch, out=words)


def _stir(words: Words, scratch: Words) -> None:
    words *= _C1
    _rotate(words, 15, scratch)
    words *= _C2


def _absorb(state: Words, words: Words, scratch: Words) -> None:
    _stir(words, scratch)
    state ^= words
    _rotate(state, 13, scratch)
    state *= _M
    state += _N


def _finish(state: Words, scratch: Words) -> None:
    for bits, factor in ((16, _F1), (13, _F2), (16, None)):
        np.right_shift(state, np.uint32(bits), out=scratch)
        state ^= scratch
        if factor is not None:
            state *= factor
