"""Which leaves of one spec version can hold a row that a filter matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from lancepart.model.domain import Domain
from lancepart.model.predicate import Predicate
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.plan.formula import NEVER, Constraint, Every, Formula, Some, alternatives, formula
from lancepart.plan.image_memo import Images
from lancepart.plan.leaf_pruning import Bools, LeafValues
from lancepart.plan.pushdown import condition, conjunction, disjunction, quoted_column
from lancepart.plan.transform_image import image, source_domains, term_domain

_MOST_PUSHED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruner:
    """What a filter says about the partitions of one spec version.

    ``choices`` are the filter's alternatives, or None when it has too many to be taken apart;
    then it is followed as it is, which keeps more leaves but never too few.
    """

    spec: PartitionSpec
    columns: Mapping[int, pa.Field]
    condition: Formula
    choices: tuple[Constraint, ...] | None
    images: Images

    @classmethod
    def of(cls, predicate: Predicate, spec: PartitionSpec, columns: Mapping[int, pa.Field]) -> Pruner:
        """Prepare a filter for a spec; ``columns`` are the table's current top-level fields by field id."""
        types = {field.name: field.type for field in columns.values()}
        condition = formula(predicate, types)
        found = alternatives(condition)
        choices = None if found is None else tuple(found)
        images = Images.of_filter(condition, spec.fields, columns)
        return cls(spec=spec, columns=columns, condition=condition, choices=choices, images=images)

    @property
    def matches_nothing(self) -> bool:
        """Whether no row at all can match, in whatever partition."""
        return self.condition == NEVER or self.choices == ()

    def manifest_filter(self) -> str | None:
        """What the filter implies for the manifest's partition columns, as SQL; None when it implies nothing."""
        if self.matches_nothing:
            return "false"
        if self.choices is None or len(self.choices) > _MOST_PUSHED:
            tests = [self._pushed(field) for field in self.spec.fields]
            return conjunction([test for test in tests if test is not None]) or None
        texts = []
        for choice in self.choices:
            tests = [self._test(field, choice) for field in self.spec.fields]
            text = conjunction([test for test in tests if test is not None])
            if not text:
                return None
            texts.append(text)
        return disjunction(list(dict.fromkeys(texts)))

    def keep(self, values: pa.Table) -> pa.Array:
        """Which leaves may hold a matching row, given their ``partition_field_<id>`` columns."""
        leaves = LeafValues(self.spec.fields, self.columns, values, self.images)
        if self.choices is None:
            return pa.array(_followed(self.condition, leaves))
        kept = leaves.none()
        for choice in self.choices:
            kept = kept | leaves.meeting(choice)
        return pa.array(kept)

    def explain(self) -> list[str]:
        """One line a partition field: what was pushed to the manifest, or why it cannot prune."""
        if self.matches_nothing:
            return ["the filter matches no row: nothing is read"]
        return [f"{field.field_id}: {self._account(field)}" for field in self.spec.fields]

    def _account(self, field: PartitionField) -> str:
        pushed = self._pushed(field)
        if pushed is None:
            return f"not pruned, {self._excuse(field)}"
        hashed = field.transform is None or not field.transform.maps_ranges
        return f"{pushed}; {self._excuse(field)}" if hashed and pushed.endswith(" IS NOT NULL") else pushed

    def _image(self, field: PartitionField, constraint: Constraint) -> Domain | None:
        domains = source_domains(field.source_ids, constraint, self.columns)
        if len(domains) == 1 and domains[0] is not None:
            found = self.images.image(field, domains[0], field.result_type)
        else:
            found = image(field, domains, field.result_type)
        condition = term_domain(field, constraint, self.columns, field.result_type)
        return found if condition is None else condition if found is None else found.intersect(condition)

    def _test(self, field: PartitionField, constraint: Constraint) -> str | None:
        found = self._image(field, constraint)
        return None if found is None else condition(quoted_column(field), found)

    def _pushed(self, field: PartitionField) -> str | None:
        """What the whole filter implies for one field on its own."""
        if self.choices is None:
            found = self._implied(field, self.condition)
        else:
            images = [self._image(field, choice) for choice in self.choices]
            known = [each for each in images if each is not None]
            found = Domain.united(known) if known and len(known) == len(images) else None
        return None if found is None else condition(quoted_column(field), found)

    def _implied(self, field: PartitionField, condition: Formula) -> Domain | None:
        if isinstance(condition, Some):
            images = [self._implied(field, part) for part in condition.parts]
            known = [each for each in images if each is not None]
            return Domain.united(known) if known and len(known) == len(images) else None
        images = [self._image(field, condition.domains), *(self._implied(field, part) for part in condition.parts)]
        known = [each for each in images if each is not None]
        return reduce(Domain.intersect, known) if known else None

    def _excuse(self, field: PartitionField) -> str:
        if field.opaque:
            return f"its values are held as {field.result_type}, which does not keep them exactly"
        removed = [source for source in field.source_ids if source not in self.columns]
        if removed:
            return "its source column was removed, or is inside another"
        names = [self.columns[source].name for source in field.source_ids]
        spoken = _columns(self.condition)
        silent = [name for name in names if name not in spoken]
        if silent:
            return f"the filter asks nothing of {', '.join(silent)} that could prune"
        kind = field.transform.name if field.transform is not None else "an expression"
        if field.transform is None or not field.transform.maps_ranges:
            return f"{kind} prunes only on equality, IN and short ranges"
        return "an alternative of the filter leaves it open"


def _followed(condition: Formula, leaves: LeafValues) -> Bools:
    """The leaves that a formula keeps, taken part by part."""
    if isinstance(condition, Some):
        return reduce(lambda kept, part: kept | _followed(part, leaves), condition.parts, leaves.none())
    return reduce(lambda kept, part: kept & _followed(part, leaves), condition.parts, leaves.meeting(condition.domains))


def _columns(condition: Formula) -> set[str]:
    keys = condition.domains if isinstance(condition, Every) else ()
    mine = {name for key in keys for name in ((key,) if isinstance(key, str) else key.columns)}
    return mine.union(*(_columns(part) for part in condition.parts))
