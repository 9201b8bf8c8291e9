"""Full-text search by an index on disk over the whole table; rows that it does not cover are indexed in memory."""

from __future__ import annotations

import builtins
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lancepart.layout.declared_indices import TEXT_KIND, declared
from lancepart.model.schema import field_id
from lancepart.read.search_leaves import SearchLeaves
from lancepart.read.search_union import SearchUnion, TextIndex
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import Addresses
from lancepart.storage.translate import storage_errors

_ROW_BYTES = 256
_SHIFT = np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionCorpus:
    """The texts of leaves as one dataset, indexed; ``rows`` are the sizes of its fragments.

    ``allowed`` are the lists of the rows of some leaves that searches needed.
    """

    handle: Dataset
    made: SearchUnion
    owners: tuple[str, ...]
    rows: npt.NDArray[np.int64]
    bytes: int
    seconds: float
    allowed: dict[builtins.bytes, builtins.bytes] = field(default_factory=dict)

    def positions(self, owner: int, addresses: Addresses | None = None) -> npt.NDArray[np.int64]:
        """The positions in the dataset of the rows of an owner: all of them, or those at some addresses."""
        if addresses is not None:
            return self.made.joined(np.full(len(addresses), owner), addresses).astype(np.int64)
        parts = [
            (np.int64(self.made.numbers[at]) << np.int64(32)) + np.arange(self.rows[at])
            for at in np.flatnonzero(self.made.leaf_positions == owner)
        ]
        return np.concatenate(parts) if parts else np.array([], dtype=np.int64)

    def found(self, positions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Addresses]:
        """The owners, and the addresses there, of rows of the dataset."""
        return self.made.split(positions.astype(np.uint64))


def union_corpus(
    leaves: SearchLeaves, columns: Sequence[str], names: Sequence[str], *, fast: bool = False
) -> UnionCorpus | None:
    """The texts of all leaves by table-wide indices on disk; None where these would not give exact scores.

    Lance is to find the columns under ``names``. If ``fast``, rows that the indices do not cover are left out.
    """
    scan = leaves.scan
    numbers = [field_id(scan.metadata.schema.field(name)) or 0 for name in columns]
    indexed = {index.column for index in declared(scan.snapshot) if index.segments and index.kind == TEXT_KIND}
    if scan.where is not None or scan.planned is not None or not set(numbers) <= indexed:
        return None
    made = leaves.union()
    if made is None or any(number not in made.texts for number in numbers):
        return None
    parts = [(made.matching.names[number], made.texts[number]) for number in numbers]
    if [name for name, _ in parts] != list(names):
        return None

    def make() -> UnionCorpus:
        with storage_errors("index new texts in memory", scan.root):
            return _corpus(leaves, made, [] if fast else parts)

    return cache.get(("text union", id(made), tuple(numbers), fast), make, lambda corpus: corpus.bytes)


def text_way(leaves: SearchLeaves, columns: Sequence[str], names: Sequence[str], *, fast: bool = False) -> str:
    """By what texts are searched, in words."""
    found = union_corpus(leaves, columns, names, fast=fast)
    if found is None:
        return "by an index in memory"
    numbers = [field_id(leaves.scan.metadata.schema.field(name)) or 0 for name in columns]
    parts = [found.made.texts[number] for number in numbers]
    fresh = len({number for part in parts for number in part.uncovered})
    names = ", ".join(repr(part.name) for part in parts)
    more = "left out" if fast else "indexed in memory"
    return f"by the table-wide index {names}" + (f", {fresh} newer fragments {more}" if fresh else "")


def _corpus(leaves: SearchLeaves, made: SearchUnion, parts: Sequence[tuple[str, TextIndex]]) -> UnionCorpus:
    started = time.perf_counter()
    handle = made.handle
    sizes = {item.fragment_id: int(item.physical_rows) for item in handle.get_fragments()}
    fresh = 0
    for name, index in parts:
        if index.uncovered:
            handle = storage.with_text_part(handle, name, index.name, index.uncovered, index.params)
            fresh += sum(sizes[number] for number in index.uncovered)
    return UnionCorpus(
        handle=handle,
        made=made,
        owners=tuple(leaf.object_id for leaf in leaves.leaves),
        rows=np.array([sizes[int(number)] for number in made.numbers], dtype=np.int64),
        bytes=_ROW_BYTES * (fresh + len(sizes)),
        seconds=time.perf_counter() - started,
    )
