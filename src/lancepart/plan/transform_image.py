"""What a domain of source values becomes under a partition field: the domain of its partition values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from lancepart.errors import reraise_interrupt
from lancepart.model.domain import Domain
from lancepart.model.ordering import Ordering, ordering
from lancepart.model.spec import PartitionField
from lancepart.model.terms import Term
from lancepart.model.transforms import Bucket, Day, Hour, Identity, Month, Truncate, Year
from lancepart.model.values import canonical
from lancepart.model.widening import widening
from lancepart.plan.calendar import Hours, year_ranges
from lancepart.plan.formula import Constraint

MOST_VALUES = 20_000
_SMALL_TYPE = 256
TIME_PARTS: dict[type, str] = {Year: "year", Month: "month", Day: "day", Hour: "hour"}
_PART_RANGES = {"month": range(1, 13), "day": range(1, 32), "hour": range(24)}
_INFINITY = {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}


def image(field: PartitionField, domains: Sequence[Domain | None], value_type: Any) -> Domain | None:
    """The partition values that rows within the source domains can have, or None when that cannot be told.

    Exact for identity, time parts, truncate and whatever has few source values; a source that is None is free.
    """
    target = ordering(value_type)
    if field.opaque or target is None or all(domain is None or domain.is_everything for domain in domains):
        return None
    if is_computed(field):
        listed = enumerated(field, domains, target)
        return _some_bucket(domains, target) if listed is None and isinstance(field.transform, Bucket) else listed
    (domain,) = domains
    if domain is None:
        return None
    part = TIME_PARTS.get(type(field.transform))
    if part is not None:
        return _part_image(part, domain, target, hours_of(domain, any_zone=field.any_zone))
    if isinstance(field.transform, Truncate):
        domain = truncated(domain, field.transform)
    return narrowed(closed(domain), target)


def is_computed(field: PartitionField) -> bool:
    """Whether nothing but the values themselves tells what becomes of a domain."""
    return not isinstance(field.transform, (Identity, Truncate, *TIME_PARTS))


def enumerated(field: PartitionField, domains: Sequence[Domain | None], target: Ordering) -> Domain | None:
    """The partition values of each combination of source values, if they are few enough to try."""
    columns = combinations(domains)
    if columns is None:
        return None
    values = applied(field, columns)
    return None if values is None else domain_of(values, target)


def _some_bucket(domains: Sequence[Domain | None], target: Ordering) -> Domain | None:
    """Any bucket, and no bucket at all only where every source may be NULL."""
    if all(domain is None or domain.null for domain in domains):
        return None
    return Domain.only_null(target).complement()


def domain_of(values: Any, target: Ordering) -> Domain | None:
    """Exactly the values of an array, in the order of another type that holds them."""
    if values.type != target.type:
        try:
            values = values.cast(target.type)
        except pa.ArrowInvalid:
            return None
    distinct = values.unique()
    keys = (target.key(value) for value in distinct if value.is_valid)
    return closed(Domain.spanning(target, ((key, target.next(key)) for key in keys), null=values.null_count > 0))


def combinations(domains: Sequence[Domain | None], limit: int = MOST_VALUES) -> list[Any] | None:
    """Every combination of the domains' values, as one array a source; None when they are too many."""
    lists = []
    for domain in domains:
        keys = None if domain is None else domain.enumerate(limit)
        if keys is None or domain is None:
            return None
        limit //= max(len(keys), 1)
        lists.append((domain.order, keys))
    if len(lists) == 1:
        return [lists[0][0].values(lists[0][1])]
    rows = list(product(*(range(len(keys)) for _, keys in lists)))
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(lists))
    return [order.values(keys).take(pa.array(columns[:, at])) for at, (order, keys) in enumerate(lists)]


def applied(field: PartitionField, columns: Sequence[Any]) -> Any | None:
    """The field's values, or None where it cannot be computed: then it says nothing about partitions."""
    try:
        return canonical(field.apply(columns))
    except Exception as error:
        reraise_interrupt(error)
        return None


def truncated(domain: Domain, transform: Truncate) -> Domain:
    """What truncation makes of a domain: it never reorders, so a span's ends tell all.

    >>> truncated(Domain.spanning(ordering(pa.int32()), [(-25, -3), (14, 30)]), Truncate(10)).spans
    ((-20, 1), (10, 21))
    """
    return Domain.spanning(domain.order, _truncated_spans(domain, transform), null=domain.null)


def _truncated_spans(domain: Domain, transform: Truncate) -> Iterator[tuple[Any, Any]]:
    width, least = transform.width, domain.order.low
    step = width * 10**domain.order.type.scale if domain.order.kind == "decimal" else width
    for low, high in domain.spans:
        if domain.order.kind in {"text", "binary"}:
            cut = high is not None and len(high) > width
            yield low[:width], domain.order.next(high[:width]) if cut else high
        else:
            yield max(transform.cut(low, step), least), max(transform.cut(high - 1, step), least) + 1


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


def hours_of(domain: Domain, *, any_zone: bool) -> Hours:
    """The hours in which a domain has an instant, by the clock of UTC or, if need be, by that of any zone."""
    hours = Hours.of(domain)
    return hours.widened(24) if any_zone else hours


def _part_image(part: str, domain: Domain, target: Ordering, hours: Hours) -> Domain:
    if part == "year":
        return Domain.spanning(target, year_ranges(hours), null=domain.null)
    candidates = np.array(_PART_RANGES[part], dtype=np.int64)
    kept = candidates[hours.touch({part: candidates})].tolist()
    if len(kept) == len(candidates):
        return Domain.spanning(target, [(target.low, target.high)], null=domain.null)
    return Domain.spanning(target, ((key, key + 1) for key in kept), null=domain.null)


def term_domain(field: PartitionField, constraint: Constraint, columns: Mapping[int, Any], kind: Any) -> Domain | None:
    """What a constraint says of a field's own function, in the type of its values; None where it says nothing."""
    target = ordering(kind)
    names = [columns[source].name for source in field.source_ids if source in columns]
    doubted = field.opaque or field.any_zone
    if doubted or field.transform is None or target is None or len(names) < len(field.source_ids):
        return None
    found = constraint.get(Term(transform=field.transform, columns=tuple(names)))
    return None if found is None else narrowed(closed(found), target)


def source_domains(
    source_ids: Sequence[int], constraint: Constraint, columns: Mapping[int, Any]
) -> list[Domain | None]:
    """The domain of each source under a constraint; None for a removed one, and for a free one of many values."""
    return [_source_domain(columns[source], constraint) if source in columns else None for source in source_ids]


def _source_domain(column: Any, constraint: Constraint) -> Domain | None:
    found, order = constraint.get(column.name), ordering(column.type)
    if found is not None or order is None:
        return found
    everything = Domain.everything(order)
    size = everything.size()
    return everything if size is not None and size <= _SMALL_TYPE else None
