"""A file that is one JSON array, as the lines of its elements, little by little."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from lancepart.errors import InvalidInputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 1 << 20
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_QUOTE, _COMMA, _NEWLINE, _SPACE = b'",\n '
_OPENING, _CLOSING = b"[{", b"]}"


class ArrayLines(io.RawIOBase):
    """What reads a JSON array as JSON lines: the commas between its elements become line breaks, other breaks spaces.

    JSON writes a line break inside a text as an escape, so that no break belongs to a value.
    """

    def __init__(self, source: BinaryIO, name: str) -> None:
        super().__init__()
        self._source, self._name = source, name
        self._left = b""
        self._ready = memoryview(b"")
        self._depth, self._quoted, self._over, self._ended = 0, 0, False, False

    def readable(self) -> bool:
        """Whether it can be read, which it can."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer with some of the lines; 0 at the end."""
        while not self._ready and not self._ended:
            self._ready = memoryview(self._next())
        target = memoryview(buffer)
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next(self) -> bytes:
        """The lines in the next bytes; those after an unfinished escape wait for what follows."""
        read = self._source.read(_CHUNK_BYTES)
        if not read:
            self._ended = True
            if not self._over:
                raise InvalidInputError(f"{self._name!r} is a JSON array that does not end: the file is cut short")
            return b""
        chunk = self._left + read
        plain = _ESCAPED.sub(b"__", chunk)
        self._left = b"\\" if plain.endswith(b"\\") else b""
        return self._lines(chunk, plain) if not self._left else self._lines(chunk[:-1], plain[:-1])

    def _lines(self, chunk: bytes, plain: bytes) -> bytes:
        """The lines in some bytes; ``plain`` are the same without escapes."""
        seen = np.frombuffer(plain, dtype=np.uint8)
        quotes = np.cumsum(seen == _QUOTE) + self._quoted
        outside = quotes % 2 == 0
        opening = np.isin(seen, list(_OPENING)) & outside
        closing = np.isin(seen, list(_CLOSING)) & outside
        depth = np.cumsum(opening.astype(np.int64) - closing) + self._depth
        lines = np.frombuffer(chunk, dtype=np.uint8).copy()
        lines[(seen == _NEWLINE) | (seen == b"\r"[0])] = _SPACE
        lines[(seen == _COMMA) & outside & (depth == 1)] = _NEWLINE
        lines[(opening & (depth == 1)) | (depth <= 0)] = _SPACE
        ends = np.flatnonzero(closing & (depth <= 0))
        self._refuse_more(seen if self._over else seen[ends[0] + 1 :] if len(ends) else seen[:0])
        self._over = self._over or bool(len(ends))
        if len(seen):
            self._quoted, self._depth = int(quotes[-1]), int(depth[-1])
        return lines.tobytes()

    def _refuse_more(self, after: npt.NDArray[np.uint8]) -> None:
        """Refuse what stands after the end of the array."""
        if (~np.isin(after, list(b" \t\r\n"))).any():
            raise InvalidInputError(f"{self._name!r} is a JSON array with something after its end: correct the file")
