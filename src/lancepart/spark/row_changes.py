"""The rows of a statement that changes some, as tasks get them: new ones, and the identities of those that go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark.types import from_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The rows that a task deletes: their addresses, by the identity of what they are in."""

    found: dict[int, list[npt.NDArray[np.uint64]]] = field(default_factory=lambda: defaultdict(list))

    def split(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The new rows among all; the addresses of the others are collected. A statement may only bring new ones."""
        for batch in batches:
            if LEAF not in batch.schema.names:
                yield from_spark(batch, schema)
                continue
            going = pc.is_valid(batch.column(LEAF))
            old = batch.select([LEAF, ADDRESS]).filter(going)
            leaves, addresses = (old.column(name).to_numpy() for name in (LEAF, ADDRESS))
            for leaf in np.unique(leaves):
                self.found[int(leaf)].append(addresses[leaves == leaf].astype(np.uint64))
            rows = batch.select(schema.names).filter(pc.invert(going))
            if rows.num_rows:
                yield from_spark(rows, schema)

    def addresses(self) -> dict[int, npt.NDArray[np.uint64]]:
        """What was collected."""
        return {leaf: np.concatenate(found) for leaf, found in self.found.items()}
