"""Parts of dates and timestamps, in UTC: a partition holds the rows of one year, month, day or hour."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.aliases import Value
from lancepart.model.calendar import hours_of, year_of, year_ranges
from lancepart.model.domain import Domain
from lancepart.model.ordering import Ordering
from lancepart.model.transforms.base import Transform
from lancepart.model.transforms.spark_key import SparkKey
from lancepart.model.values import decoded

_SPANS = ("year", "year_month", "year_month_day", "year_month_day_hour")
"""The jar's functions of a span of time, each by the parts from the year down."""


@dataclass(frozen=True, slots=True)
class CalendarKey(SparkKey):
    """The parts from the year down as one number, from which those of fewer parts follow."""

    @property
    def family(self) -> str:
        """One for all spans of time."""
        return _SPANS[0]

    def common(self, other: SparkKey) -> SparkKey | None:
        """The longer span of time."""
        return min(self, other, key=lambda each: _SPANS.index(each.function))

    def yields(self, function: str, number: int) -> bool:
        """Whether the function takes these parts, or fewer from the year down."""
        return function in _SPANS[: _SPANS.index(self.function) + 1]

    def value(self, function: str, number: int, values: Mapping[Transform, Value]) -> Value:
        """The number that the jar's function gives."""
        parts = [values[each] for each in CALENDAR[: _SPANS.index(function) + 1]]
        return None if None in parts else _moment(function, parts)


def _moment(function: str, parts: Sequence[int]) -> int:
    year, month, day, hour = [*parts, 1, 1, 0][: len(parts)] + [1, 1, 0][len(parts) - 1 :]
    if function == "year":
        return year
    if function == "year_month":
        return year * 12 + month - 1
    months = np.datetime64(year * 12 + month - 1 - 1970 * 12, "M")
    days = int(months.astype("M8[D]").astype(np.int64)) + day - 1
    return days if function == "year_month_day" else days * 24 + hour


class TimePart(Transform):
    """A part of a date or timestamp, in UTC."""

    __slots__ = ()
    is_time_part = True
    maps_ranges = True
    null_type = pa.timestamp("us")
    cycle: ClassVar[range] = range(0)
    """The values that come round again and again; the year has none."""

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The part as int32."""
        array = decoded(arrays[0])
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), pa.int32())
        if pa.types.is_timestamp(array.type):
            array = array.cast(pa.timestamp(array.type.unit))
        return self.part(array).cast(pa.int32())

    def part(self, array: pa.Array) -> pa.Array:
        """The part of dates or timestamps without a zone."""
        return getattr(pc, self.name)(array)

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Always int32."""
        return pa.int32()

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """DataFusion's ``date_part``."""
        return f"date_part('{self.name}', {columns[0]})"

    def accepts(self, source_type: pa.DataType) -> bool:
        """Dates and timestamps."""
        return bool(pa.types.is_timestamp(source_type) or pa.types.is_date(source_type))

    def spark_key(self, beside: Collection[Transform]) -> SparkKey | None:
        """All parts from the year down as one; a part without those before it by itself."""
        depth = 0
        while depth < len(CALENDAR) and CALENDAR[depth] in beside:
            depth += 1
        return CalendarKey(self, _SPANS[depth - 1]) if self in CALENDAR[:depth] else SparkKey(self, self.name)

    def image(self, domain: Domain, target: Ordering, *, any_zone: bool = False) -> Domain | None:
        """The parts that some hour of the domain has."""
        candidates = np.array(self.cycle, dtype=np.int64)
        kept = candidates[hours_of(domain, any_zone=any_zone).touch({self.name: candidates})].tolist()
        if len(kept) == len(candidates):
            return Domain.spanning(target, [(target.low, target.high)], null=domain.null)
        return Domain.spanning(target, ((key, key + 1) for key in kept), null=domain.null)


@dataclass(frozen=True, slots=True)
class Year(TimePart):
    """The year.

    >>> Year().apply([pa.array([-1], pa.date32())]).to_pylist()
    [1969]
    """

    name = "year"
    suffix = "year"

    def part(self, array: pa.Array) -> pa.Array:
        """The year, also outside the range of Arrow's own function."""
        unit = array.type.unit if pa.types.is_timestamp(array.type) else "D" if pa.types.is_date32(array.type) else "ms"
        plain = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
        numbers = pc.fill_null(plain.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        years = numbers.view(f"datetime64[{unit}]").astype("datetime64[Y]").astype(np.int64) + 1970
        return pa.array(years, mask=array.is_null().to_numpy(zero_copy_only=False))

    def image(self, domain: Domain, target: Ordering, *, any_zone: bool = False) -> Domain | None:
        """The years from the first instant of each span to its last."""
        return Domain.spanning(target, year_ranges(hours_of(domain, any_zone=any_zone)), null=domain.null)

    def preimage(self, domain: Domain, order: Ordering) -> Domain | None:
        """The instants of these years."""
        return domain.pulled_back(order, year_of(order.type))


@dataclass(frozen=True, slots=True)
class Month(TimePart):
    """The month of the year, 1 to 12."""

    name = "month"
    suffix = "month"
    cycle = range(1, 13)


@dataclass(frozen=True, slots=True)
class Day(TimePart):
    """The day of the month, 1 to 31."""

    name = "day"
    suffix = "day"
    cycle = range(1, 32)


@dataclass(frozen=True, slots=True)
class Hour(TimePart):
    """The hour of the day, 0 to 23."""

    name = "hour"
    suffix = "hour"
    cycle = range(24)

    def accepts(self, source_type: pa.DataType) -> bool:
        """Timestamps: a date has no hour."""
        return bool(pa.types.is_timestamp(source_type))


CALENDAR: tuple[TimePart, ...] = (Year(), Month(), Day(), Hour())
"""The parts of an instant, outermost first: each with those before it is a span of time."""
