"""The filters of a table's scans in an optimized plan, and whether they keep many rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datafusion import SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from lancepart.errors import reraise_interrupt
from lancepart.model.aliases import RawExpr

_FEW = 0.03
_MANY = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFilter:
    """What one scan of a table is filtered by; ``columns`` are those that the filters read, ``wide`` if it reads others
    that are large, such as vectors. ``projected`` are the columns that it gives.
    """

    table: str
    filters: tuple[RawExpr, ...]
    columns: tuple[str, ...]
    projected: tuple[str, ...]
    wide: bool

    @classmethod
    def of(cls, table: str, filters: Sequence[RawExpr], projected: Sequence[str], schema: pa.Schema) -> ScanFilter:
        """The filters of a scan and the columns that it gives; a name that may be a column's counts as read."""
        words = set(re.findall(r"\w+", " ".join(map(str, filters))))
        columns = tuple(name for name in schema.names if set(re.findall(r"\w+", name)) & words)
        wide = any(_is_wide(schema.field(name).type) for name in projected if name not in columns)
        return cls(table=table, filters=tuple(filters), columns=columns, projected=tuple(projected), wide=wide)

    @property
    def text(self) -> str:
        """The filters as text."""
        return " AND ".join(map(str, self.filters))

    def keeps_many(self, rows: pa.Table) -> bool:
        """Whether so many of some rows, sampled in order, match that reading all and then filtering is faster.

        Lance reads the other columns of the rows that match: that pays if they are few, or close to each other.
        """
        found = self._matches(rows)
        share = found.mean() if len(found) else 0.0
        if share < _FEW:
            return False
        followed = (found[1:] & found[:-1]).sum() / max(1, found[:-1].sum())
        return bool(share / max(followed, share) > _MANY)

    def _matches(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """For each row whether it matches; none if that can't be found out."""
        context = SessionContext()
        context.register_record_batches(self.table, [rows.to_batches(max_chunksize=max(1, rows.num_rows))])
        matches = [Expr(each).alias(str(index)) for index, each in enumerate(self.filters)]
        try:
            found = context.table(self.table).select(*matches).to_arrow_table()
        except Exception as error:
            reraise_interrupt(error)
            return np.zeros(0, dtype=np.bool_)
        matching = np.ones(rows.num_rows, dtype=np.bool_)
        for column in found.columns:
            matching &= column.fill_null(False).to_numpy()
        return matching


def _is_wide(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_nested)
    return any(test(kind) for test in tests)


def scans_of(plan: LogicalPlan, schemas: Mapping[str, pa.Schema]) -> Iterator[ScanFilter]:
    """Each scan of a table with the filters right above it; the tables are given by their dotted names.

    Functions that give rows, and the working tables of recursive queries, are scanned too, and are none of them.
    """
    yield from _scans(plan, (), schemas)


def _scans(plan: LogicalPlan, above: Sequence[RawExpr], schemas: Mapping[str, pa.Schema]) -> Iterator[ScanFilter]:
    variant = plan.to_variant()
    kind = type(variant).__name__
    if kind == "TableScan":
        table = ".".join(part for part in variant.fqn() if part is not None)
        if table not in schemas:
            return
        projected = [name for _, name in variant.projection()]
        yield ScanFilter.of(table, [*above, *variant.filters()], projected, schemas[table])
        return
    passed = [*above, variant.predicate()] if kind == "Filter" else []
    for inner in plan.inputs():
        yield from _scans(inner, passed, schemas)
