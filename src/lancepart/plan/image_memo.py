"""Images of many domains under one partition field, computed together and remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise

import pyarrow as pa

from lancepart.model.domain import Domain
from lancepart.model.narrowing import closed
from lancepart.model.ordering import ordering
from lancepart.model.predicate import Column
from lancepart.model.spec import PartitionField
from lancepart.plan.formula import Every, Formula
from lancepart.plan.transform_image import applied, image, is_computed

_FEW_VALUES = 64

_Key = tuple[str, pa.DataType, Domain]


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a source column's domains under its partition fields, memoized for one filter."""

    _known: dict[_Key, Domain | None] = field(default_factory=dict)

    @classmethod
    def of_filter(cls, condition: Formula, fields: Iterable[PartitionField], columns: Mapping[int, pa.Field]) -> Images:
        """Compute the images for a filter of many alternatives in one batch, which is faster than single calls."""
        made, found = cls(), {name: list(dict.fromkeys(domains)) for name, domains in _domains(condition).items()}
        for each in fields:
            column = columns.get(each.source_ids[0]) if len(each.source_ids) == 1 else None
            if column is not None and is_computed(each) and not each.opaque and column.name in found:
                made._compute(each, found[column.name])
        return made

    def image(self, partition_field: PartitionField, domain: Domain, value_type: pa.DataType) -> Domain | None:
        """The partition values that rows within a domain of the field's only source can have."""
        key = (partition_field.field_id, value_type, domain)
        if key not in self._known:
            self._known[key] = image(partition_field, [domain], value_type)
        return self._known[key]

    def _compute(self, each: PartitionField, domains: list[Domain]) -> None:
        target = ordering(each.result_type)
        listed = [(domain, domain.enumerate(_FEW_VALUES)) for domain in domains if not domain.is_everything]
        small = [(domain, keys) for domain, keys in listed if keys is not None]
        if target is None or len(small) < 2:
            return
        values = applied(each, [small[0][0].order.values(list(chain.from_iterable(keys for _, keys in small)))])
        if values is None or values.type != target.type:
            return
        found = [target.key(value) if value.is_valid else None for value in values]
        ends = accumulate((len(keys) for _, keys in small), initial=0)
        for (domain, _), (start, end) in zip(small, pairwise(ends), strict=True):
            own = set(found[start:end])
            spans = ((key, target.next(key)) for key in own if key is not None)
            self._known[each.field_id, each.result_type, domain] = closed(
                Domain.spanning(target, spans, null=None in own)
            )


def _domains(condition: Formula) -> dict[str, list[Domain]]:
    """All domains that a formula names, by column."""
    found: dict[str, list[Domain]] = {}
    for column, domain in _walk(condition):
        if isinstance(column, str):
            found.setdefault(column, []).append(domain)
    return found


def _walk(condition: Formula) -> Iterator[tuple[Column, Domain]]:
    if isinstance(condition, Every):
        yield from condition.domains.items()
    for part in condition.parts:
        yield from _walk(part)
