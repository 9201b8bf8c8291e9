"""Leaves cut into pieces: a large leaf is read by several tasks, some of its fragments each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lancepart.layout.leaves import Leaf
from lancepart.plan.pack import pack
from lancepart.storage import leaf_handle
from lancepart.storage.root import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A leaf, or some fragments of one."""

    leaf: Leaf
    bytes: int
    fragments: tuple[int, ...] | None = None


def leaf_bytes(leaf: Leaf) -> int:
    """How large a leaf is, as far as the manifest knows."""
    return leaf.stats.bytes if leaf.stats else 0


def cut(root: Root, leaves: Sequence[Leaf], share: int) -> list[Piece]:
    """Leaves whole or, where they are larger than ``share``, by the fragments of the version that is read."""
    return [piece for leaf in leaves for piece in _cut(root, leaf, share)]


def _cut(root: Root, leaf: Leaf, share: int) -> list[Piece]:
    if leaf_bytes(leaf) <= share or (leaf.stats and leaf.stats.fragments < 2):
        return [Piece(leaf=leaf, bytes=leaf_bytes(leaf))]
    sizes = leaf_handle.fragment_sizes(leaf_handle.open_leaf(root, leaf.location, leaf.read_version))
    return [Piece(leaf=leaf, bytes=size, fragments=(number,)) for number, size in sizes.items()]


def packed(pieces: Sequence[Piece], bins: int) -> list[tuple[Piece, ...]]:
    """Pieces in at most so many tasks of about one size; those of one leaf that meet in a task are one piece again."""
    return [_joined([pieces[at] for at in chosen]) for chosen in pack([piece.bytes for piece in pieces], bins)]


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    found: dict[str, Piece] = {}
    for piece in pieces:
        known = found.get(piece.leaf.object_id)
        found[piece.leaf.object_id] = piece if known is None else _both(known, piece)
    return tuple(found.values())


def _both(one: Piece, other: Piece) -> Piece:
    fragments = tuple(sorted((*(one.fragments or ()), *(other.fragments or ()))))
    return replace(one, bytes=one.bytes + other.bytes, fragments=fragments)
