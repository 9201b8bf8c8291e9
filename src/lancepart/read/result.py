"""What every lazy result can do: become Arrow, pandas or Polars, be counted, and stream into other engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.model.aliases import JsonObject
from lancepart.model.optional import require

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Result(ABC):
    """Rows that are computed when they are read, and computed again each time."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that can be read once; nothing is read before its first batch is."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as a table."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame."""
        require("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars DataFrame."""
        require("polars", "to_polars()")
        import polars as pl

        self._refuse_equal_names()
        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame)
        return found

    def to_list(self) -> list[JsonObject]:
        """All rows as dicts."""
        self._refuse_equal_names()
        rows: list[JsonObject] = self.to_arrow().to_pylist()
        return rows

    def _refuse_equal_names(self) -> None:
        """Refuse columns of one name, of which a dict or a Polars frame would hold only one."""
        names = self.schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidInputError(
                f"{names.count(twice)} columns are called {twice!r}: give them different names, as in "
                f"SELECT a.{twice} AS a_{twice}, or use to_arrow()"
            )

    def count(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self.to_batches())

    def count_rows(self) -> int:
        """How many rows there are, under the name that Lance and pyarrow have for it."""
        return self.count()

    def __reduce__(self) -> str | tuple[object, ...]:
        """Refuse to be pickled: rows of several tables, and of temporary ones, are computed where they are."""
        kind = type(self).__name__
        raise UnsupportedOperationError(
            f"a {kind} is not pickled: pickle the tables and make it there, or pickle its rows, to_arrow()"
        )

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that reads Arrow's C stream; each call reads them again."""
        return self.to_reader().__arrow_c_stream__(requested_schema)
