"""Truncation: a partition holds the rows of one prefix, or of one range of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.domain import Domain, Span
from lancepart.model.narrowing import closed, narrowed
from lancepart.model.ordering import Key, Ordering, after_prefix
from lancepart.model.transforms.base import MAX_INT32, Transform, check_positive
from lancepart.model.values import decoded, logical_type, truncated_decimals, truncated_integers

_TEXT_OR_BYTES = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})


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
    maps_ranges = True
    keeps_type = True

    def __post_init__(self) -> None:
        check_positive(self.name, "width", self.width)

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
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

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """The source's own, without its encoding."""
        return logical_type(source_types[0])

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """DataFusion's ``left``, or arithmetic when the column is numeric."""
        column = columns[0]
        if source_type is not None and is_numeric_truncate(source_type):
            return f"{column} - ({column} % {self.width})"
        return f"left({column}, {self.width})"

    def accepts(self, source_type: pa.DataType) -> bool:
        """Integers, decimals with a fraction, text and bytes: what a float is left with would not be exact."""
        return is_numeric_truncate(source_type) or source_type in _TEXT_OR_BYTES

    def is_inexact(self, source_type: pa.DataType) -> bool:
        """Floats, which the document allows."""
        return bool(pa.types.is_floating(logical_type(source_type)))

    def spelled(self, columns: Sequence[str]) -> str:
        """With the number last."""
        return f"{self.name}({columns[0]}, {self.width})"

    @property
    def spark_function(self) -> str | None:
        """One function a width."""
        return f"truncate_{self.width}"

    def cut(self, key: int, step: int) -> int:
        """A number less its remainder, which has the number's sign."""
        return key - key % step if key >= 0 else -(-key - -key % step)

    def source_span(self, value: int) -> tuple[int, int] | None:
        """The numbers that become a value."""
        width = self.width
        return (value - width + 1 if value <= 0 else value), (value + width if value >= 0 else value + 1)

    def image(self, domain: Domain, target: Ordering, *, any_zone: bool = False) -> Domain | None:
        """Truncation never reorders, so a span's ends determine the image.

        >>> from lancepart.model.ordering import ordering
        >>> order = ordering(pa.int32())
        >>> Truncate(10).image(Domain.spanning(order, [(-25, -3), (14, 30)]), order).spans
        ((-20, 1), (10, 21))
        """
        cut = Domain.spanning(domain.order, self._truncated_spans(domain), null=domain.null)
        return narrowed(closed(cut), target)

    def _truncated_spans(self, domain: Domain) -> Iterator[Span]:
        order, step = domain.order, self._step(domain.order)
        for low, high in domain.spans:
            if order.kind in {"text", "binary"}:
                cut = high is not None and len(high) > self.width
                yield low[: self.width], order.next(high[: self.width]) if cut else high
            else:
                yield max(self.cut(low, step), order.low), max(self.cut(high - 1, step), order.low) + 1

    def preimage(self, domain: Domain, order: Ordering) -> Domain | None:
        """The texts with these prefixes, or the numbers that are cut to these."""
        if order.kind in {"text", "binary"}:
            return self._from_prefixes(domain, order)
        return domain.pulled_back(order, self._cutting(order)) if domain.order.type == order.type else None

    def _step(self, order: Ordering) -> int:
        return self.width * 10**order.type.scale if order.kind == "decimal" else self.width

    def _cutting(self, order: Ordering) -> Callable[[Key], Key]:
        step = self._step(order)
        return lambda key: max(self.cut(key, step), order.low)

    def _from_prefixes(self, domain: Domain, order: Ordering) -> Domain:
        """The texts whose first letters lie in a domain: a bound longer than these is met by the next prefix."""

        def first(bound: Key) -> Key:
            if len(bound) <= self.width:
                return bound
            return after_prefix(bound[: self.width]) if order.kind == "text" else _after_bytes(bound[: self.width])

        spans = [(first(low), None if high is None else first(high)) for low, high in domain.spans]
        return Domain.spanning(order, [span for span in spans if span[0] is not None], null=domain.null)

    def coarser(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """The shorter prefix, or the least width that both widths divide."""
        same = self._same_kind(other)
        if same is None:
            return None
        numeric = is_numeric_truncate(logical_type(source_type))
        width = lcm(self.width, same.width) if numeric else min(self.width, same.width)
        return type(self)(width=width) if width <= MAX_INT32 else None

    def reduced(self, values: pa.Array, coarser: Transform) -> pa.Array | None:
        """The values, truncated again."""
        same = self._same_kind(coarser)
        if same is None:
            return None
        numeric = is_numeric_truncate(values.type)
        follows = same.width % self.width == 0 if numeric else same.width <= self.width
        return same.apply([values]) if follows else None


def is_numeric_truncate(source_type: pa.DataType) -> bool:
    """Whether truncating this type is arithmetic rather than a prefix."""
    decimal = pa.types.is_decimal128(source_type) or pa.types.is_decimal256(source_type)
    return bool(pa.types.is_integer(source_type) or (decimal and source_type.scale >= 0))


def _after_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
