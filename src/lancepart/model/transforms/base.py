"""The interface of every transform; other rooms call these methods and never test for a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import ClassVar, Self

import pyarrow as pa
from lance_namespace_urllib3_client.models.partition_transform import PartitionTransform

from lancepart.errors import InvalidInputError
from lancepart.model.domain import Domain
from lancepart.model.ordering import Ordering
from lancepart.model.transforms.spark_key import SparkKey
from lancepart.model.values import logical_type

MAX_INT32 = 2**31 - 1


class Transform(ABC):
    """How one partition value is computed from its source columns, and what follows from it for filters and joins."""

    __slots__ = ()
    name: ClassVar[str]
    suffix: ClassVar[str]
    takes_many: ClassVar[bool] = False
    """Whether it is computed from any number of columns."""
    is_function: ClassVar[bool] = True
    """Whether filters can call it by its name."""
    is_known: ClassVar[bool] = True
    """Whether anything can be concluded from its values."""
    is_uniform_only: ClassVar[bool] = False
    """Whether equal values of different types give different results."""
    maps_ranges: ClassVar[bool] = False
    """Whether the image of a range is known without trying each value in it."""
    keeps_type: ClassVar[bool] = False
    """Whether its values have the type of the source."""
    keeps_value: ClassVar[bool] = False
    """Whether its value is that of the source, so that every function of the source follows from it."""
    joins_floats: ClassVar[bool] = False
    """Whether both zeros have one value of it, and all NaNs, as they have one partition value."""
    repeated_name: ClassVar[str | None] = None
    """Its name in Spark where a later field has the same one; None if Spark shows several of one name."""
    is_time_part: ClassVar[bool] = False
    """Whether it takes the part of an instant that it is named after."""
    null_type: ClassVar[pa.DataType] = pa.int64()
    """The type that a bare NULL is taken for in a call."""

    @abstractmethod
    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The partition value of each row; NULL where the source is NULL."""

    @abstractmethod
    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of the partition value."""

    @abstractmethod
    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """The same in DataFusion SQL, for columns already quoted; of an unknown type it is taken for text."""

    @abstractmethod
    def accepts(self, source_type: pa.DataType) -> bool:
        """Whether the transform is defined for columns of this type."""

    @property
    def parameters(self) -> tuple[int, ...]:
        """The numbers that it takes beside columns."""
        return tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]

    @classmethod
    def takes_number(cls) -> bool:
        """Whether it takes a number beside columns."""
        return bool(fields(cls))  # type: ignore[arg-type]

    def check(self, source_types: Sequence[pa.DataType]) -> None:
        """Refuse sources that the transform is not defined for."""
        if self.takes_many and not source_types:
            raise InvalidInputError(f"{self.name} takes at least one column")
        if not self.takes_many and len(source_types) != 1:
            raise InvalidInputError(f"{self.name} takes exactly one column, not {len(source_types)}")
        for source_type in source_types:
            if not (pa.types.is_null(source_type) or self.accepts(logical_type(source_type))):
                raise InvalidInputError(f"{self.name} is not defined for columns of type {source_type}")

    def is_inexact(self, source_type: pa.DataType) -> bool:
        """Whether other clients may store such values, which can't be computed exactly."""
        return False

    def call(self, arguments: Sequence[str]) -> str:
        """The transform as filters and Spark call it, over arguments that are SQL."""
        return f"{self.name}({', '.join([*map(str, self.parameters), *arguments])})"

    def spelled(self, columns: Sequence[str]) -> str:
        """The transform as ``partition_by`` spells it."""
        return self.call(columns)

    @property
    def spark_function(self) -> str | None:
        """The function of the jar that groups values as this transform does; None if the jar has none."""
        return self.name

    def spark_key(self, beside: Collection[Transform]) -> SparkKey | None:
        """The key that Spark can group leaves by, with the transforms beside it over the same column; None if none."""
        return None if self.spark_function is None else SparkKey(self, self.spark_function)

    def image(self, domain: Domain, target: Ordering, *, any_zone: bool = False) -> Domain | None:
        """The partition values of a domain of source values, where ``maps_ranges``; None when nothing is known."""
        return None

    def any_image(self, domains: Sequence[Domain | None], target: Ordering) -> Domain | None:
        """The possible partition values when the source values are too many to try each."""
        return None

    def preimage(self, domain: Domain, order: Ordering) -> Domain | None:
        """The source values whose partition values lie in a domain, where the transform never reorders values."""
        return None

    def source_span(self, value: int) -> tuple[int, int] | None:
        """The whole numbers that become a value, as a span without its end, where they are one span."""
        return None

    def agrees(self, left_type: pa.DataType, right_type: pa.DataType) -> bool:
        """Whether values that are equal across two types of columns have equal partition values."""
        return not self.is_uniform_only or logical_type(left_type) == logical_type(right_type)

    def coarser(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """The finest transform that is a function of both this one and another, if there is one."""
        return self if self == other else None

    def reduced(self, values: pa.Array, coarser: Transform) -> pa.Array | None:
        """The values of a coarser transform, computed from those of this one; None if it is not coarser."""
        return values if self == coarser else None

    def to_json(self) -> PartitionTransform:
        """The transform as its model.

        >>> from lancepart.model.transforms import Bucket
        >>> Bucket(num_buckets=16).to_json().to_dict()
        {'type': 'bucket', 'num_buckets': 16}
        """
        return PartitionTransform(type=self.name, **{f.name: getattr(self, f.name) for f in fields(self)})  # type: ignore[arg-type]

    def _same_kind(self, other: Transform | None) -> Self | None:
        return other if type(other) is type(self) else None


def check_positive(transform: str, name: str, value: int) -> None:
    """Insist on a parameter that counts."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INT32:
        raise InvalidInputError(f"{transform} needs {name} between 1 and {MAX_INT32}, not {value!r}")
