"""What a filter on a partition function says about the columns that it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from lancepart.model.domain import Domain
from lancepart.model.ordering import Key, Ordering, after_prefix, ordering
from lancepart.model.predicate import Column
from lancepart.model.terms import Term
from lancepart.model.transforms import Truncate, Year
from lancepart.plan.calendar import year_of


def preimage(term: Term, domain: Domain, types: Mapping[str, Any]) -> dict[Column, Domain]:
    """The column's own domain where the function never reorders values, else the function's: both say all there is."""
    order = ordering(types[term.columns[0]])
    if order is None:
        return {term: domain}
    found = _pulled_back(term, domain, order)
    return {term: domain} if found is None else {term.columns[0]: found}


def _pulled_back(term: Term, domain: Domain, order: Ordering) -> Domain | None:
    match term.transform:
        case Year():
            return domain.pulled_back(order, year_of(order.type))
        case Truncate(width=width) if order.kind in {"text", "binary"}:
            return _from_prefixes(domain, order, width)
        case Truncate() if domain.order.type == order.type:
            return domain.pulled_back(order, _cut(term.transform, order))
    return None


def _cut(transform: Truncate, order: Ordering) -> Callable[[Key], Key]:
    step = transform.width * 10**order.type.scale if pa.types.is_decimal(order.type) else transform.width
    return lambda key: max(transform.cut(key, step), order.low)


def _from_prefixes(domain: Domain, order: Ordering, width: int) -> Domain | None:
    """The texts whose first letters lie in a domain: a bound that is longer than these is met by the next prefix."""

    def first(bound: Any) -> Any:
        if len(bound) <= width:
            return bound
        return after_prefix(bound[:width]) if order.kind == "text" else _after_bytes(bound[:width])

    spans = [(first(low), None if high is None else first(high)) for low, high in domain.spans]
    return Domain.spanning(order, [span for span in spans if span[0] is not None], null=domain.null)


def _after_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
