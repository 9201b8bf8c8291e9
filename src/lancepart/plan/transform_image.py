"""The image of a domain of source values under a partition field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from lancepart.errors import reraise_interrupt
from lancepart.model.domain import Domain
from lancepart.model.narrowing import closed, narrowed
from lancepart.model.ordering import Ordering, ordering
from lancepart.model.spec import PartitionField
from lancepart.model.terms import Term
from lancepart.model.values import canonical
from lancepart.plan.formula import Constraint

MOST_VALUES = 20_000
_SMALL_TYPE = 256


def image(field: PartitionField, domains: Sequence[Domain | None], value_type: pa.DataType) -> Domain | None:
    """The partition values that rows within the source domains can have, or None if that is unknown.

    Exact for identity, time parts, truncate and whatever has few source values; a source that is None is free.
    """
    target = ordering(value_type)
    if field.opaque or target is None or all(domain is None or domain.is_everything for domain in domains):
        return None
    if field.transform is None or is_computed(field):
        listed = enumerated(field, domains, target)
        return listed if listed is not None or field.transform is None else field.transform.any_image(domains, target)
    (domain,) = domains
    return None if domain is None else field.transform.image(domain, target, any_zone=field.any_zone)


def is_computed(field: PartitionField) -> bool:
    """Whether the image of a domain can only be computed value by value."""
    return field.transform is None or not field.transform.maps_ranges


def enumerated(field: PartitionField, domains: Sequence[Domain | None], target: Ordering) -> Domain | None:
    """The partition values of each combination of source values, if they are few enough to try."""
    columns = combinations(domains)
    if columns is None:
        return None
    values = applied(field, columns)
    return None if values is None else domain_of(values, target)


def domain_of(values: pa.Array, target: Ordering) -> Domain | None:
    """Exactly the values of an array, in the order of another type that holds them."""
    if values.type != target.type:
        try:
            values = values.cast(target.type)
        except pa.ArrowInvalid:
            return None
    distinct = values.unique()
    keys = (target.key(value) for value in distinct if value.is_valid)
    return closed(Domain.spanning(target, ((key, target.next(key)) for key in keys), null=values.null_count > 0))


def combinations(domains: Sequence[Domain | None], limit: int = MOST_VALUES) -> list[pa.Array] | None:
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


def applied(field: PartitionField, columns: Sequence[pa.Array]) -> pa.Array | None:
    """The field's values, or None where it cannot be computed: then it says nothing about partitions."""
    try:
        return canonical(field.apply(columns))
    except Exception as error:
        reraise_interrupt(error)
        return None


def term_domain(
    field: PartitionField, constraint: Constraint, columns: Mapping[int, pa.Field], kind: pa.DataType
) -> Domain | None:
    """What a constraint says of a field's own function, in the type of its values; None where it says nothing."""
    target = ordering(kind)
    names = [columns[source].name for source in field.source_ids if source in columns]
    doubted = field.opaque or field.any_zone
    if doubted or field.transform is None or target is None or len(names) < len(field.source_ids):
        return None
    found = constraint.get(Term(transform=field.transform, columns=tuple(names)))
    return None if found is None else narrowed(closed(found), target)


def source_domains(
    source_ids: Sequence[int], constraint: Constraint, columns: Mapping[int, pa.Field]
) -> list[Domain | None]:
    """The domain of each source under a constraint; None for a removed one, and for a free one of many values."""
    return [_source_domain(columns[source], constraint) if source in columns else None for source in source_ids]


def _source_domain(column: pa.Field, constraint: Constraint) -> Domain | None:
    found, order = constraint.get(column.name), ordering(column.type)
    if found is not None or order is None:
        return found
    everything = Domain.everything(order)
    size = everything.size()
    return everything if size is not None and size <= _SMALL_TYPE else None
