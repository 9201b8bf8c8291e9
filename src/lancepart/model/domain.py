"""Sets of values of one column: those that a filter allows, or that a partition can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.ordering import Key, Ordering, after_prefix

Span = tuple[Key, Key]
"""Keys from the first up to but without the second; None is no end."""

_FEW = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A set of values as ascending spans that do not touch, and whether NULL is among them."""

    order: Ordering
    spans: tuple[Span, ...]
    null: bool

    @classmethod
    def everything(cls, order: Ordering) -> Domain:
        """Every value, and NULL."""
        return cls(order=order, spans=((order.low, order.high),), null=True)

    @classmethod
    def nothing(cls, order: Ordering) -> Domain:
        """No value at all."""
        return cls(order=order, spans=(), null=False)

    @classmethod
    def only_null(cls, order: Ordering) -> Domain:
        """NULL alone."""
        return cls(order=order, spans=(), null=True)

    @classmethod
    def of(cls, order: Ordering, keys: Iterable[Key]) -> Domain:
        """Exactly these values."""
        return cls.spanning(order, ((key, order.next(key)) for key in keys))

    @classmethod
    def spanning(cls, order: Ordering, spans: Iterable[Span], *, null: bool = False) -> Domain:
        """The union of spans given in any order.

        >>> from lancepart.model.ordering import ordering
        >>> Domain.spanning(ordering(pa.int8()), [(5, 9), (1, 3), (3, 5), (100, None)]).spans
        ((1, 9), (100, 128))
        """
        return cls(order=order, spans=tuple(_merged(order, spans)), null=null)

    @classmethod
    def united(cls, domains: Sequence[Domain]) -> Domain:
        """The values in any of some domains of one order."""
        spans = (span for domain in domains for span in domain.spans)
        return cls.spanning(domains[0].order, spans, null=any(domain.null for domain in domains))

    @classmethod
    def comparing(cls, order: Ordering, operator: str, key: Key) -> Domain:
        """The values in a relation to a key.

        Zero is the one value on which engines differ: DataFusion distinguishes -0.0 from 0.0, Lance does not; a
        comparison with it keeps what either of them would keep.
        """
        first, last = (-1, 0) if order.kind == "float" and key in {-1, 0} else (key, key)
        low, high = order.low, order.high
        spans: dict[str, list[Span]] = {
            "=": [(first, order.next(last))],
            "<>": [(low, key), (order.next(key), high)],
            "<": [(low, key)],
            "<=": [(low, order.next(last))],
            ">": [(order.next(key), high)],
            ">=": [(first, high)],
        }
        return cls.spanning(order, spans[operator])

    @classmethod
    def starting(cls, order: Ordering, prefix: str) -> Domain:
        """Every text with this prefix."""
        return cls.spanning(order, [(prefix, after_prefix(prefix))])

    @property
    def is_empty(self) -> bool:
        """Whether no value is in it, not even NULL."""
        return not self.spans and not self.null

    @property
    def is_everything(self) -> bool:
        """Whether every value and NULL are in it."""
        return self.null and self.spans == ((self.order.low, self.order.high),)

    def intersect(self, other: Domain) -> Domain:
        """The values in both."""
        spans = tuple(_overlaps(self.spans, other.spans))
        return Domain(order=self.order, spans=spans, null=self.null and other.null)

    def union(self, other: Domain) -> Domain:
        """The values in either."""
        return Domain.united([self, other])

    def complement(self) -> Domain:
        """The values that are not in it, NULL among them if it is not."""
        gaps: list[Span] = []
        start: Key | None = self.order.low
        for low, high in self.spans:
            gaps.append((start, low))
            start = high
        if start is not None and start != self.order.high:
            gaps.append((start, self.order.high))
        return Domain.spanning(self.order, gaps, null=not self.null)

    def contains(self, key: Key | None) -> bool:
        """Whether a value, or NULL as None, is in it."""
        if key is None:
            return self.null
        return any(low <= key and (high is None or key < high) for low, high in self.spans)

    def pulled_back(self, order: Ordering, image: Callable[[Key], Key]) -> Domain:
        """The keys of another order that a non-decreasing function takes into this domain; NULL stays NULL."""
        spans = (
            (_first(order, image, low), order.high if high is None else _first(order, image, high))
            for low, high in self.spans
        )
        return Domain.spanning(order, spans, null=self.null)

    def size(self) -> int | None:
        """How many values other than NULL, or None for no end of them."""
        sizes = [_span_size(span) for span in self.spans]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def enumerate(self, limit: int) -> list[Key | None] | None:
        """Every key, NULL as None at the end; or None when there are more than the limit.

        >>> from lancepart.model.ordering import ordering
        >>> Domain.comparing(ordering(pa.bool_()), ">=", 0).enumerate(10)
        [0, 1]
        """
        size = self.size()
        if size is None or size > limit:
            return None
        keys: list[Key | None] = []
        for low, _ in self.spans:
            count = _span_size((low, _)) or 0
            if isinstance(low, int):
                keys.extend(range(low, low + count))
            else:
                zero = "\0" if isinstance(low, str) else b"\0"
                keys.extend(low + zero * extra for extra in range(count))
        return [*keys, None] if self.null else keys

    def mask(self, array: pa.Array) -> pa.Array:
        """Which elements of an array of this type are in the set."""
        values = self.order.comparable(array)
        kept = self._points(values) if len(self.spans) > _FEW else None
        for low, high in self.spans if kept is None else self._wide():
            inside = self._inside(values, low, high)
            kept = inside if kept is None else pc.or_(kept, inside)
        if kept is None:
            kept = pa.repeat(pa.scalar(value=False), len(array))
        return pc.if_else(values.is_null(), self.null, pc.fill_null(kept, fill_value=False))

    def _points(self, values: pa.Array) -> pa.Array:
        keys = [low for low, high in self.spans if high == self.order.next(low)]
        return pc.is_in(values, pa.array([self.order.bound(key).as_py() for key in keys], values.type))

    def _wide(self) -> Iterator[Span]:
        return (span for span in self.spans if span[1] != self.order.next(span[0]))

    def _inside(self, values: pa.Array, low: Key, high: Key | None) -> pa.Array:
        if high == self.order.next(low):
            return pc.equal(values, self.order.bound(low))
        tests = []
        if low != self.order.low:
            tests.append(pc.greater_equal(values, self.order.bound(low)))
        if high is not None and high != self.order.high:
            tests.append(pc.less(values, self.order.bound(high)))
        if not tests:
            return values.is_valid()
        return tests[0] if len(tests) == 1 else pc.and_(*tests)


def _merged(order: Ordering, spans: Iterable[Span]) -> Iterator[Span]:
    current: Span | None = None
    for low, high in sorted(spans, key=lambda span: span[0]):
        first = max(low, order.low)
        last = order.high if high is None or (order.high is not None and high > order.high) else high
        if last is not None and last <= first:
            continue
        if current is None:
            current = (first, last)
        elif current[1] is None or first <= current[1]:
            current = (current[0], None if current[1] is None or last is None else max(current[1], last))
        else:
            yield current
            current = (first, last)
    if current is not None:
        yield current


def _overlaps(left: tuple[Span, ...], right: tuple[Span, ...]) -> Iterator[Span]:
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        ends = [end for end in (left[i][1], right[j][1]) if end is not None]
        high = min(ends) if ends else None
        if high is None or low < high:
            yield low, high
        if high is None or left[i][1] == high:
            i += 1
        if high is None or right[j][1] == high:
            j += 1


def _first(order: Ordering, image: Callable[[Key], Key], bound: Key) -> Key:
    """The least key whose image reaches a bound; the order's end when none does."""
    low, high = order.low, order.high
    while low < high:
        middle = (low + high) // 2
        if image(middle) >= bound:
            high = middle
        else:
            low = middle + 1
    return low


def _span_size(span: Span) -> int | None:
    low, high = span
    if high is None:
        return None
    if isinstance(low, int):
        size: int = high - low
        return size
    zero = "\0" if isinstance(low, str) else b"\0"
    extra = len(high) - len(low)
    return extra if extra > 0 and high == low + zero * extra else None
