"""A lazy search: the nearest vectors, the best full-text matches, or both, over the partitions that a filter leaves."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.layout.declared_indices import TEXT_KIND, declared, text_params
from lancepart.model.aliases import JsonMapping
from lancepart.model.public import public
from lancepart.model.schema import field_id
from lancepart.model.values import logical_type
from lancepart.read import row_ids
from lancepart.read.hits import Hits
from lancepart.read.rerank import RELEVANCE, ROW_ID, Reranker, check_reranker, reranked
from lancepart.read.result import Result
from lancepart.read.scan import Scan
from lancepart.read.search_request import (
    Options,
    TextQuery,
    VectorQuery,
    check_metric,
    is_text,
    text_query,
    vector_query,
)
from lancepart.read.search_run import QUERY_INDEX, SearchRun, shared
from lancepart.storage.search import DISTANCE, SCORE

_VECTOR_ONLY = (
    "distance_type",
    "nprobes",
    "minimum_nprobes",
    "maximum_nprobes",
    "refine_factor",
    "ef",
    "distance_range",
)


RANKING = frozenset({QUERY_INDEX, DISTANCE, SCORE, RELEVANCE, ROW_ID})
"""The columns that searches add."""


@public("explain", "recall", "seconds")
@dataclass(frozen=True, kw_only=True)
class Search(Result):
    """The best rows of a table at one snapshot; ``seconds`` has the timings after a search."""

    scan: Scan
    options: Options
    vector: VectorQuery | None = None
    text: TextQuery | None = None
    reranker: Reranker | None = None
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """After a search, how long each of its steps took."""

    def __post_init__(self) -> None:
        one = {QUERY_INDEX, DISTANCE} if self.vector else {SCORE}
        added = RANKING if self.vector and self.text else one
        taken = [name for name in self.scan.schema.names if name in added]
        if taken:
            raise InvalidInputError(
                f"the table has a column {taken[0]!r} of its own, as a search adds one: choose others by columns=[…]"
            )

    @classmethod
    def of(
        cls,
        scan: Scan,
        query: object,
        column: object = None,
        *,
        hybrid: object = None,
        reranker: Reranker | None = None,
        options: JsonMapping,
    ) -> Search:
        """Check the arguments; nothing is read yet."""
        known = sorted(each.name for each in fields(Options))
        unknown = [name for name in options if name not in known]
        if unknown:
            raise InvalidInputError(f"search knows no option {unknown[0]!r}: there are {', '.join(known)}")
        checked = Options(**options)
        if checked.with_row_id:
            row_ids.refuse_taken(scan.metadata.plain_schema.names)
        schema = scan.metadata.plain_schema
        if (query is None) == (hybrid is None):
            raise InvalidInputError("give a query, or hybrid=(vector, text)")
        if hybrid is not None:
            return cls._hybrid(scan, hybrid, column, reranker, checked)
        if reranker is not None:
            raise InvalidInputError("a reranker needs two rankings: search with hybrid=(vector, text)")
        if is_text(query):
            given = [name for name in _VECTOR_ONLY if getattr(checked, name) is not None]
            if given:
                raise InvalidInputError(f"{given[0]} is about vectors, and the query is a text")
            return cls(scan=scan, options=checked, text=text_query(query, column, schema, _indexed(scan)))
        return cls(scan=scan, options=checked, vector=vector_query(query, column, schema))._checked()

    @classmethod
    def _hybrid(cls, scan: Scan, hybrid: object, column: object, reranker: Reranker | None, options: Options) -> Search:
        if not isinstance(hybrid, tuple | list) or len(hybrid) != 2 or not is_text(hybrid[1]):
            raise InvalidInputError("hybrid is a pair of a vector and a text, as in hybrid=([0.1, 0.2], 'words')")
        if column is not None and (not isinstance(column, tuple | list) or len(column) != 2):
            raise InvalidInputError("a hybrid search needs two columns: column=('vector', 'text')")
        check_reranker(reranker)
        schema, (one, other) = scan.metadata.plain_schema, column or (None, None)
        vector = vector_query(hybrid[0], one, schema)
        if vector.many:
            raise InvalidInputError("a hybrid search takes one vector, not a batch")
        return cls(
            scan=scan,
            options=options,
            vector=vector,
            text=text_query(hybrid[1], other, schema, _indexed(scan)),
            reranker=reranker,
        )._checked()

    def _checked(self) -> Search:
        """The same search, if the column's vectors have such a distance."""
        assert self.vector is not None
        check_metric(self.metric, self.scan.metadata.schema.field(self.vector.column).type, self.vector.column)
        return self

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows: the table's columns, and what ranks them."""
        ranked = DISTANCE if self.text is None else SCORE if self.vector is None else RELEVANCE
        many = [pa.field(QUERY_INDEX, pa.int32())] if self.vector is not None and self.vector.many else []
        ids = [row_ids.FIELD] if self.options.with_row_id else []
        return pa.schema([*many, *self.scan.schema, pa.field(ranked, pa.float32()), *ids])

    @cached_property
    def metric(self) -> str:
        """The distance type: the one given, that of the column's index, or the default for its type."""
        assert self.vector is not None
        if self.options.distance_type is not None:
            return self.options.distance_type
        column = self.scan.metadata.schema.field(self.vector.column)
        for index in declared(self.scan.snapshot):
            if index.column == field_id(column) and "metric" in index.params:
                return str(index.params["metric"]).lower().replace("euclidean", "l2")
        return "hamming" if pa.types.is_uint8(logical_type(column.type).value_type) else "l2"

    @cached_property
    def _run(self) -> SearchRun:
        return SearchRun(self.scan, self.options)

    def to_arrow(self) -> pa.Table:
        """The best rows as a table, the best first."""
        run, options = self._run, self.options
        if self.vector is not None and self.text is not None:
            wider = replace(options, k=options.wanted, offset=0)
            ranked = run.nearest(self.vector, wider, self.metric), run.matches(self.text, wider, self._tokenizers)
            rows = self._fused(*ranked).slice(options.offset, options.k)
            numbers = rows.column(ROW_ID)
            rows = rows.drop_columns([ROW_ID])
            rows = rows.append_column(row_ids.FIELD, numbers) if options.with_row_id else rows
        else:
            hits, value = self._ranked()
            rows = run.shown(hits, value, many=self.vector is not None and self.vector.many)
            rows = rows.append_column(row_ids.FIELD, pa.array(run.row_ids(hits))) if options.with_row_id else rows
        self.seconds.update(run.seconds)
        return rows

    def _ranked(self) -> tuple[Hits, str]:
        """The best rows of a search of one kind, and the column that ranks them."""
        if self.text is not None:
            return self._run.matches(self.text, self.options, self._tokenizers), SCORE
        assert self.vector is not None
        return self._run.nearest(self.vector, self.options, self.metric), DISTANCE

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The best rows, batch by batch."""
        yield from self.to_arrow().to_batches()

    def _fused(self, near: Hits, matched: Hits) -> pa.Table:
        """Two rankings as one; a row that is in both has one id there."""
        assert self.text is not None
        both = Hits.together([near, matched])
        _, ids = np.unique(np.stack([both.leaf.astype(np.uint64), both.address]), axis=1, return_inverse=True)
        numbers = self._run.row_ids(both) if self.options.with_row_id else ids.reshape(-1).astype(np.uint64)
        vector = self._run.shown(near, DISTANCE).append_column(ROW_ID, pa.array(numbers[: len(near)]))
        fts = self._run.shown(matched, SCORE).append_column(ROW_ID, pa.array(numbers[len(near) :]))
        text = self.text.query if isinstance(self.text.query, str) else ""
        return reranked(self.reranker, text, vector, fts)

    @cached_property
    def _tokenizers(self) -> dict[str, JsonMapping]:
        """How the texts of columns are made into words: as their declared index does, or in Lance's usual way."""
        assert self.text is not None
        known = text_params(declared(self.scan.snapshot))
        numbers = {name: field_id(self.scan.metadata.schema.field(name)) for name in self.text.columns}
        return {name: known[number] for name, number in numbers.items() if number in known}

    def recall(self, n: int = 100) -> float:
        """The share of the truly nearest rows that a search like this finds, for n vectors drawn from the table."""
        if self.vector is None or self.text is not None:
            raise InvalidInputError("recall is of vectors: texts are always searched exactly")
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidInputError(f"n is {n!r}: give a whole number from 1 up")
        drawn = self._run.sample(self.vector.column, n)
        if not len(drawn):
            return 1.0
        query = VectorQuery(column=self.vector.column, vectors=drawn, many=True)
        plain = replace(self.options, offset=0, prefilter=True)
        exact = self._run.nearest(query, replace(plain, exact=True, fast_search=False), self.metric)
        found = self._run.nearest(query, plain, self.metric)
        return shared(exact, found, len(drawn))

    def explain(self) -> str:
        """Which leaves are searched, by which index or row by row, and which are skipped."""
        lines = [self.scan.explain(), "", repr(self)]
        if self.vector is not None:
            lines += self._run.explain(self.vector, self.options, self.metric)
        if self.text is not None:
            lines.append(
                f"text: scores of the {self.options.statistics}, {self._run.explain_text(self.text, self.options)}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        targets = [repr(self.vector.column)] if self.vector is not None else []
        targets += [", ".join(map(repr, self.text.columns))] if self.text is not None else []
        where = "" if self.scan.where is None else f", where={self.scan.sql!r}"
        return f"Search({' and '.join(targets)}, k={self.options.k}{where})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def _indexed(scan: Scan) -> list[str]:
    """The columns with a declared index for full text."""
    numbers = {index.column for index in declared(scan.snapshot) if index.kind == TEXT_KIND}
    return [field.name for field in scan.metadata.schema if field_id(field) in numbers]
