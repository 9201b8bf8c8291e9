"""Nearest vectors and best full-text matches of one open Lance dataset, as row addresses with distances or scores."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import write_fragments
from lance.query import FullTextQuery

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import BLOBS_AS_BYTES, Addresses, Fragment, LeafHandle, data_path, fragments_of
from lancepart.storage.row_mask import allow_list

if TYPE_CHECKING:
    from lancepart.storage.dataset import IndexDescription


DISTANCE, SCORE, QUERY = "_distance", "_score", "query_index"
ADDRESS = "_rowaddr"
_FACTOR, _MOST_EQUAL = 4, 1 << 20
"""While rows end at equal distances so many times more are requested, up to a million."""
_TEXT_KIND: Literal["INVERTED"] = "INVERTED"

_PLACE_IN_LANCE = re.compile(r", /\S+:\d+:\d+$")
TextLike: TypeAlias = str | FullTextQuery
"""A text, or a query of ``lance.query``."""

Allowed: TypeAlias = npt.ArrayLike | bytes | None
"""The only addresses that count, as numbers or as an allow-list of Lance; None for all."""

Ranked: TypeAlias = tuple[npt.NDArray[np.int32], Addresses, npt.NDArray[np.float32]]
"""Of each row found the number of its query, its address and its distance."""


def nearest(
    handle: LeafHandle,
    column: str,
    vectors: npt.NDArray[np.generic],
    k: int,
    *,
    where: str | None = None,
    allowed: Allowed = None,
    fast: bool = False,
    parts: Sequence[str] | None = None,
    complete: bool = False,
    **options: Value,
) -> Ranked:
    """The k best rows of each query, all as far away as the last of them, and perhaps more: query's number, address,
    distance.

    Lance chooses among rows at equal distances in an order of its own, so all of them are requested.
    ``allowed`` are the only addresses that count, ``parts`` those of the index to use if not Lance's choice,
    which is ``complete`` if it covers all rows; ``options`` are Lance's own.
    """
    restricted = {**_restricted(handle, allowed), **_chosen(handle, parts, alone=fast or complete)}

    def ask(queries: npt.NDArray[np.generic], rows: int) -> Ranked:
        wanted = {"column": column, "q": queries, "k": rows, **options, **_enough_candidates(rows, **options)}
        found = handle.scanner(
            columns=[DISTANCE], nearest=wanted, filter=where, prefilter=True, fast_search=fast, **restricted
        ).to_table()
        many = QUERY in found.schema.names
        numbers = found.column(QUERY).to_numpy() if many else np.zeros(found.num_rows, dtype=np.int32)
        return numbers, _addresses(found), found.column(DISTANCE).to_numpy()

    found = ask(vectors, k + 1)
    cut = _cut_among_equals(found, k, k + 1)
    if not len(cut):
        return found
    batch = vectors.reshape(-1, vectors.shape[-1])
    ranked = [tuple(part[~np.isin(found[0], cut)] for part in found)]
    for number in cut.tolist():
        rows = k + 1
        while rows < _MOST_EQUAL:
            rows *= _FACTOR
            more = ask(batch[number], rows)
            if not len(_cut_among_equals(more, k, rows)):
                break
        ranked.append((np.full(len(more[1]), number, dtype=np.int32), *more[1:]))
    return tuple(map(np.concatenate, zip(*ranked, strict=True)))  # type: ignore[return-value]


def _chosen(handle: LeafHandle, parts: Sequence[str] | None, *, alone: bool) -> JsonObject:
    """Let Lance use some parts of indices; unless these ``alone`` are searched, all fragments must be named."""
    if parts is None:
        return {}
    return {"index_segments": list(parts), **({} if alone else {"fragments": handle.get_fragments()})}


def _enough_candidates(rows: int, *, ef: int | None = None, refine_factor: int | None = None, **_: Value) -> JsonObject:
    """Lance refuses to keep fewer candidates in a graph than rows are ranked."""
    return {} if ef is None else {"ef": max(ef, rows * (refine_factor or 1))}


def _cut_among_equals(found: Ranked, k: int, limit: int) -> npt.NDArray[np.int32]:
    """The queries whose rows end at the distance of the k-th: there may be more of these beyond the limit."""
    numbers, _, distances = found
    if len(distances) < limit:
        return numbers[:0]
    order = np.lexsort((distances, numbers))
    ends = np.flatnonzero(np.append(np.diff(numbers[order]) != 0, True))
    starts = np.append(0, ends[:-1] + 1)
    full = ends - starts + 1 >= limit
    equal = distances[order[starts[full] + k - 1]] == distances[order[ends[full]]]
    cut: npt.NDArray[np.int32] = numbers[order[ends[full][equal]]]
    return cut


def matches(
    handle: Dataset,
    query: TextLike,
    columns: Sequence[str],
    k: int | None,
    *,
    allowed: Allowed = None,
    fast: bool = False,
) -> tuple[Addresses, npt.NDArray[np.float32]]:
    """The rows that match a text best: their addresses and scores, best first; if ``fast``, only indexed ones."""
    text_query = query if is_text_query(query) else {"query": query, "columns": list(columns)}
    found = handle.scanner(
        columns=[SCORE], full_text_query=text_query, limit=k, fast_search=fast, **_restricted(handle, allowed)
    ).to_table()
    return _addresses(found), found.column(SCORE).to_numpy()


def _restricted(handle: LeafHandle, allowed: Allowed) -> JsonObject:
    """Ask for addresses, which are the row ids unless a table has stable ones; let only some rows count."""
    where = "with_row_address" if handle.has_stable_row_ids else "with_row_id"
    if allowed is None:
        return {where: True}
    return {where: True, "row_addr_allowlist": allowed if isinstance(allowed, bytes) else allow_list(allowed)}


def _addresses(found: pa.Table) -> Addresses:
    name = "_rowaddr" if "_rowaddr" in found.schema.names else "_rowid"
    addresses: Addresses = found.column(name).to_numpy().astype(np.uint64)
    return addresses


def rows_at(handle: LeafHandle, columns: Sequence[str], addresses: Addresses) -> pa.Table:
    """Some columns of the rows at some addresses, in their order."""
    found = handle.scanner(
        columns=list(columns),
        with_row_address=True,
        row_addr_allowlist=allow_list(addresses),
        blob_handling=BLOBS_AS_BYTES,
    ).to_table()
    at = positions(found.column(ADDRESS).to_numpy(), addresses)
    return found.drop_columns([ADDRESS]).take(pa.array(at)).combine_chunks()


def positions(held: Addresses, addresses: Addresses) -> npt.NDArray[np.int64]:
    """The positions of some addresses in an array of addresses."""
    order = np.argsort(held)
    return order[positions_sorted(held[order], addresses)]


def positions_sorted(held: Addresses, addresses: Addresses) -> npt.NDArray[np.int64]:
    """The same in an array that is in order."""
    found = np.searchsorted(held, addresses)
    if len(addresses) and (not len(held) or (held[np.minimum(found, len(held) - 1)] != addresses).any()):
        raise InvalidInputError("there is no row with one of the ids: they are of another snapshot, or the row is gone")
    return found


def all_rows(handle: LeafHandle, columns: Sequence[str], fragments: Sequence[int] | None = None) -> pa.Table:
    """Some columns of all rows, or of those of some fragments, with their addresses."""
    chosen = None if fragments is None else fragments_of(handle, fragments)
    return handle.scanner(
        columns=list(columns), with_row_address=True, fragments=chosen, blob_handling=BLOBS_AS_BYTES
    ).to_table()


def fragment_states(handle: LeafHandle) -> dict[int, Hashable]:
    """What each fragment of a dataset consists of: if it is the same in two versions, so are its rows."""
    return {item.fragment_id: _state(item.metadata) for item in handle.get_fragments()}


def _state(item: Fragment) -> Hashable:
    gone = item.deletion_file
    files = tuple((data_path(file), tuple(file.fields), file.base_id) for file in item.files)
    return files, repr(item.overlays), None if gone is None else (gone.read_version, gone.id, gone.base_id)


def in_memory(rows: pa.Table) -> Dataset:
    """Rows as a dataset in memory; a row's address is its position."""
    return lance.write_dataset(_nested(rows), "memory://", max_rows_per_file=1 << 31, max_bytes_per_file=1 << 50)


def _nested(rows: pa.Table) -> pa.Table:
    """Rows with columns such as ``a.b`` as fields of structs, since Lance takes such a name for a path to a field."""
    if not any("." in name for name in rows.schema.names):
        return rows
    paths = {tuple(name.split(".")): rows.column(name).combine_chunks() for name in rows.schema.names}
    fields = _fields(paths)
    return pa.table({name: fields.field(at) for at, name in enumerate(field.name for field in fields.type)})


def _fields(paths: Mapping[tuple[str, ...], pa.Array]) -> pa.StructArray:
    """Arrays under their paths as one struct."""
    inside: dict[str, pa.Array] = {}
    for first in dict.fromkeys(path[0] for path in paths):
        own = {path[1:]: array for path, array in paths.items() if path[0] == first}
        inside[first] = own[()] if () in own else _fields(own)
    return pa.StructArray.from_arrays(list(inside.values()), names=list(inside))


def index_text(handle: Dataset, column: str, params: JsonMapping) -> None:
    """Build a full-text index on all rows of a dataset in memory; phrases can be searched too."""
    handle.create_scalar_index(column, _TEXT_KIND, **{**params, "with_position": True})


def with_more_texts(handle: Dataset, rows: pa.Table, params: Mapping[str, JsonMapping]) -> Dataset:
    """A dataset in memory with more rows in one fragment, indexed beside the others; the one given stays as it is."""
    made = write_fragments(_nested(rows), handle, max_rows_per_file=1 << 31, max_bytes_per_file=1 << 50)
    longer = _detached(handle, lance.LanceOperation.Append(list(made)))
    number = max(item.fragment_id for item in longer.get_fragments())
    for name in rows.schema.names:
        known = next(each.name for each in handle.describe_indices() if list(each.field_names) == [name])
        longer = with_text_part(longer, name, known, [number], params.get(name, {}))
    return longer


def with_text_part(handle: Dataset, column: str, name: str, fragments: Sequence[int], params: JsonMapping) -> Dataset:
    """A dataset in memory with more of its fragments in a full-text index; the one given stays as it is."""
    own = {**params, "with_position": True}
    builder = copy.copy(handle)
    built = builder.create_index_uncommitted(
        column, _TEXT_KIND, name=name, replace=True, fragment_ids=list(fragments), **own
    )
    merged = builder.merge_existing_index_segments([replace(built, dataset_version=handle.version)])
    return _detached(handle, lance.LanceOperation.CreateIndex([merged], []))


def _detached(handle: Dataset, operation: lance.LanceOperation.BaseOperation) -> Dataset:
    return lance.LanceDataset.commit(handle, operation, read_version=handle.version, detached=True)


def is_text_query(query: object) -> TypeGuard[FullTextQuery]:
    """Whether a query is one of the classes of ``lance.query``."""
    return isinstance(query, FullTextQuery)


def searched_columns(query: FullTextQuery, candidates: Sequence[str]) -> list[str]:
    """The columns that a query of ``lance.query`` reads, and maybe more: all that its plan on a tiny table names.

    No table can hold both ``a`` and ``a.b``, so that one query can't read both.
    """
    longer = [name for name in candidates if not any(each.startswith(f"{name}.") for each in candidates)]
    plain = [name for name in candidates if "." not in name]
    reason = ""
    for held in (longer, plain):
        try:
            plan = _planned(query, held)
        except ValueError as error:
            reason = reason or _PLACE_IN_LANCE.sub("", str(error))
            continue
        named = [name for name in held if f"column={name}, " in plan or f'column: Some("{name}")' in plan]
        return named or [name for name in held if name in plan] or held
    known = ", ".join(candidates)
    raise InvalidInputError(f"the text query can't be answered over {known}, which hold text: {reason}")


def _planned(query: FullTextQuery, columns: Sequence[str]) -> str:
    probe = in_memory(pa.table({name: pa.array([""]) for name in columns}))
    for name in columns:
        probe.create_scalar_index(name, _TEXT_KIND, with_position=True)
    return str(probe.scanner(columns=[SCORE], full_text_query=query).explain_plan(True))


def indices_on(handle: LeafHandle, column: str) -> list[IndexDescription]:
    """The descriptions of the indices on one column of a dataset."""
    return [each for each in handle.describe_indices() if list(each.field_names) == [column]]


def uncovered_rows(handle: LeafHandle, index: IndexDescription) -> dict[int, int]:
    """The fragments of a dataset that an index does not cover, with their rows."""
    covered = {int(number) for part in index.segments for number in part.fragment_ids}
    return {
        int(item.fragment_id): int(item.metadata.num_rows)
        for item in handle.get_fragments()
        if item.fragment_id not in covered
    }


def details_of(index: IndexDescription) -> JsonObject:
    """The statistics of an index."""
    details: object = index.details
    return dict(details) if isinstance(details, Mapping) else dict(json.loads(str(details or "{}")))


def addresses_at(handle: LeafHandle, offsets: npt.ArrayLike) -> Addresses:
    """The addresses of the rows at some positions among the live rows of a dataset."""
    held: Addresses = handle.scanner(columns=[], with_row_address=True).to_table().column("_rowaddr").to_numpy()
    return held[np.asarray(offsets, dtype=np.int64)]
