"""Type aliases: choices by name, JSON, and values of columns as Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON that was just read or is about to be written."""

JsonMapping: TypeAlias = Mapping[str, Any]
"""The same where it is only read."""

Value: TypeAlias = Any
"""A value of a column as Python holds it: a number, a text, a date, a list, None."""

RowSource: TypeAlias = object
"""Rows that a user gives: anything with Arrow inside, a list of dicts, a frame of pandas, polars or Spark."""


Transactions: TypeAlias = Literal["strong", "weak"]
"""Whether a commit is atomic over all partitions, or only in each."""

TableLayout: TypeAlias = Literal["manifest", "hive"]
"""How a new table is laid out on disk."""

Isolation: TypeAlias = Literal["snapshot", "serializable"]
"""Whether what a transaction read must be unchanged when it commits."""

JoinType: TypeAlias = Literal[
    "inner",
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "left_outer",
    "right_outer",
    "outer",
    "full_outer",
    "left_semi",
    "left_anti",
]
"""Which rows a join gives; Spark's names are synonyms."""

Distribution: TypeAlias = Literal["auto", "hash", "none"]
"""Whether the rows of a Spark DataFrame are brought together by partition before they are written."""

FileFormat: TypeAlias = Literal["parquet", "csv", "json", "arrow", "lance"]
"""The formats of files that are loaded."""

IndexKind: TypeAlias = Literal[
    "BTREE",
    "BITMAP",
    "BLOOMFILTER",
    "ZONEMAP",
    "LABEL_LIST",
    "INVERTED",
    "FTS",
    "NGRAM",
    "IVF_FLAT",
    "IVF_SQ",
    "IVF_PQ",
    "IVF_RQ",
    "IVF_HNSW_FLAT",
    "IVF_HNSW_SQ",
    "IVF_HNSW_PQ",
]
"""The kinds of indices."""

IndexScope: TypeAlias = Literal["auto", "leaf", "table"]
"""Where an index is built: in each leaf, over the whole table, or wherever it serves."""

DistanceType: TypeAlias = Literal["l2", "cosine", "dot", "hamming"]
"""How far two vectors are apart."""

Statistics: TypeAlias = Literal["table", "partition"]
"""Whose texts the scores of a text search are relative to."""


class JsonModel(Protocol):
    """A model of ``lance_namespace``, which can spell itself as a dict."""

    def to_dict(self) -> JsonObject:
        """The model as a JSON object."""


RawExpr: TypeAlias = Any
"""A node of a parsed expression as DataFusion's own library holds it, which has no types."""
