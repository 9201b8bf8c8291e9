"""The cache that searches share: bounded in bytes, used by all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import lance

from lancepart.errors import InvalidInputError

if TYPE_CHECKING:
    from lance import Session


Value = TypeVar("Value")
_DEFAULT = 1 << 30
_MANIFEST_BYTES = 16 << 10


class Config:
    """Settings of this process: ``cache_bytes`` bounds what searches keep in memory between calls.

    Half of it is for open tables and what was read of them, half for Lance's own caches of indices and metadata.
    """

    def __init__(self) -> None:
        self._cache_bytes = _DEFAULT

    @property
    def cache_bytes(self) -> int:
        """The most bytes that are kept; 0 keeps nothing."""
        return self._cache_bytes

    @cache_bytes.setter
    def cache_bytes(self, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
            raise InvalidInputError(f"cache_bytes is {value!r}: give a number of bytes from 0 up")
        self._cache_bytes = int(value)
        cache.resize(self._cache_bytes)

    def __repr__(self) -> str:
        return f"Config(cache_bytes={self._cache_bytes})"


@dataclass(slots=True)
class _Entry:
    lock: threading.Lock
    value: Any = None
    size: int = 0
    made: bool = False


class ByteCache:
    """Values by key, the least recently used dropped first; each is made once, by the first thread that asks."""

    def __init__(self, capacity: int) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._capacity = capacity
        self._held = 0
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """Lance's own caches, shared by all tables that are kept open."""
        with self._lock:
            if self._session is None:
                part = self._capacity // 4
                self._session = lance.Session(index_cache_size_bytes=part, metadata_cache_size_bytes=part)
            return self._session

    @property
    def capacity(self) -> int:
        """The most bytes that are kept, Lance's own caches among them."""
        return self._capacity

    @property
    def held_bytes(self) -> int:
        """How many bytes the kept values hold, Lance's own caches not counted."""
        return self._held

    def resize(self, capacity: int) -> None:
        """Keep no more than that, counted together with Lance's caches; what was kept is dropped."""
        with self._lock:
            self._capacity, self._session = capacity, None
            self._entries.clear()
            self._held = 0

    def clear(self) -> None:
        """Drop all that is kept."""
        self.resize(self._capacity)

    def get(self, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """The value of a key, made if it is not kept; one larger than half of the capacity is not kept."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(threading.Lock()))
            self._entries.move_to_end(key)
        with entry.lock:
            if entry.made:
                found: Value = entry.value
                return found
            try:
                made = make()
            except BaseException:
                self._forget(key, entry)
                raise
            self._keep(key, entry, made, size(made))
            return made

    def _keep(self, key: Hashable, entry: _Entry, value: object, size: int) -> None:
        with self._lock:
            if self._entries.get(key) is not entry:
                return
            if size > self._capacity // 2:
                del self._entries[key]
                return
            entry.value, entry.size, entry.made = value, size, True
            self._held += size
            self._drop_others(key)

    def account(self, key: Hashable, size: int) -> None:
        """Count a kept value that grew, or shrank, by its size now; one larger than half of the capacity goes."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not entry.made:
                return
            self._held += size - entry.size
            entry.size = size
            if size > self._capacity // 2:
                self._held -= self._entries.pop(key).size
            self._drop_others(key)

    def _drop_others(self, key: Hashable) -> None:
        for other in [each for each, kept in self._entries.items() if kept.made and each != key]:
            if self._held <= self._capacity // 2:
                break
            self._held -= self._entries.pop(other).size

    def _forget(self, key: Hashable, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]


cache = ByteCache(_DEFAULT)
config = Config()


def handle_size(handle: lance.LanceDataset) -> int:
    """About how many bytes an open table holds itself."""
    return _MANIFEST_BYTES + 512 * len(handle.get_fragments())
