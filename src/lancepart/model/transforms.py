"""The well-known transforms: one small class each, all in UTC and blind to a value's width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance_namespace_urllib3_client.models.partition_transform import PartitionTransform

from lancepart.errors import InvalidInputError
from lancepart.model import hashing
from lancepart.model.values import canonical, decoded, logical_type, truncated_decimals, truncated_integers

_MAX_INT32 = 2**31 - 1


class Transform(ABC):
    """How one partition value is computed from its source columns."""

    __slots__ = ()
    name: ClassVar[str]
    suffix: ClassVar[str]

    @abstractmethod
    def apply(self, arrays: Sequence[Any]) -> Any:
        """The partition value of each row; NULL where the source is NULL."""

    @abstractmethod
    def result_type(self, source_types: Sequence[Any]) -> Any:
        """The type of the partition value."""

    @abstractmethod
    def sql(self, columns: Sequence[str]) -> str:
        """The same in DataFusion SQL, for columns already quoted."""

    @abstractmethod
    def accepts(self, source_type: Any) -> bool:
        """Whether the transform is defined for columns of this type."""

    def check(self, source_types: Sequence[Any]) -> None:
        """Refuse sources that the transform is not defined for."""
        if len(source_types) != 1:
            raise InvalidInputError(f"{self.name} takes exactly one column, not {len(source_types)}")
        self._check_types(source_types)

    def _check_types(self, source_types: Sequence[Any]) -> None:
        for source_type in source_types:
            if not (pa.types.is_null(source_type) or self.accepts(logical_type(source_type))):
                raise InvalidInputError(f"{self.name} is not defined for columns of type {source_type}")

    def to_json(self) -> PartitionTransform:
        """The model that stands in a partition spec.

        >>> Bucket(num_buckets=16).to_json().to_dict()
        {'type': 'bucket', 'num_buckets': 16}
        """
        return PartitionTransform(type=self.name, **{f.name: getattr(self, f.name) for f in fields(self)})  # type: ignore[arg-type]

    @staticmethod
    def from_json(spelled: PartitionTransform | Mapping[str, Any]) -> Transform:
        """The transform that a model describes, unknown and missing parameters refused.

        >>> Transform.from_json({"type": "truncate", "width": 3})
        Truncate(width=3)
        """
        given = spelled.to_dict() if isinstance(spelled, PartitionTransform) else dict(spelled)
        kind = TRANSFORMS.get(str(given.pop("type", None)))
        if kind is None:
            known = ", ".join(TRANSFORMS)
            raise InvalidInputError(f"unknown transform {spelled!r}; known are {known}; anything else is an expression")
        wanted = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        if set(given) != wanted:
            raise InvalidInputError(f"{kind.name} takes {sorted(wanted) or 'no parameters'}, not {sorted(given)}")
        return kind(**given)


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The value itself, with one zero and one NaN.

    >>> Identity().apply([pa.array([-0.0, None])]).to_pylist()
    [0.0, None]
    """

    name = "identity"
    suffix = ""

    def apply(self, arrays: Sequence[Any]) -> Any:
        """The values, decoded."""
        return canonical(decoded(arrays[0]))

    def result_type(self, source_types: Sequence[Any]) -> Any:
        """The source's own, without its encoding."""
        return logical_type(source_types[0])

    def sql(self, columns: Sequence[str]) -> str:
        """The column."""
        return columns[0]

    def accepts(self, source_type: Any) -> bool:
        """Everything that has an order and an equality of its own."""
        return hashing.hashable(source_type) or pa.types.is_duration(source_type)


class _TimePart(Transform):
    """A part of a date or timestamp, in UTC."""

    __slots__ = ()

    def apply(self, arrays: Sequence[Any]) -> Any:
        """The part as int32."""
        array = decoded(arrays[0])
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), pa.int32())
        if pa.types.is_timestamp(array.type):
            array = array.cast(pa.timestamp(array.type.unit))
        return self.part(array).cast(pa.int32())

    def part(self, array: Any) -> Any:
        """The part of dates or timestamps without a zone."""
        return getattr(pc, self.name)(array)

    def result_type(self, source_types: Sequence[Any]) -> Any:
        """Always int32."""
        return pa.int32()

    def sql(self, columns: Sequence[str]) -> str:
        """DataFusion's ``date_part``."""
        return f"date_part('{self.name}', {columns[0]})"

    def accepts(self, source_type: Any) -> bool:
        """Dates and timestamps."""
        return bool(pa.types.is_timestamp(source_type) or pa.types.is_date(source_type))


@dataclass(frozen=True, slots=True)
class Year(_TimePart):
    """The year.

    >>> Year().apply([pa.array([-1], pa.date32())]).to_pylist()
    [1969]
    """

    name = "year"
    suffix = "year"

    def part(self, array: Any) -> Any:
        """The year, also where Arrow's own function leaves the range that it can tell."""
        unit = array.type.unit if pa.types.is_timestamp(array.type) else "D" if pa.types.is_date32(array.type) else "ms"
        plain = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
        numbers = pc.fill_null(plain.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        years = numbers.view(f"datetime64[{unit}]").astype("datetime64[Y]").astype(np.int64) + 1970
        return pa.array(years, mask=array.is_null().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class Month(_TimePart):
    """The month of the year, 1 to 12."""

    name = "month"
    suffix = "month"


@dataclass(frozen=True, slots=True)
class Day(_TimePart):
    """The day of the month, 1 to 31."""

    name = "day"
    suffix = "day"


@dataclass(frozen=True, slots=True)
class Hour(_TimePart):
    """The hour of the day, 0 to 23."""

    name = "hour"
    suffix = "hour"

    def accepts(self, source_type: Any) -> bool:
        """Timestamps: a date has no hour."""
        return bool(pa.types.is_timestamp(source_type))


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """One of ``num_buckets`` numbers, by the value's hash.

    >>> Bucket(num_buckets=16).apply([pa.array([34, None])]).to_pylist()
    [3, None]
    """

    num_buckets: int
    name = "bucket"
    suffix = "bucket"

    def __post_init__(self) -> None:
        _check_positive(self.name, "num_buckets", self.num_buckets)

    def apply(self, arrays: Sequence[Any]) -> Any:
        """The bucket as int32."""
        return hashing.bucket(arrays[0], self.num_buckets)

    def result_type(self, source_types: Sequence[Any]) -> Any:
        """Always int32."""
        return pa.int32()

    def sql(self, columns: Sequence[str]) -> str:
        """By the ``murmur3`` function."""
        return f"abs(murmur3({columns[0]})) % {self.num_buckets}"

    def accepts(self, source_type: Any) -> bool:
        """Everything that is not nested."""
        return hashing.hashable(source_type)


@dataclass(frozen=True, slots=True)
class MultiBucket(Bucket):
    """One of ``num_buckets`` numbers, by the hash of all columns that are not NULL."""

    name = "multi_bucket"
    suffix = "multi_bucket"

    def check(self, source_types: Sequence[Any]) -> None:
        """Any number of columns, but at least one."""
        if not source_types:
            raise InvalidInputError(f"{self.name} takes at least one column")
        self._check_types(source_types)

    def apply(self, arrays: Sequence[Any]) -> Any:
        """The bucket as int32."""
        return hashing.multi_bucket(arrays, self.num_buckets)

    def sql(self, columns: Sequence[str]) -> str:
        """By the ``murmur3_multi`` function."""
        return f"abs(murmur3_multi({', '.join(columns)})) % {self.num_buckets}"


@dataclass(frozen=True, slots=True)
class Truncate(Transform):
    """The first ``width`` characters of a text, or a number without its remainder by ``width``.

    >>> Truncate(width=10).apply([pa.array([-7, 17, -17])]).to_pylist()
    [0, 10, -10]
    >>> Truncate(width=2).apply([pa.array(["héllo"])]).to_pylist()
    ['hé']
    """

    width: int
    name = "truncate"
    suffix = "trunc"

    def __post_init__(self) -> None:
        _check_positive(self.name, "width", self.width)

    def apply(self, arrays: Sequence[Any]) -> Any:
        """The shortened values, in the source's type."""
        array = decoded(arrays[0])
        kind = array.type
        if pa.types.is_null(kind):
            return array
        if pa.types.is_integer(kind):
            return truncated_integers(array, self.width)
        if pa.types.is_decimal(kind):
            return truncated_decimals(array, self.width)
        if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
            array = array.cast(logical_type(kind))
        text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
        return pc.utf8_slice_codeunits(array, 0, self.width) if text else pc.binary_slice(array, 0, self.width)

    def result_type(self, source_types: Sequence[Any]) -> Any:
        """The source's own, without its encoding."""
        return logical_type(source_types[0])

    def sql(self, columns: Sequence[str], *, numeric: bool = False) -> str:
        """DataFusion's ``left``, or arithmetic when the column is numeric."""
        column = columns[0]
        return f"{column} - ({column} % {self.width})" if numeric else f"left({column}, {self.width})"

    def accepts(self, source_type: Any) -> bool:
        """Integers, decimals with a fraction, text and bytes: what a float is left with would not be exact."""
        return is_numeric_truncate(source_type) or _is_text_or_bytes(source_type)

    def cut(self, key: int, step: int) -> int:
        """A number less its remainder, which has the number's sign."""
        return key - key % step if key >= 0 else -(-key - -key % step)

    def sources(self, value: int) -> tuple[int, int]:
        """The numbers that become a value, as a span without its end."""
        width = self.width
        return (value - width + 1 if value <= 0 else value), (value + width if value >= 0 else value + 1)


TRANSFORMS: dict[str, type[Transform]] = {
    kind.name: kind for kind in (Identity, Year, Month, Day, Hour, Bucket, MultiBucket, Truncate)
}


def is_numeric_truncate(source_type: Any) -> bool:
    """Whether truncating this type is arithmetic rather than a prefix."""
    decimal = pa.types.is_decimal128(source_type) or pa.types.is_decimal256(source_type)
    return bool(pa.types.is_integer(source_type) or (decimal and source_type.scale >= 0))


def _is_text_or_bytes(source_type: Any) -> bool:
    plain = {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}
    return source_type in plain


def _check_positive(transform: str, name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_INT32:
        raise InvalidInputError(f"{transform} needs {name} between 1 and {_MAX_INT32}, not {value!r}")
