"""The cache that searches share: bounded in bytes, used by all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import lance

from lancepart.model.config import config
from lancepart.storage.leaf_handle import LeafHandle, fragment_count

if TYPE_CHECKING:
    from lance import Session


Value = TypeVar("Value")
_MANIFEST_BYTES = 16 << 10


@dataclass(slots=True)
class _Entry:
    lock: threading.Lock
    value: Any = None
    size: int = 0
    made: bool = False


class HashedKey:
    """A long key whose hash is computed once; equal to others of the same parts."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, HashedKey) and self._parts == other._parts)


class ByteCache:
    """Values by key, the least recently used dropped first; each is made once, by the first thread that needs it."""

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
                part = self._capacity // 8
                self._session = lance.Session(index_cache_size_bytes=3 * part, metadata_cache_size_bytes=part)
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
        """Set the capacity, which includes Lance's caches; cached values are dropped."""
        with self._lock:
            self._capacity, self._session = capacity, None
            self._entries.clear()
            self._held = 0

    def clear(self) -> None:
        """Drop all that is kept."""
        self.resize(self._capacity)

    def holds(self, key: Hashable) -> bool:
        """Whether a value is kept under a key."""
        with self._lock:
            entry = self._entries.get(key)
            return entry is not None and entry.made

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
        """Count a cached value by its current size; one larger than half of the capacity is dropped."""
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
        if self._held <= self._capacity // 2:
            return
        for other in [each for each, kept in self._entries.items() if kept.made and each != key]:
            if self._held <= self._capacity // 2:
                break
            self._held -= self._entries.pop(other).size

    def _forget(self, key: Hashable, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]


cache = ByteCache(config.cache_bytes)
config.follow(cache.resize)


def handle_size(handle: LeafHandle) -> int:
    """About how many bytes an open table holds itself."""
    return _MANIFEST_BYTES + 512 * fragment_count(handle)
