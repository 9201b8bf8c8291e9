"""Domains of source values as partitions see them: floats with one zero and one NaN, in the type of the partition."""

from __future__ import annotations

from lancepart.model.domain import Domain
from lancepart.model.ordering import Ordering
from lancepart.model.widening import widening

_INFINITY = {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}


def closed(domain: Domain) -> Domain:
    """A domain of floats as partitions see it: with one zero all are in, with one NaN all are."""
    if domain.order.kind != "float":
        return domain
    order, infinity = domain.order, _INFINITY[domain.order.type.bit_width]
    zeros = Domain.of(order, [-1, 0])
    nans = Domain.spanning(order, [(order.low, -infinity - 1), (infinity + 1, order.high)])
    for alike in (zeros, nans):
        if domain.intersect(alike).spans:
            domain = domain.union(alike)
    return domain


def narrowed(domain: Domain, target: Ordering) -> Domain | None:
    """The same values in the type of the partition values, which may be narrower or wider than the column's."""
    if domain.order.type == target.type:
        return domain
    if domain.order.kind == target.kind and target.kind in {"text", "binary"}:
        return Domain(order=target, spans=domain.spans, null=domain.null)
    cast = widening(target.type, domain.order.type)
    if cast is not None:
        return closed(domain.pulled_back(target, cast))
    cast = widening(domain.order.type, target.type)
    if cast is None:
        return None
    spans = ((cast(low), target.next(cast(high - 1))) for low, high in domain.spans)
    return closed(Domain.spanning(target, spans, null=domain.null))
