"""Hash buckets: a partition holds the rows whose hash leaves one remainder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model import hashing
from lancepart.model.aliases import Value
from lancepart.model.domain import Domain
from lancepart.model.join_keys import hash_alike
from lancepart.model.ordering import Ordering
from lancepart.model.transforms.base import Transform, check_positive
from lancepart.model.transforms.spark_key import SparkKey


@dataclass(frozen=True, slots=True)
class BucketKey(SparkKey):
    """A bucket of many, which is a bucket of fewer where their number divides it."""

    def finest(self, other: SparkKey) -> SparkKey:
        """The one of more buckets."""
        return other if other.number > self.number else self

    def common(self, other: SparkKey) -> SparkKey | None:
        """As many buckets as divide both numbers."""
        number = gcd(self.number, other.number)
        return replace(self, number=number) if number > 1 else None

    def yields(self, function: str, number: int) -> bool:
        """Whether the number of buckets divides its own."""
        return function == self.function and self.number % number == 0

    def value(self, function: str, number: int, values: Mapping[Transform, Value]) -> Value:
        """The remainder of the remainder."""
        found = values[self.transform]
        return None if found is None else found % number


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """One of ``num_buckets`` numbers, by the value's hash.

    >>> Bucket(num_buckets=16).apply([pa.array([34, None])]).to_pylist()
    [3, None]
    """

    num_buckets: int
    name = "bucket"
    suffix = "bucket"
    joins_floats = True
    repeated_name: ClassVar[str | None] = "multi_bucket"

    def __post_init__(self) -> None:
        check_positive(self.name, "num_buckets", self.num_buckets)

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The bucket as int32."""
        return hashing.bucket(arrays[0], self.num_buckets)

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Always int32."""
        return pa.int32()

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """By the ``murmur3`` function."""
        return f"abs(murmur3({columns[0]})) % {self.num_buckets}"

    def accepts(self, source_type: pa.DataType) -> bool:
        """Everything that is not nested."""
        return hashing.hashable(source_type)

    @property
    def spark_function(self) -> str | None:
        """One function, whatever the number of columns: of a single one both kinds of buckets are the same."""
        return "bucket"

    def spark_key(self, beside: Collection[Transform]) -> SparkKey | None:
        """The bucket; a single one says nothing."""
        function = self.spark_function
        return None if function is None or self.num_buckets == 1 else BucketKey(self, function, self.num_buckets)

    def any_image(self, domains: Sequence[Domain | None], target: Ordering) -> Domain | None:
        """Any bucket, and no bucket at all only where every source may be NULL."""
        if all(domain is None or domain.null for domain in domains):
            return None
        return Domain.only_null(target).complement()

    def agrees(self, left_type: pa.DataType, right_type: pa.DataType) -> bool:
        """Whether both types are hashed alike."""
        return hash_alike(left_type, right_type)

    def coarser(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """As many buckets as divide both numbers."""
        same = self._same_kind(other)
        number = 1 if same is None else gcd(self.num_buckets, same.num_buckets)
        return type(self)(num_buckets=number) if number > 1 else self if self == other else None

    def reduced(self, values: pa.Array, coarser: Transform) -> pa.Array | None:
        """The remainder of the remainder."""
        same = self._same_kind(coarser)
        if same is None or self.num_buckets % same.num_buckets:
            return None
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        return pa.array(numbers % same.num_buckets, mask=values.is_null().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class MultiBucket(Bucket):
    """One of ``num_buckets`` numbers, by the hash of all columns that are not NULL."""

    name = "multi_bucket"
    suffix = "multi_bucket"
    repeated_name = None
    takes_many = True

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The bucket as int32."""
        return hashing.multi_bucket(arrays, self.num_buckets)

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """By the ``murmur3_multi`` function."""
        return f"abs(murmur3_multi({', '.join(columns)})) % {self.num_buckets}"
