"""Validating the request of a search: query vectors, texts, and options with the meanings of LanceDB."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.layout.columns import physical_name
from lancepart.model.aliases import DistanceType, JsonMapping, Statistics, Value
from lancepart.model.suggest import near
from lancepart.model.values import logical_type
from lancepart.storage import search as storage
from lancepart.storage.search import TextLike

_VECTORS, _TEXT = "vectors", "text"
_MEANT = {
    _VECTORS: "vectors that can be searched, which are lists of a fixed length of floats or of uint8",
    _TEXT: "text",
}
DISTANCE_TYPES = ("l2", "cosine", "dot", "hamming")
TABLE, PARTITION = "table", "partition"
_MOST = 1 << 48
NPROBES = 20
"""How many parts of an index are looked into at least, if nothing else is said; LanceDB's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorQuery:
    """Vectors to find the nearest rows of; ``many`` if they came as a batch."""

    column: str
    vectors: npt.NDArray[np.generic]
    many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextQuery:
    """A text, or a query of ``lance.query``, and the columns that it searches."""

    query: TextLike
    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called where Lance searches them: a query of ``lance.query`` names them itself."""
        return tuple(map(_lance_name, self.columns)) if isinstance(self.query, str) else self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """What is searched for each of many queries, which a column called ``query`` holds."""

    column: str | None
    query: str
    options: JsonMapping


class SearchOptions(TypedDict, total=False):
    """The options of a search, with the meanings that LanceDB gives them.

    ``exact`` uses no vector index, ``fast_search`` leaves out rows that no index covers, ``statistics`` says whose
    texts the scores of words are relative to: those of the whole table, or of the partitions that are searched.
    """

    offset: int
    distance_type: DistanceType
    nprobes: int
    minimum_nprobes: int
    maximum_nprobes: int
    refine_factor: int
    ef: int
    distance_range: tuple[float | None, float | None]
    exact: bool
    fast_search: bool
    prefilter: bool
    statistics: Statistics
    with_row_id: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a search is made."""

    k: int = 10
    offset: int = 0
    distance_type: str | None = None
    nprobes: int | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None
    distance_range: tuple[float | None, float | None] | None = None
    exact: bool = False
    fast_search: bool = False
    prefilter: bool = True
    statistics: str = TABLE
    with_row_id: bool = False

    def __post_init__(self) -> None:
        for name in ("k", "nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef"):
            _check_number(name, getattr(self, name), least=1)
        _check_number("offset", self.offset, least=0)
        for name in ("exact", "fast_search", "prefilter", "with_row_id"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(f"{name} is {getattr(self, name)!r}: give True or False")
        if self.statistics not in (TABLE, PARTITION):
            raise InvalidInputError(f"statistics is {self.statistics!r}: use {TABLE!r} or {PARTITION!r}")
        if self.distance_type is not None and self.distance_type not in DISTANCE_TYPES:
            raise InvalidInputError(f"distance_type is {self.distance_type!r}: use one of {', '.join(DISTANCE_TYPES)}")
        if self.exact and self.fast_search:
            raise InvalidInputError("exact uses no index, and fast_search finds only rows that one covers: give one")
        if self.nprobes is not None and (self.minimum_nprobes or self.maximum_nprobes) is not None:
            raise InvalidInputError("nprobes sets the minimum and the maximum: give it, or minimum_nprobes and others")
        _check_range(self.distance_range)
        low, high = self.probes
        if high is not None and high < low:
            raise InvalidInputError(f"maximum_nprobes is {high}, less than the minimum of {low}")

    @property
    def wanted(self) -> int:
        """How many rows are ranked: those that are skipped too."""
        return self.k + self.offset

    @property
    def probes(self) -> tuple[int, int | None]:
        """How many parts of an index are looked into: at least, and at most while rows are lacking (None: all)."""
        if self.nprobes is not None:
            return self.nprobes, self.nprobes
        least = NPROBES if self.maximum_nprobes is None else min(NPROBES, self.maximum_nprobes)
        return self.minimum_nprobes or least, self.maximum_nprobes

    @property
    def is_limited(self) -> bool:
        """Whether rows may be left out: those that no index covers, or those in parts beyond a number of them."""
        return self.fast_search or self.probes[1] is not None


def is_text(query: object) -> bool:
    """Whether a query is one for full text."""
    return isinstance(query, str) or storage.is_text_query(query)


def vector_query(query: object, column: object, schema: pa.Schema) -> VectorQuery:
    """Vectors in the type of the column; the only vector column if none is named."""
    name = _column(column, schema, is_vector_type, _VECTORS)
    kind = logical_type(schema.field(name).type)
    given = _as_numpy(query, kind)
    if given.ndim not in (1, 2) or not given.shape[-1]:
        raise InvalidInputError("a query vector is a list of numbers, and a batch is a list of such lists")
    if given.shape[-1] != kind.list_size:
        raise InvalidInputError(
            f"the query vector has {given.shape[-1]} numbers, and column {name!r} holds vectors of {kind.list_size}: "
            "give a vector of that length"
        )
    if not np.isfinite(given.astype(np.float64)).all():
        raise InvalidInputError("a query vector with NULL, NaN or infinity is near to nothing: give finite numbers")
    return VectorQuery(column=name, vectors=given.reshape(-1, kind.list_size), many=given.ndim == 2)


def text_query(query: object, column: object, schema: pa.Schema, indexed: Sequence[str] = ()) -> TextQuery:
    """A text and its column; a query of ``lance.query`` names its own.

    If none is named, it is the only one with an index for full text, or the only one that holds text.
    """
    candidates = [field.name for field in schema if is_text_type(field.type) and _is_lance_path(field.name)]
    if isinstance(query, str):
        named = indexed[0] if column is None and len(indexed) == 1 else column
        return TextQuery(query=query, columns=(_column(named, schema, is_text_type, _TEXT),))
    if not storage.is_text_query(query):
        raise InvalidInputError(f"a text query is a string or one of lance.query's classes, not {type(query).__name__}")
    if not candidates:
        raise InvalidInputError("the table has no column that holds text, or none that such a query can name")
    return TextQuery(query=query, columns=tuple(storage.searched_columns(query, candidates)))


def _lance_name(name: str) -> str:
    return physical_name(name, 0, set())


def _is_lance_path(name: str) -> bool:
    """Whether a query of ``lance.query`` can name a column: Lance reserves some names, and reads dots as paths."""
    return all(part and _lance_name(part) == part for part in name.split("."))


def is_vector_type(kind: pa.DataType) -> bool:
    """Whether a column holds vectors that Lance can search."""
    stored = logical_type(kind)
    if not pa.types.is_fixed_size_list(stored):
        return False
    return bool(pa.types.is_floating(stored.value_type) or pa.types.is_uint8(stored.value_type))


def check_metric(metric: str, kind: pa.DataType, name: str) -> None:
    """Refuse a distance that Lance does not know for a column's numbers."""
    value = logical_type(kind).value_type
    fitting = DISTANCE_TYPES[3:] if pa.types.is_uint8(value) else DISTANCE_TYPES[:3]
    if metric not in fitting:
        raise InvalidInputError(
            f"column {name!r} holds vectors of {value}, and there is no {metric} distance of these: use "
            f"distance_type={' or '.join(map(repr, fitting))}"
        )


def is_text_type(kind: pa.DataType) -> bool:
    """Whether a column holds text that Lance can search."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_text_type(kind.value_type) and not pa.types.is_nested(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _column(column: object, schema: pa.Schema, fits: Callable[[pa.DataType], bool], what: str) -> str:
    if column is None:
        found = [field.name for field in schema if fits(field.type)]
        if len(found) == 1:
            return str(found[0])
        if not found:
            known = ", ".join(f"{field.name} ({field.type})" for field in schema)
            raise InvalidInputError(f"the table has no column of {_MEANT[what]}: its columns are {known}")
        raise InvalidInputError(
            f"the table has {len(found)} columns of {what}: it has {', '.join(found)}; name the one to search"
        )
    if not isinstance(column, str) or column not in schema.names:
        raise TableColumnNotFoundError(
            f"there is no column {column!r}: the table has {', '.join(schema.names)}{near(str(column), schema.names)}"
        )
    if not fits(schema.field(column).type):
        raise InvalidInputError(f"column {column!r} is {schema.field(column).type}, and does not hold {_MEANT[what]}")
    return column


def _as_numpy(query: Value, kind: pa.DataType) -> npt.NDArray[np.generic]:
    """Numbers from whatever holds them: lists, numpy, Arrow, torch, pandas, Polars."""
    given = _of_arrow(query)
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Scalar):
        given = given.as_py()
    elif isinstance(given, pa.Array):
        given = given.to_pylist() if pa.types.is_nested(logical_type(given.type)) else given.to_numpy(False)
    if isinstance(given, list | tuple) and any(_is_tensor(each) for each in given):
        given = [_of_tensor(each) for each in given]
    try:
        numbers = np.asarray(_of_tensor(given))
        if numbers.dtype == np.object_ and any(isinstance(each, np.ndarray) for each in numbers):
            numbers = np.stack(list(numbers))
        numbers = numbers.astype(np.float64, casting="unsafe" if numbers.dtype.kind in "OUS" else "same_kind")
    except (TypeError, ValueError):
        raise InvalidInputError(_unusable(query, given)) from None
    if not pa.types.is_uint8(kind.value_type):
        with np.errstate(over="ignore"):
            return numbers.astype(np.float64 if pa.types.is_float64(kind.value_type) else np.float32)
    if ((numbers < 0) | (numbers > 255) | (numbers != np.floor(numbers))).any():
        raise InvalidInputError("the column holds vectors of bytes: give whole numbers from 0 to 255")
    return numbers.astype(np.uint8)


def _of_arrow(given: Value) -> Value:
    """Arrow's array of what gives its data as a column of Arrow's; anything else, as a table of numbers, as it is."""
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return given
    try:
        if hasattr(given, "__arrow_c_stream__"):
            held = pa.chunked_array(given)
        elif hasattr(given, "__arrow_c_array__"):
            held = pa.array(given)
        else:
            return given
    except (TypeError, ValueError, pa.ArrowException):
        return given
    return given if pa.types.is_struct(held.type) else held


def _is_tensor(given: object) -> bool:
    """Whether something has numbers that numpy does not take by itself."""
    return hasattr(given, "detach") or (hasattr(given, "__dlpack__") and not hasattr(given, "__array__"))


def _of_tensor(given: Value) -> Value:
    """The numbers of a tensor, of torch on whatever device and of whatever type; anything else as it is."""
    if not _is_tensor(given):
        return given
    if not hasattr(given, "detach"):
        return np.from_dlpack(given)
    held = given.detach().cpu()
    return (held.double() if hasattr(held, "double") else held).numpy()


def _unusable(query: object, given: object) -> str:
    """What keeps a query from being read as vectors."""
    rows = given if isinstance(given, list | tuple) else []
    if any(row is None for row in rows) and any(isinstance(row, list | tuple) for row in rows):
        return f"vector {list(rows).index(None)} of the batch is NULL: leave it out"
    lengths = sorted({len(row) for row in rows if isinstance(row, list | tuple)})
    if len(lengths) > 1:
        return f"the vectors of the batch have {lengths[0]} to {lengths[-1]} numbers: give vectors of one length"
    return (
        f"the query is a {type(query).__name__}: give a vector of numbers, a batch of them, a text, or a query of "
        "lance.query"
    )


def _check_number(name: str, value: object, *, least: int) -> None:
    if value is None and name != "k":
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidInputError(f"{name} is {value!r}: give a whole number from {least} up")
    if int(value) > _MOST:
        raise InvalidInputError(f"{name} is {value}: no table has so many rows, give at most {_MOST}")


def _check_range(given: object) -> None:
    if given is None:
        return
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise InvalidInputError(f"distance_range is {given!r}: give the least distance and the one to stay below")
    for bound in given:
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, Real) or math.isnan(bound)):
            raise InvalidInputError(f"distance_range has {bound!r}: give numbers, or None for no bound")
