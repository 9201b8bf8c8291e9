"""What unions in memory are made of, kept between them: a leaf that did not change is not opened again."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from lancepart.layout.declared_indices import Index
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.read.index_parts import IndexPart
from lancepart.read.union_sources import Shapes
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import Fragment, Offsets
from lancepart.storage.root import Root
from lancepart.storage.union import BasePath, Bases

_PART_BYTES = 2 << 10
_EMPTY_BYTES = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A fragment of a leaf as a union names it, not numbered yet, with the offsets of its rows to hide.

    ``keys`` identify it, ``fragment`` is its number in the leaf.
    """

    keys: tuple[str, str]
    fragment: int
    shown: Fragment
    hidden: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafParts:
    """The fragments of a leaf, and the numbers of the directories that they name files of."""

    parts: tuple[Part, ...]
    bases: frozenset[int]

    @property
    def is_lasting(self) -> bool:
        """Whether they name no file that one union alone has."""
        return all(file.base_id is not None for part in self.parts for file in part.shown.files)

    @property
    def size(self) -> int:
        """About how many bytes of memory they take."""
        return sum(_PART_BYTES + 8 * len(part.hidden) for part in self.parts)


@dataclass(slots=True, kw_only=True)
class UnionParts:
    """The parts of one table's leaves under one definition; of each leaf only the version that was used last."""

    key: Hashable
    bases: Bases = field(default_factory=Bases)
    shapes: Shapes = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _parts: dict[str, tuple[int, LeafParts]] = field(default_factory=dict)
    _indexed: dict[str, tuple[int | None, tuple[Index, ...], list[IndexPart]]] = field(default_factory=dict)
    _held: int = 0

    def known(self, leaf: Leaf) -> LeafParts | None:
        """The parts of a leaf at its version, if they are kept."""
        found = self._parts.get(leaf.location)
        return found[1] if found is not None and found[0] == leaf.read_version else None

    def keep(self, leaf: Leaf, made: LeafParts) -> None:
        """Keep the parts of a leaf instead of those of another version; one without a version may change."""
        if leaf.read_version is None:
            return
        with self._lock:
            before = self._parts.get(leaf.location)
            self._held += made.size - (0 if before is None else before[1].size)
            self._parts[leaf.location] = (leaf.read_version, made)

    def indexed(self, leaf: Leaf, indices: tuple[Index, ...]) -> list[IndexPart] | None:
        """The parts of a leaf's own indices at its version, if they are kept."""
        found = self._indexed.get(leaf.location)
        return found[2] if found is not None and found[:2] == (leaf.read_version, indices) else None

    def keep_indexed(self, leaf: Leaf, indices: tuple[Index, ...], parts: list[IndexPart]) -> None:
        """Keep the parts of a leaf's own indices."""
        with self._lock:
            before = self._indexed.get(leaf.location)
            self._held += _PART_BYTES * (len(parts) - (0 if before is None else len(before[2])))
            self._indexed[leaf.location] = (leaf.read_version, indices, parts)

    def account(self) -> None:
        """Count what is kept among all that this process keeps."""
        cache.account(self.key, _EMPTY_BYTES + self._held)

    def number(self, path: str) -> int:
        """The number of the directory of a dataset."""
        with self._lock:
            return self.bases.number(path, is_dataset=True)

    def place(self, root: Root, location: str, bases: Mapping[int, BasePath]) -> dict[int | None, int]:
        """The numbers of the directories that a leaf names files of."""
        with self._lock:
            return self.bases.of_leaf(root, location, bases)


def parts_of(root: Root, metadata: TableMetadata) -> UnionParts:
    """The cached parts of unions of a table under its definition."""
    options = tuple(sorted(root.storage_options.items()))
    schema = metadata.schema.serialize().to_pybytes()
    key = ("union parts", root.uri, options, metadata.salt, metadata.layout, schema)
    return cache.get(key, lambda: UnionParts(key=key), lambda _: _EMPTY_BYTES)
