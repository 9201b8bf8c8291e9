"""Pruning leaves by their partition values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.format.names import partition_column
from lancepart.model.calendar import PARTS, cells, hours_of
from lancepart.model.domain import Domain, Span
from lancepart.model.ordering import ordering
from lancepart.model.spec import PartitionField
from lancepart.model.terms import Term
from lancepart.model.values import canonical, decoded
from lancepart.plan.formula import Constraint
from lancepart.plan.image_memo import Images
from lancepart.plan.transform_image import (
    MOST_VALUES,
    applied,
    combinations,
    image,
    source_domains,
    term_domain,
)

Bools = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
_MOST_TRIALS = 2_000_000


class LeafValues:
    """The partition values of many leaves of one spec version, tested one constraint after the other."""

    def __init__(
        self, fields: Sequence[PartitionField], columns: Mapping[int, pa.Field], values: pa.Table, images: Images
    ) -> None:
        fields = [field for field in fields if not field.opaque]
        self._fields = tuple(fields)
        self._columns = columns
        self._images = images
        self._count = values.num_rows
        self._values = {field.field_id: column_of(values, field) for field in fields}
        self._groups: dict[int, list[PartitionField]] = {}
        for field in fields:
            if len(field.source_ids) == 1 and field.source_ids[0] in columns:
                self._groups.setdefault(field.source_ids[0], []).append(field)
        self._joint = [field for field in fields if len(field.source_ids) > 1]
        self._entangled = [
            family for family in _families(fields) if len(family) > 1 and any(f in self._joint for f in family)
        ]
        self._known: dict[tuple[int, Domain], Bools] = {}
        self._coded: dict[str, tuple[pa.Array, npt.NDArray[np.int32]]] = {}
        self._dated: dict[int, tuple[dict[str, Longs], Bools, Longs]] = {}

    def all(self) -> Bools:
        """Every leaf."""
        return np.ones(self._count, dtype=bool)

    def none(self) -> Bools:
        """No leaf."""
        return np.zeros(self._count, dtype=bool)

    def meeting(self, constraint: Constraint) -> Bools:
        """The leaves that may hold a row within the constraint's domains."""
        kept = self.all()
        for source, fields in self._groups.items():
            domain = constraint.get(self._columns[source].name)
            if domain is not None:
                kept &= self._group(source, fields, domain)
        for field in self._fields if any(isinstance(key, Term) for key in constraint) else ():
            required = term_domain(field, constraint, self._columns, self._values[field.field_id].type)
            if required is not None:
                kept &= self._masked(field, required)
        for field in self._joint:
            if kept.any():
                kept = self._jointly(field, constraint, kept)
        for family in self._entangled:
            kept &= self._family(family, constraint)
        return kept

    def _group(self, source: int, fields: list[PartitionField], domain: Domain) -> Bools:
        """What all fields over one column say together."""
        if (source, domain) not in self._known:
            self._known[source, domain] = self._ask_group(fields, domain)
        return self._known[source, domain]

    def _ask_group(self, fields: list[PartitionField], domain: Domain) -> Bools:
        identity = next((field for field in fields if field.keeps_value), None)
        if identity is not None:
            return self._field(identity, domain)
        kept = self.all()
        parts = {f.transform.name: self._values[f.field_id] for f in fields if f.transform and f.transform.is_time_part}
        if parts:
            any_zone = any(field.any_zone for field in fields)
            kept &= self._in_calendar(fields[0].source_ids[0], parts, domain, any_zone=any_zone)
        for field in fields:
            if field.transform is None or not field.transform.is_time_part:
                kept &= self._field(field, domain)
        return self._together(fields, domain, parts, kept) if len(fields) > max(len(parts), 1) else kept

    def _field(self, field: PartitionField, domain: Domain) -> Bools:
        found = self._images.image(field, domain, self._values[field.field_id].type)
        return self.all() if found is None else self._masked(field, found)

    def _masked(self, field: PartitionField, domain: Domain) -> Bools:
        """Which leaves have their partition value in a domain, each distinct value tested once."""
        if field.field_id not in self._coded:
            coded = self._values[field.field_id].dictionary_encode(null_encoding="encode")
            self._coded[field.field_id] = (coded.dictionary, coded.indices.to_numpy(zero_copy_only=False))
        distinct, codes = self._coded[field.field_id]
        kept: Bools = _numpy(domain.mask(distinct))[codes]
        return kept

    def _in_calendar(self, source: int, parts: Mapping[str, pa.Array], domain: Domain, *, any_zone: bool) -> Bools:
        """Which leaves have the parts of some instant in a domain, each combination of parts tested once."""
        if source not in self._dated:
            self._dated[source] = _dated(parts)
        distinct, missing, codes = self._dated[source]
        touched: Bools = np.where(missing, domain.null, hours_of(domain, any_zone=any_zone).touch(distinct))
        return touched[codes]

    def _together(
        self, fields: list[PartitionField], domain: Domain, parts: Mapping[str, pa.Array], kept: Bools
    ) -> Bools:
        """Try each source value that is left: for fields that only together rule a leaf out."""
        narrow = domain.intersect(self._held(fields, domain, parts, kept))
        tried = combinations([narrow])
        return kept if tried is None else kept & self._tried(fields, dict.fromkeys(fields[0].source_ids, tried[0]))

    def _family(self, family: list[PartitionField], constraint: Constraint) -> Bools:
        """Fields that share columns, tried together where those columns have few values."""
        sources = list(dict.fromkeys(source for field in family for source in field.source_ids))
        tried = combinations(source_domains(sources, constraint, self._columns))
        return self.all() if tried is None else self._tried(family, dict(zip(sources, tried, strict=True)))

    def _tried(self, fields: Sequence[PartitionField], sources: Mapping[int, pa.Array]) -> Bools:
        """The leaves whose values some row of source values produces."""
        pairs = []
        for field in fields:
            if field.any_zone:
                continue
            values, result = self._values[field.field_id], applied(field, [sources[at] for at in field.source_ids])
            if result is not None and result.type == values.type:
                pairs.append((values, result))
        return _among(pairs) if pairs else self.all()

    def _held(self, fields: list[PartitionField], domain: Domain, parts: Mapping[str, pa.Array], kept: Bools) -> Domain:
        """Every source value that the leaves kept so far can hold, as far as spans can say it."""
        everything, mask = Domain.everything(domain.order), pa.array(kept)
        leading = list(takewhile(parts.__contains__, PARTS))
        if leading:
            given = {part: _integers(parts[part].filter(mask)) for part in leading}
            spans = cells(given, domain.order.type, MOST_VALUES)
            return everything if spans is None else Domain.spanning(domain.order, spans, null=True)
        for field in fields if domain.order.kind == "integer" else ():
            spans = self._source_spans(field, mask)
            if spans is not None:
                return Domain.spanning(domain.order, spans, null=True)
        return everything

    def _source_spans(self, field: PartitionField, mask: pa.Array) -> list[Span] | None:
        """The numbers that the field maps to the values of some leaves, if they are few and it can be inverted."""
        if field.transform is None or not field.transform.keeps_type:
            return None
        distinct = self._values[field.field_id].filter(mask).drop_null().unique().to_pylist()
        found = [field.transform.source_span(value) for value in distinct]
        spans = [span for span in found if span is not None]
        few = sum(high - low for low, high in spans) <= MOST_VALUES
        return spans if few and len(spans) == len(found) else None

    def _jointly(self, field: PartitionField, constraint: Constraint, kept: Bools) -> Bools:
        """A field over several columns: each either has few values or is known from the leaf itself."""
        domains = source_domains(field.source_ids, constraint, self._columns)
        found = image(field, domains, self._values[field.field_id].type)
        if found is not None:
            kept = kept & self._masked(field, found)
        known = [self._identity(field, source) for source in field.source_ids]
        free = [domain for domain, fixed in zip(domains, known, strict=True) if fixed is None]
        if not free or len(free) == len(domains):
            return kept
        tried = combinations(free)
        at = np.flatnonzero(kept)
        if tried is None or len(at) * len(tried[0]) > _MOST_TRIALS:
            return kept
        return self._each(field, _sources(known, tried, at), at, kept)

    def _each(
        self, field: PartitionField, sources: Sequence[pa.Array], at: npt.NDArray[np.int64], kept: Bools
    ) -> Bools:
        """Of the leaves at some positions those whose value is that of one of their trials."""
        trials = len(sources[0]) // max(len(at), 1)
        expected = self._values[field.field_id].take(pa.array(np.repeat(at, trials)))
        results = applied(field, sources)
        if results is None or results.type != expected.type:
            return kept
        left, right = _comparable(results), _comparable(expected)
        same = pc.or_(pc.fill_null(pc.equal(left, right), fill_value=False), pc.and_(left.is_null(), right.is_null()))
        found = kept.copy()
        found[at] = _numpy(same).reshape(len(at), trials).any(axis=1)
        return found

    def _identity(self, joint: PartitionField, source: int) -> pa.Array | None:
        """A column's value in each leaf, when the spec also partitions by the column itself."""
        for field in self._groups.get(source, []):
            values = self._values[field.field_id]
            joined = joint.transform is not None and joint.transform.joins_floats
            if field.keeps_value and (joined or not pa.types.is_floating(values.type)):
                return values
        return None


def _families(fields: Sequence[PartitionField]) -> list[list[PartitionField]]:
    """The fields in groups that share source columns, directly or through one another."""
    families: list[list[PartitionField]] = []
    for field in fields:
        kin = [family for family in families if any(set(field.source_ids) & set(each.source_ids) for each in family)]
        families = [family for family in families if family not in kin]
        families.append([*(each for family in kin for each in family), field])
    return families


def column_of(values: pa.Table, field: PartitionField) -> pa.Array:
    """One partition field's column of a table of leaves, as one array; floats with one zero and one NaN."""
    return canonical(decoded(values.column(partition_column(field.field_id))))


def _dated(parts: Mapping[str, pa.Array]) -> tuple[dict[str, Longs], Bools, Longs]:
    """The distinct combinations of time parts, which of them are NULL, and the position of each leaf in them."""
    plain = {part: _integers(values) for part, values in parts.items()}
    missing = np.zeros(len(next(iter(plain.values()))), dtype=bool)
    packed = missing.astype(np.int64)
    for part in filter(parts.__contains__, PARTS):
        missing |= _numpy(parts[part].is_null())
        packed = packed * 64 + plain[part]
    coded = pa.array(packed * 2 + missing).dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    first = np.zeros(len(coded.dictionary), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return {part: values[first] for part, values in plain.items()}, missing[first], codes


def _integers(values: pa.Array) -> Longs:
    numbers: Longs = pc.fill_null(values, 1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _numpy(mask: pa.Array) -> Bools:
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)


def _comparable(values: pa.Array) -> pa.Array:
    order = ordering(values.type)
    return values if order is None else order.comparable(values)


def _among(pairs: Sequence[tuple[pa.Array, pa.Array]]) -> Bools:
    """Whether each row of the left columns is among the rows of the right ones."""
    left = np.zeros(len(pairs[0][0]), dtype=np.int64)
    right = np.zeros(len(pairs[0][1]), dtype=np.int64)
    for values, tried in pairs:
        distinct = _comparable(tried).unique()
        base = len(distinct) + 1
        left = left * base + pc.fill_null(pc.index_in(_comparable(values), distinct), base - 1).to_numpy()
        right = right * base + pc.index_in(_comparable(tried), distinct).to_numpy()
    return np.isin(left, right)


def _sources(known: Sequence[pa.Array | None], tried: Sequence[pa.Array], at: npt.NDArray[np.int64]) -> list[pa.Array]:
    """Source columns that pair each leaf's own values with every combination of the others."""
    trials = len(tried[0])
    rows, choices = pa.array(np.repeat(at, trials)), pa.array(np.tile(np.arange(trials), len(at)))
    rest = iter(tried)
    return [next(rest).take(choices) if fixed is None else fixed.take(rows) for fixed in known]
