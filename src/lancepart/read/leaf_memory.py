"""What searches keep of leaves in memory; of a version that only added fragments, these alone are read."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from lancepart.layout.leaves import PLAIN_ID, Leaf
from lancepart.storage import open_leaves
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.root import Root

Value = TypeVar("Value")
LeafKey: TypeAlias = tuple[Hashable, ...]
_POINTER_BYTES, _FRAGMENT_BYTES = 256, 128


class LeafVersion(NamedTuple):
    """A version of a leaf; of one without snapshots ``states`` are its fragments, since numbers come again there."""

    place: str
    branch: str | None
    number: int | None
    states: frozenset[tuple[int, Hashable]] = frozenset()

    @classmethod
    def of(cls, leaf: Leaf) -> LeafVersion:
        """The version that the manifest names."""
        return cls(_place_of(leaf), leaf.branch, leaf.read_version)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class _Kept(Generic[Value]):
    """A value read of a leaf, and the fragments that it was read of; None if they are not known."""

    value: Value
    fragments: Mapping[int, Hashable] | None


def leaf_key(root: Root, leaf: Leaf) -> LeafKey | None:
    """What a leaf at its version is kept under between searches; None if it may change."""
    if leaf.read_version is None:
        return None
    return open_leaves.leaf_key(root, _place_of(leaf), leaf.branch, leaf.read_version)


def _place_of(leaf: Leaf) -> str:
    """What no other leaf has in common with a leaf.

    Another plain table may take the directory of one that was dropped; the id of its leaf names its files.
    """
    return leaf.object_id if leaf.object_id.startswith(PLAIN_ID) else leaf.location


def kept(
    what: tuple[Hashable, ...],
    key: LeafKey,
    handle: Callable[[], LeafHandle],
    read: Callable[[Sequence[int] | None], Value],
    joined: Callable[[Value, Value], Value],
    size: Callable[[Value], int],
) -> Value:
    """A value of a leaf at a version, made of the one of the version before and of what was added where that serves.

    ``read`` takes the numbers of fragments, or None for all of them.
    """

    def make() -> _Kept[Value]:
        last: list[weakref.ref[_Kept[Value]]] = cache.get(("last", what, key[:-1]), list, lambda _: _POINTER_BYTES)
        before = last[0]() if last else None
        now = cache.get(
            ("states", key), lambda: storage.fragment_states(handle()), lambda found: _FRAGMENT_BYTES * len(found)
        )
        added = None if before is None or before.fragments is None else added_fragments(before.fragments, now)
        if before is None or added is None:
            value = read(None)
        else:
            value = joined(before.value, read(added)) if added else before.value
        made = _Kept(value=value, fragments=now)
        last[:] = [weakref.ref(made)]
        return made

    found = cache.get((what, key), make, lambda made: size(made.value) + _FRAGMENT_BYTES * len(made.fragments or ()))
    return found.value


def is_kept(what: tuple[Hashable, ...], key: LeafKey) -> bool:
    """Whether a value of a leaf is in memory."""
    return cache.holds((what, key))


def keep(what: tuple[Hashable, ...], key: LeafKey, value: Value, size: int) -> None:
    """Keep a value of a leaf that was read together with others."""
    cache.get((what, key), lambda: _Kept(value=value, fragments=None), lambda _: size)


def added_fragments(before: Mapping[int, Hashable], now: Mapping[int, Hashable]) -> list[int] | None:
    """The fragments that came; None if others went or changed."""
    if any(now.get(number) != state for number, state in before.items()):
        return None
    return [number for number in now if number not in before]
