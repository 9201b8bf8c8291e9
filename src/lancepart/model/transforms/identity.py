"""The identity transform: a partition holds the rows of one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancepart.model import hashing
from lancepart.model.domain import Domain
from lancepart.model.narrowing import closed, narrowed
from lancepart.model.ordering import Ordering
from lancepart.model.transforms.base import Transform
from lancepart.model.values import canonical, decoded, logical_type


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The value itself, with one zero and one NaN.

    >>> Identity().apply([pa.array([-0.0, None])]).to_pylist()
    [0.0, None]
    """

    name = "identity"
    suffix = ""
    is_function = False
    maps_ranges = True
    keeps_type = True
    keeps_value = True

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The values, decoded."""
        return canonical(decoded(arrays[0]))

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """The source's own, without its encoding."""
        return logical_type(source_types[0])

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """The column."""
        return columns[0]

    def accepts(self, source_type: pa.DataType) -> bool:
        """Everything that has an order and an equality of its own."""
        return hashing.hashable(source_type) or pa.types.is_duration(source_type)

    def call(self, arguments: Sequence[str]) -> str:
        """The argument."""
        return arguments[0] if arguments else f"{self.name}()"

    def spelled(self, columns: Sequence[str]) -> str:
        """The column."""
        return columns[0]

    def image(self, domain: Domain, target: Ordering, *, any_zone: bool = False) -> Domain | None:
        """The same values, in the type of the partition values."""
        return narrowed(closed(domain), target)
