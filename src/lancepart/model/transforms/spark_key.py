"""What Spark groups leaves by: a function of the jar whose value is the same for every row of a leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lancepart.model.aliases import Value

if TYPE_CHECKING:
    from lancepart.model.transforms.base import Transform


@dataclass(frozen=True, slots=True)
class SparkKey:
    """The key that a transform gives: as it is here, its own partition value under its function's name."""

    transform: Transform
    function: str
    number: int = 0
    """The number that the function takes beside the column; 0 if it takes none."""

    @property
    def family(self) -> str:
        """The name that keys share which can be reduced to a common one."""
        return self.function

    def finest(self, other: SparkKey) -> SparkKey:
        """Of two keys of a family in one spec the one to report."""
        return self

    def common(self, other: SparkKey) -> SparkKey | None:
        """The finest key that follows from two of a family, in two specs; None if nothing is left of them."""
        return self

    def yields(self, function: str, number: int) -> bool:
        """Whether the value of a function follows from this key."""
        return function == self.function

    def value(self, function: str, number: int, values: Mapping[Transform, Value]) -> Value:
        """The value of such a function for a leaf, by the partition values over the column."""
        return values[self.transform]
