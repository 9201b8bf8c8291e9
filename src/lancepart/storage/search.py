"""Nearest vectors and best full-text matches of one open Lance dataset, as row addresses with distances or scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
from lancepart.storage.leaf_data import BLOBS_AS_BYTES, Addresses
from lancepart.storage.row_mask import allow_list

if TYPE_CHECKING:
    from lancepart.storage.dataset import IndexDescription


DISTANCE, SCORE, QUERY = "_distance", "_score", "query_index"
ADDRESS = "_rowaddr"
_TEXT_KIND: Literal["INVERTED"] = "INVERTED"

TextLike: TypeAlias = str | FullTextQuery
"""A text, or a query of ``lance.query``."""

Ranked: TypeAlias = tuple[npt.NDArray[np.int32], Addresses, npt.NDArray[np.float32]]
"""Of each row found the number of its query, its address and its distance."""


def nearest(
    handle: Dataset,
    column: str,
    vectors: npt.NDArray[np.generic],
    k: int,
    *,
    where: str | None = None,
    allowed: npt.ArrayLike | None = None,
    fast: bool = False,
    **options: Value,
) -> Ranked:
    """The best rows of each query: their query's number, row address and distance, nearest first.

    ``allowed`` are the only addresses that count; ``options`` are Lance's own.
    """
    wanted = {"column": column, "q": vectors, "k": k, **options}
    found = handle.scanner(
        columns=[DISTANCE],
        nearest=wanted,
        filter=where,
        prefilter=True,
        fast_search=fast,
        **_restricted(handle, allowed),
    ).to_table()
    many = QUERY in found.schema.names
    numbers = found.column(QUERY).to_numpy() if many else np.zeros(found.num_rows, dtype=np.int32)
    return numbers, _addresses(found), found.column(DISTANCE).to_numpy()


def matches(
    handle: Dataset, query: TextLike, columns: Sequence[str], k: int | None, *, allowed: npt.ArrayLike | None = None
) -> tuple[Addresses, npt.NDArray[np.float32]]:
    """The rows that match a text best: their addresses and scores, best first."""
    asked = query if is_text_query(query) else {"query": query, "columns": list(columns)}
    found = handle.scanner(columns=[SCORE], full_text_query=asked, limit=k, **_restricted(handle, allowed)).to_table()
    return _addresses(found), found.column(SCORE).to_numpy()


def _restricted(handle: Dataset, allowed: npt.ArrayLike | None) -> JsonObject:
    """Ask for addresses, which are the row ids unless a table has stable ones; let only some rows count."""
    where = "with_row_address" if handle.has_stable_row_ids else "with_row_id"
    return {where: True, **({} if allowed is None else {"row_addr_allowlist": allow_list(allowed)})}


def _addresses(found: pa.Table) -> Addresses:
    name = "_rowaddr" if "_rowaddr" in found.schema.names else "_rowid"
    addresses: Addresses = found.column(name).to_numpy().astype(np.uint64)
    return addresses


def rows_at(handle: Dataset, columns: Sequence[str], addresses: Addresses) -> pa.Table:
    """Some columns of the rows at some addresses, in their order."""
    found = handle.scanner(
        columns=list(columns),
        with_row_address=True,
        row_addr_allowlist=allow_list(addresses),
        blob_handling=BLOBS_AS_BYTES,
    ).to_table()
    places = positions(found.column(ADDRESS).to_numpy(), addresses)
    return found.drop_columns([ADDRESS]).take(pa.array(places)).combine_chunks()


def positions(held: Addresses, addresses: Addresses) -> npt.NDArray[np.int64]:
    """The positions of some addresses in an array of addresses."""
    order = np.argsort(held)
    found_at = np.searchsorted(held, addresses, sorter=order)
    places = order[np.minimum(found_at, max(0, len(order) - 1))] if len(order) else found_at
    if len(addresses) and (not len(order) or (held[places] != addresses).any()):
        raise InvalidInputError("there is no row with one of the ids: they are of another snapshot, or the row is gone")
    return places


def all_rows(handle: Dataset, columns: Sequence[str]) -> pa.Table:
    """Some columns of all rows, with their addresses."""
    return handle.scanner(columns=list(columns), with_row_address=True, blob_handling=BLOBS_AS_BYTES).to_table()


def in_memory(rows: pa.Table) -> Dataset:
    """Rows as a dataset of their own that nobody else sees; a row's address is its place."""
    return lance.write_dataset(rows, "memory://", max_rows_per_file=1 << 31, max_bytes_per_file=1 << 50)


def index_text(handle: Dataset, column: str, params: JsonMapping) -> None:
    """Build a full-text index on all rows of a dataset in memory; phrases can be asked for too."""
    handle.create_scalar_index(column, _TEXT_KIND, **{**params, "with_position": True})


def with_more_texts(handle: Dataset, rows: pa.Table, params: Mapping[str, JsonMapping]) -> Dataset:
    """A dataset in memory with more rows in one fragment, indexed beside the others; the one given stays as it is."""
    made = write_fragments(rows, handle, max_rows_per_file=1 << 31, max_bytes_per_file=1 << 50)
    longer = _detached(handle, lance.LanceOperation.Append(list(made)))
    number = max(item.fragment_id for item in longer.get_fragments())
    for name in rows.schema.names:
        own = {**params.get(name, {}), "with_position": True}
        known = next(each.name for each in handle.describe_indices() if list(each.field_names) == [name])
        built = longer.create_index_uncommitted(
            name, _TEXT_KIND, name=known, replace=True, fragment_ids=[number], **own
        )
        merged = longer.merge_existing_index_segments([replace(built, dataset_version=longer.version)])
        longer = _detached(longer, lance.LanceOperation.CreateIndex([merged], []))
    return longer


def _detached(handle: Dataset, operation: lance.LanceOperation.BaseOperation) -> Dataset:
    return lance.LanceDataset.commit(handle, operation, read_version=handle.version, detached=True)


def is_text_query(query: object) -> TypeGuard[FullTextQuery]:
    """Whether a query is one of the classes of ``lance.query``."""
    return isinstance(query, FullTextQuery)


def searched_columns(query: FullTextQuery, candidates: Sequence[str]) -> list[str]:
    """The columns that a query of ``lance.query`` asks, and maybe more: all that its plan on a tiny table names."""
    probe = in_memory(pa.table({name: pa.array([""]) for name in candidates}))
    for name in candidates:
        probe.create_scalar_index(name, _TEXT_KIND, with_position=True)
    plan = probe.scanner(columns=[SCORE], full_text_query=query).explain_plan(True)
    return [name for name in candidates if name in plan] or list(candidates)


def indices_on(handle: Dataset, column: str) -> list[IndexDescription]:
    """What is known of the indices on one column of a dataset."""
    return [each for each in handle.describe_indices() if list(each.field_names) == [column]]


def details_of(index: IndexDescription) -> JsonObject:
    """What an index tells of itself."""
    details: object = index.details
    return dict(details) if isinstance(details, Mapping) else dict(json.loads(str(details or "{}")))


def addresses_at(handle: Dataset, offsets: npt.ArrayLike) -> Addresses:
    """The addresses of the rows at some places among the live rows of a dataset."""
    held: Addresses = handle.scanner(columns=[], with_row_address=True).to_table().column("_rowaddr").to_numpy()
    return held[np.asarray(offsets, dtype=np.int64)]
