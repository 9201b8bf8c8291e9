"""A table as a Polars LazyFrame: predicates prune partitions, and only the columns that a query needs are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lancepart.model.optional import require
from lancepart.model.polars_filter import from_polars
from lancepart.read.scan import Scan

if TYPE_CHECKING:
    import polars as pl


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """The rows of a scan, read when the frame is collected; its snapshot is that of the scan."""
    require("polars", "a LazyFrame of Polars")
    import polars as pl
    from polars.io.plugins import register_io_source

    empty = pl.from_arrow(scan.schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return register_io_source(_source(scan), schema=empty.schema, is_pure=True)


Source = Callable[["list[str] | None", "pl.Expr | None", "int | None", "int | None"], "Iterator[pl.DataFrame]"]


def _source(scan: Scan) -> Source:
    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        import polars as pl

        narrowed = _narrowed(scan, with_columns, predicate, n_rows if predicate is None else None)
        shown = with_columns if with_columns is not None else scan.schema.names
        left = n_rows
        for batch in narrowed.to_batches():
            frame = pl.DataFrame(batch)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame.select(shown)
            if left == 0:
                return

    return read


def _narrowed(scan: Scan, columns: list[str] | None, predicate: pl.Expr | None, limit: int | None) -> Scan:
    """The scan of no more rows and columns than are needed; the predicate is applied again to its rows."""
    where = None if predicate is None else from_polars(predicate, scan.schema, loosely=True)
    both = " AND ".join(f"({part})" for part in (scan.sql, where) if part is not None) or None
    used = [] if predicate is None else predicate.meta.root_names()
    named = scan.schema.names if columns is None else list(dict.fromkeys([*columns, *used]))
    read = tuple(named) or tuple(scan.schema.names[:1])
    least = limit if scan.limit is None else scan.limit if limit is None else min(limit, scan.limit)
    return replace(scan, columns=read, where=both, limit=least)
