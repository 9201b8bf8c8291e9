"""Full-text search with the scores of one table: an index in memory over the texts of many leaves at one snapshot."""

from __future__ import annotations

import builtins
import json
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.model.aliases import JsonMapping
from lancepart.model.schema import field_id
from lancepart.read import leaf as reading
from lancepart.read.hits import Hits
from lancepart.read.leaf import ADDRESS
from lancepart.read.leaf_memory import LeafVersion, added_fragments
from lancepart.read.search_leaves import SearchLeaves
from lancepart.read.search_request import TextQuery
from lancepart.read.text_union import UnionCorpus, union_corpus
from lancepart.storage import leaf_data
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import Addresses
from lancepart.storage.row_mask import allow_list
from lancepart.storage.translate import UnreadableError, storage_errors

_INDEX_SHARE = 3
_MOST_PARTS = 16
_LEAST_MATCHES = 512
"""Short texts often score alike, and a second query costs more than some rows too many in the first."""
_FRAGMENT = 32
_MOST_ALLOWED = 128


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Corpus:
    """The texts of leaves, indexed together: row by row whose it is and its address, in the order of the index.

    ``starts`` are the positions of the first rows of the index's fragments, ``versions`` what was read of each owner,
    ``allowed`` the lists of the rows of some owners that searches needed.
    """

    handle: Dataset
    owners: tuple[str, ...]
    versions: tuple[LeafVersion, ...]
    owner: npt.NDArray[np.int64]
    addresses: Addresses
    starts: npt.NDArray[np.int64]
    bytes: int
    seconds: float
    allowed: dict[builtins.bytes, builtins.bytes] = field(default_factory=dict)

    def positions(self, owner: int, addresses: Addresses | None = None) -> npt.NDArray[np.int64]:
        """The positions in the index of the rows of an owner: all of them, or those at some addresses."""
        own = np.flatnonzero(self.owner == owner)
        if addresses is not None:
            held = self.addresses[own]
            order = np.argsort(held, kind="stable")
            own = own[order[np.searchsorted(held, addresses, sorter=order)]]
        fragment = np.searchsorted(self.starts, own, side="right") - 1
        return (fragment << _FRAGMENT) | (own - self.starts[fragment])

    def found(self, positions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Addresses]:
        """The owners, and the addresses there, of rows of the index."""
        rows = self.starts[positions >> _FRAGMENT] + (positions & ((1 << _FRAGMENT) - 1))
        return self.owner[rows], self.addresses[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """Columns of texts, what they are called in an index, and how these are made into words."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    params: Mapping[str, JsonMapping]


def corpus_of(
    leaves: SearchLeaves, query: TextQuery, params: Mapping[str, JsonMapping], *, fast: bool = False
) -> Corpus | UnionCorpus:
    """The texts of leaves as one index: one on disk, or one in memory for as long as the leaves stay as they are.

    When rows were only added since another was built, these alone are read and indexed; if ``fast``, those that one on
    disk does not cover are left out.
    """
    columns, names = query.columns, query.names
    if (on_disk := union_corpus(leaves, columns, names, fast=fast)) is not None:
        return on_disk
    renamed = {name: params.get(column, {}) for column, name in zip(columns, names, strict=True)}
    texts = _Texts(columns=columns, names=names, params=renamed)
    scan = leaves.scan
    fixed = leaves.plan.are_fixed
    versions = leaves.plan.versions if fixed else tuple(_version(leaves, at) for at in leaves.positions)
    fields = [scan.metadata.schema.field(name) for name in columns]
    numbers = tuple((field_id(field), str(field)) for field in fields)
    spelled = json.dumps({name: dict(each) for name, each in params.items()}, sort_keys=True)
    whose = (scan.root.uri, tuple(sorted(scan.root.storage_options.items())), numbers, names, spelled)
    whole = scan.planned is None
    last: list[weakref.ref[Corpus]] = cache.get(("last corpus", *whose, whole or versions[:1]), list, lambda _: 256)

    def make() -> Corpus:
        before = last[0]() if last else None
        made = None if before is None else _extended(before, leaves, versions, texts)
        made = made or _build(leaves, versions, texts)
        last[:] = [weakref.ref(made)]
        return made

    return cache.get(("corpus", *whose, leaves.plan.versions_key if fixed else versions), make, lambda made: made.bytes)


def _version(leaves: SearchLeaves, at: int) -> LeafVersion:
    version = leaves.plan.versions[at]
    opened = leaves.opened(at) if version.number is None else None
    if opened is None:
        return version
    return version._replace(states=frozenset(storage.fragment_states(opened.handle).items()))


def _build(leaves: SearchLeaves, versions: tuple[LeafVersion, ...], texts: _Texts) -> Corpus:
    started = time.perf_counter()
    parts = leaves.over(leaves.positions, lambda at: _texts(leaves, at, texts.columns))
    rows = pa.concat_tables(parts) if parts else _no_rows(leaves, texts.columns)
    with storage_errors("index texts in memory", leaves.scan.root):
        handle = storage.in_memory(rows.select(list(texts.columns)).rename_columns(list(texts.names)))
        for name in texts.names:
            storage.index_text(handle, name, texts.params[name])
    return Corpus(
        handle=handle,
        owners=tuple(leaf.object_id for leaf in leaves.leaves),
        versions=versions,
        owner=np.repeat(np.arange(len(parts)), [part.num_rows for part in parts]).astype(np.int64),
        addresses=rows.column(ADDRESS).to_numpy(),
        starts=np.zeros(1, dtype=np.int64),
        bytes=int(_INDEX_SHARE * rows.nbytes),
        seconds=time.perf_counter() - started,
    )


def _extended(
    before: Corpus,
    leaves: SearchLeaves,
    versions: tuple[LeafVersion, ...],
    texts: _Texts,
) -> Corpus | None:
    """A corpus with the rows added since as a separate part; None if rows were removed, or a rebuild is cheaper."""
    started = time.perf_counter()
    owners = tuple(leaf.object_id for leaf in leaves.leaves)
    fresh = _fresh(before, leaves, owners, versions)
    if fresh is None or len(fresh) > len(owners) // 2 + 1:
        return None
    parts = leaves.over(list(fresh), lambda at: _texts(leaves, at, texts.columns, fresh[at]))
    rows = pa.concat_tables(parts) if parts else _no_rows(leaves, texts.columns)
    if rows.num_rows > len(before.owner):
        return None
    handle, starts = before.handle, before.starts
    if rows.num_rows:
        with storage_errors("index texts in memory", leaves.scan.root):
            added = rows.select(list(texts.columns)).rename_columns(list(texts.names))
            handle = storage.with_more_texts(handle, added, texts.params)
        starts = np.append(starts, len(before.owner))
    place_of = {owner: at for at, owner in enumerate(owners)}
    moved = np.array([place_of[owner] for owner in before.owners], dtype=np.int64)
    own = np.repeat(np.array(list(fresh), dtype=np.int64), [part.num_rows for part in parts])
    return Corpus(
        handle=handle,
        owners=owners,
        versions=versions,
        owner=np.concatenate([moved[before.owner] if len(before.owner) else before.owner, own]),
        addresses=np.concatenate([before.addresses, rows.column(ADDRESS).to_numpy()]),
        starts=starts,
        bytes=before.bytes + int(_INDEX_SHARE * rows.nbytes),
        seconds=time.perf_counter() - started,
    )


def _fresh(
    before: Corpus, leaves: SearchLeaves, owners: tuple[str, ...], versions: tuple[LeafVersion, ...]
) -> dict[int, tuple[int, ...] | None] | None:
    """The leaves that got rows since, with the fragments that hold these, None for all; None if rows were removed."""
    known = dict(zip(before.owners, before.versions, strict=True))
    if not known.keys() <= set(owners) or len(before.starts) > _MOST_PARTS:
        return None
    found: dict[int, tuple[int, ...] | None] = {}
    for at, (owner, version) in enumerate(zip(owners, versions, strict=True)):
        if owner not in known:
            found[at] = None
        elif known[owner] != version:
            added = _added(leaves, at, known[owner], version)
            if added is None:
                return None
            found[at] = added
    return found


def _added(leaves: SearchLeaves, at: int, was: LeafVersion, now: LeafVersion) -> tuple[int, ...] | None:
    """The fragments that a leaf got between two versions; None if rows went, or it is another leaf."""
    if (was.place, was.branch) != (now.place, now.branch):
        return None
    if was.number is None or now.number is None:
        fresh = added_fragments(dict(was.states), dict(now.states)) if was.states and now.states else None
        return None if fresh is None else tuple(fresh)
    try:
        found = leaf_data.difference(leaves.scan.root, leaves.leaves[at].location, was.number, now.number)
    except UnreadableError:
        return None
    if found.removed or found.deleted or found.restored:
        return None
    return tuple(int(item.id) for item in found.added)


def _texts(
    leaves: SearchLeaves, at: int, columns: tuple[str, ...], fragments: tuple[int, ...] | None = None
) -> pa.Table:
    """The texts of a leaf, or of some of its fragments, with their addresses."""
    opened = leaves.opened(at)
    if opened is None or fragments == ():
        return _no_rows(leaves, columns)
    task = replace(opened.task, columns=columns, predicate=None, limit=None, fragments=fragments)
    found = list(reading.with_addresses(task, opened.reopen))
    return pa.Table.from_batches(found) if found else _no_rows(leaves, columns)


def _no_rows(leaves: SearchLeaves, columns: tuple[str, ...]) -> pa.Table:
    plain = leaves.scan.metadata.plain_schema
    fields = [*(plain.field(name) for name in columns), pa.field(ADDRESS, pa.uint64())]
    return pa.schema(fields).empty_table()


def matches(
    searched: SearchLeaves,
    counted: SearchLeaves,
    query: TextQuery,
    corpus: Corpus | UnionCorpus,
    k: int,
    *,
    filtered: bool = True,
    fast: bool = False,
) -> Hits:
    """The best matches among the matching rows of the leaves that are searched; the corpus is of those that count.

    The limit is raised while scores are equal, so that the order of rows decides among them.
    """
    place_of = {owner: at for at, owner in enumerate(corpus.owners)}
    own = np.array([place_of[leaf.object_id] for leaf in searched.leaves], dtype=np.int64)
    allowed = _allowed(searched, corpus, own, whole=len(own) == len(counted.leaves), filtered=filtered)
    limit = max(_LEAST_MATCHES, 2 * k)
    while True:
        with storage_errors("search texts", searched.scan.root):
            positions, scores = storage.matches(
                corpus.handle, query.query, query.names, limit, allowed=allowed, fast=fast
            )
        if len(scores) < limit or scores[k - 1] > scores[-1]:
            break
        limit *= 4
    leaf_positions, addresses = corpus.found(positions.astype(np.int64))
    back = np.full(len(counted.leaves) + 1, -1, dtype=np.int64)
    back[own] = np.arange(len(own))
    return Hits.of(back[leaf_positions], addresses, scores)


def _allowed(
    searched: SearchLeaves, corpus: Corpus | UnionCorpus, own: npt.NDArray[np.int64], *, whole: bool, filtered: bool
) -> bytes | None:
    """The rows of the index that may be found, as Lance's allow-list; None if all may. That of whole leaves is kept."""
    found: list[Addresses | None] = [None] * len(own)
    if not searched.plan.are_whole:
        of_leaf = searched.matching_addresses if filtered else searched.possible_addresses
        found = searched.over(searched.positions, of_leaf)
    if whole and all(each is None for each in found):
        return None

    def spelled() -> bytes:
        parts = [corpus.positions(int(at), addresses) for at, addresses in zip(own, found, strict=True)]
        return allow_list(np.concatenate(parts) if parts else [])

    if any(each is not None for each in found):
        return spelled()
    key = own.tobytes()
    if key not in corpus.allowed:
        if len(corpus.allowed) >= _MOST_ALLOWED:
            corpus.allowed.clear()
        corpus.allowed[key] = spelled()
    return corpus.allowed[key]
