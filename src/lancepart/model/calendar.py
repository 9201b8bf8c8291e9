"""Which years, months, days and hours a set of instants touches, exactly and for many partitions at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.model.domain import Domain, Span

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PARTS = ("year", "month", "day", "hour")
_HOUR = {"s": 3_600, "ms": 3_600_000, "us": 3_600_000_000, "ns": 3_600_000_000_000}
_FAR = 24 * 366 * 300_000
_NEVER = np.int64(2**62)
_LEAP_GAP = 9
_MONTHS_TO_31ST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Instants rounded out to hours since 1970, as ascending inclusive ranges: no part is finer than an hour."""

    first: Ints
    last: Ints

    @classmethod
    def of(cls, domain: Domain) -> Hours:
        """The hours in which a domain of dates or timestamps has an instant."""
        ranges = [_hours(domain.order.type, span) for span in domain.spans]
        bounds = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return cls(first=bounds[:, 0], last=bounds[:, 1])

    def widened(self, hours: int) -> Hours:
        """The same with some hours more on either side."""
        return Hours(first=self.first - hours, last=self.last + hours)

    def touch(self, parts: Mapping[str, Ints]) -> Bools:
        """Whether some hour has these parts, for each row of the arrays given for any subset of ``PARTS``."""
        given = tuple(part for part in PARTS if part in parts)
        if given == PARTS[: len(given)]:
            start, end = _cell(parts, given)
            return self._overlap(start, end)
        found = np.zeros(len(next(iter(parts.values()))), dtype=bool)
        for first, last in zip(self.first, self.last, strict=True):
            found |= _next_hour(int(first), parts) <= last
        return found

    def _overlap(self, start: Ints, end: Ints) -> Bools:
        """Whether a range reaches into ``start`` up to but without ``end``."""
        if not len(self.first):
            return np.zeros(len(start), dtype=bool)
        at = np.searchsorted(self.last, start)
        reached: Bools = self.first[np.minimum(at, len(self.first) - 1)] < end
        return (at < len(self.first)) & reached & (start < end)


def _hours(data_type: pa.DataType, span: Span) -> tuple[int, int]:
    low, high = span
    last = high - 1
    if pa.types.is_date32(data_type):
        first, last = low * 24, last * 24
    else:
        per_hour = _HOUR["ms" if pa.types.is_date64(data_type) else data_type.unit]
        first, last = low // per_hour, last // per_hour
    if pa.types.is_time(data_type):
        first, last = max(first, 0), min(last, 23)
    return max(first, -_FAR), min(last, _FAR)


def _cell(parts: Mapping[str, Ints], given: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Year, year and month, … down to the hour: one range of hours each, empty where there is no such day."""
    months = (parts["year"] - 1970) * 12
    if given == ("year",):
        return _month_start(months) * 24, _month_start(months + 12) * 24
    months = months + parts["month"] - 1
    start, end = _month_start(months), _month_start(months + 1)
    if len(given) == 2:
        return start * 24, end * 24
    day = start + parts["day"] - 1
    if len(given) == 3:
        return day * 24, np.where(day < end, (day + 1) * 24, day * 24)
    hour = day * 24 + parts["hour"]
    return hour, np.where(day < end, hour + 1, hour)


def _next_hour(first: int, parts: Mapping[str, Ints]) -> Ints:
    """The first hour from ``first`` on that has the parts, or a number beyond every hour."""
    day, hour = divmod(first, 24)
    if "hour" not in parts:
        return np.maximum(_next_day(np.full(_rows(parts), day), parts) * 24, first)
    hours = parts["hour"]
    start = np.where(hours >= hour, day, day + 1)
    return _next_day(start, parts) * 24 + hours


def _next_day(start: Ints, parts: Mapping[str, Ints]) -> Ints:
    """The first day from ``start`` on that has the given year, month and day of month."""
    found = np.full(len(start), _NEVER // 24 - 24)
    for months in _candidate_months(start, parts):
        first, end = _month_start(months), _month_start(months + 1)
        day = first + parts["day"] - 1 if "day" in parts else np.maximum(first, start)
        fits = (day >= start) & (day < end)
        if "year" in parts:
            fits &= months // 12 == parts["year"] - 1970
        found = np.where(fits, np.minimum(found, day), found)
    return found


def _candidate_months(start: Ints, parts: Mapping[str, Ints]) -> list[Ints]:
    """Months since 1970 among which the next match must be: two leap days are at most eight years apart."""
    current = start.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    if "year" in parts:
        january = (parts["year"] - 1970) * 12
        if "month" in parts:
            return [january + parts["month"] - 1]
        from_here = np.maximum(current, january)
        return [from_here + ahead for ahead in range(12 if "day" in parts else 1)]
    if "month" in parts:
        year = current // 12
        return [(year + ahead) * 12 + parts["month"] - 1 for ahead in range(_LEAP_GAP)]
    return [current + ahead for ahead in range(_MONTHS_TO_31ST)]


def _month_start(months: Ints) -> Ints:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _rows(parts: Mapping[str, Ints]) -> int:
    return len(next(iter(parts.values())))


def year_ranges(hours: Hours) -> list[Span]:
    """The years of some hours, as half-open spans; hours that are out of range have no end."""
    first, last = _year(hours.first), _year(hours.last)
    lows = np.where(hours.first <= -_FAR, -(2**31), first).tolist()
    highs = np.where(hours.last >= _FAR, 2**31, last + 1).tolist()
    return list(zip(lows, highs, strict=True))


def _year(hours: Ints) -> Ints:
    return (hours // 24).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970


def cells(parts: Mapping[str, Ints], data_type: pa.DataType, most: int) -> list[Span] | None:
    """The dates that have any of these years, years and months, …, as spans; None for times or for too many."""
    if not pa.types.is_date32(data_type) or "hour" in parts:
        return None
    start, end = _cell(parts, tuple(part for part in PARTS if part in parts))
    distinct = np.unique(np.stack([start, end], axis=1) // 24, axis=0)
    if (distinct[:, 1] - distinct[:, 0]).sum() > most:
        return None
    return [(int(low), int(high)) for low, high in distinct]


def year_of(data_type: pa.DataType) -> Callable[[int], int]:
    """The year of a date or timestamp of a type, by the number that it is stored as."""
    ticks = 86_400 * 1_000 if pa.types.is_date64(data_type) else 1
    if pa.types.is_timestamp(data_type):
        ticks = 24 * _HOUR[data_type.unit]

    def year(number: int) -> int:
        return int(np.datetime64(number // ticks, "D").astype("datetime64[Y]").astype(np.int64)) + 1970

    return year


def hours_of(domain: Domain, *, any_zone: bool) -> Hours:
    """The hours in which a domain has an instant, by the clock of UTC or, if need be, by that of any zone."""
    hours = Hours.of(domain)
    return hours.widened(24) if any_zone else hours
