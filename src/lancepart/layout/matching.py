"""Matching the columns of a leaf to those of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import pyarrow as pa

from lancepart.errors import InvalidTableStateError
from lancepart.layout.columns import bare, leaf_field_id, leaf_schema, physical_name, stores
from lancepart.layout.evolution import widens
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import field_id
from lancepart.model.values import logical_type
from lancepart.storage.leaf_handle import LeafShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """A leaf's columns by the table's field ids, their types, and the values that its path holds."""

    names: dict[int, str]
    types: dict[int, pa.DataType]
    constants: dict[int, pa.Scalar | None] = dataclass_field(default_factory=dict)

    @classmethod
    def of(cls, shape: LeafShape, metadata: TableMetadata, leaf: str) -> Matching:
        """Match the columns of a leaf by the ids that lancepart wrote into it, and those of other writers by more.

        A leaf that is not consistent with the table is an error that names it.
        """
        keyed = _keyed(shape.schema, leaf)
        unkeyed = [
            (field, number)
            for field, number in zip(shape.schema, shape.native_ids, strict=True)
            if leaf_field_id(field) is None
        ]
        native = bool(unkeyed) and leaf_field_id(shape.schema.field(0)) is None
        found = _Foreign(metadata, keyed, unkeyed, native=native, leaf=leaf).matched()
        names = {**{number: field.name for number, field in keyed.items()}, **found}
        made = cls(names=names, types={number: shape.schema.field(name).type for number, name in names.items()})
        made._check(metadata, leaf, native=native)
        return made

    @classmethod
    def by_name(cls, leaf: pa.Schema, schema: pa.Schema, constants: Mapping[int, pa.Scalar | None]) -> Matching:
        """Match a leaf's columns by their names; what the path holds is never taken from the leaf."""
        kept = [field for field in schema if field_id(field) not in constants]
        wanted = zip((int(field_id(field) or 0) for field in kept), leaf_schema(kept).names, strict=True)
        names = {number: name for number, name in wanted if name in leaf.names}
        types = {number: leaf.field(name).type for number, name in names.items()}
        return cls(names=names, types=types, constants=dict(constants))

    def missing(self, schema: pa.Schema) -> list[pa.Field]:
        """The columns that the leaf does not have."""
        return [field for field in schema if field_id(field) not in self.names]

    def narrower(self, schema: pa.Schema) -> list[pa.Field]:
        """The columns whose values the leaf's own type does not hold, from before they were widened.

        A leaf may also be ahead: another writer knew of a widening that this schema does not have yet.
        """
        return [
            field
            for field in schema
            if (number := field_id(field)) in self.names
            and not stores(self.types[number], field)
            and not widens(field.type, self.types[number])
        ]

    def _check(self, metadata: TableMetadata, leaf: str, *, native: bool) -> None:
        """Refuse an inconsistent match; a leaf may be ahead of a definition that still has a dropped column."""
        for number, field in metadata.columns.items():
            if number in self.types and not is_consistent(self.types[number], field):
                raise InvalidTableStateError(
                    f"leaf {leaf!r} has the column {self.names[number]!r} as {self.types[number]}, and the table has "
                    f"{field.name!r} as {field.type}: write the leaf again in the table's type"
                )
            if native and number not in self.types and not field.nullable:
                raise InvalidTableStateError(
                    f"leaf {leaf!r} lacks the column {field.name!r}, which may not be NULL: write it again with that"
                )


def is_consistent(leaf_type: pa.DataType, field: pa.Field) -> bool:
    """Whether a leaf may have a column of the table in a type: the same, a narrower or wider one, or one encoded else.

    >>> is_consistent(pa.large_string(), pa.field("a", pa.string()))
    True
    >>> is_consistent(pa.string(), pa.field("a", pa.int8()))
    False
    """
    given, wanted = logical_type(leaf_type), logical_type(field.type)
    if stores(leaf_type, field) or widens(given, wanted) or widens(wanted, given):
        return True
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return bool(given.tz == wanted.tz)
    return bool(_without_offsets(given) == _without_offsets(wanted))


def _without_offsets(arrow_type: pa.DataType) -> pa.DataType:
    """A type with one kind of text, bytes and lists each."""
    kinds = pa.types
    if kinds.is_large_string(arrow_type) or kinds.is_string_view(arrow_type):
        return pa.string()
    if kinds.is_large_binary(arrow_type) or kinds.is_binary_view(arrow_type):
        return pa.binary()
    if kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type):
        return pa.list_(_without_offsets(arrow_type.value_type))
    if kinds.is_struct(arrow_type):
        children = [arrow_type.field(index) for index in range(arrow_type.num_fields)]
        return pa.struct([pa.field(child.name, _without_offsets(child.type)) for child in children])
    return bare(arrow_type)


def _keyed(leaf: pa.Schema, name: str) -> dict[int, pa.Field]:
    """A leaf's columns by the ids of ours that they carry."""
    carried = [(number, field) for field in leaf if (number := leaf_field_id(field)) is not None]
    twice = [number for number, count in Counter(number for number, _ in carried).items() if count > 1]
    if twice:
        raise InvalidTableStateError(f"leaf {name!r} has two columns that carry the field id {twice[0]}")
    return dict(carried)


class _Foreign:
    """The columns of a leaf that carry no id of ours: another writer made them.

    A column whose id in Lance and name are both those of one of the table's, now or in the past, is that one. The
    others are all taken by their names, or all by their ids: by names if the leaf then has all that the table had at
    some moment, since ids only rise; otherwise by ids, on the same condition. If neither holds, the match is an error.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        taken: Mapping[int, pa.Field],
        unkeyed: Sequence[tuple[pa.Field, int]],
        *,
        native: bool,
        leaf: str,
    ) -> None:
        self.columns, self.leaf, self.unkeyed, self.native = metadata.columns, leaf, unkeyed, native
        self.taken = set(taken)
        self.ids = _ids_by_name(metadata)

    def matched(self) -> dict[int, str]:
        """The names of the leaf's columns by the table's field ids."""
        exact = {number: field for field, number in self.unkeyed if self.native and number in self._named(field)}
        rest = [(field, number) for field, number in self.unkeyed if exact.get(number) is not field]
        agreed = {number: field.name for number, field in exact.items() if number in self.columns}
        left = self.columns.keys() - agreed.keys() - self.taken
        by_name, unknown = self._by_name(rest, left)
        by_id = {number: field.name for field, number in rest if self.native and number in left}
        if not by_id or by_id == by_name:
            if unknown and left - by_name.keys() and not agreed and self.native:
                raise self._unclear(unknown[0])
            return agreed | by_name
        whole = not (unknown and left - by_name.keys())
        if whole and self._could_be({**agreed, **by_name}):
            return agreed | by_name
        if self._could_be({**agreed, **by_id}) and self._fit(by_id):
            return agreed | by_id
        raise self._unclear((unknown or list(by_id.values()))[0])

    def _named(self, field: pa.Field) -> Iterable[int]:
        return self.ids.get(field.name, ())

    def _by_name(self, rest: Sequence[tuple[pa.Field, int]], left: Iterable[int]) -> tuple[dict[int, str], list[str]]:
        """Columns by their names, and the names that no column of the table ever had."""
        found: dict[int, str] = {}
        unknown = []
        for field, _ in rest:
            candidates = [number for number in self._named(field) if number not in self.taken]
            if len(candidates) > 1:
                raise self._unclear(field.name)
            if not self._named(field):
                unknown.append(field.name)
            found |= {number: field.name for number in candidates if number in left}
        return found, unknown

    def _could_be(self, found: Mapping[int, str]) -> bool:
        """Whether the columns that a leaf then lacks can all have been added after those that it has."""
        mine = (self.taken | found.keys()) & self.columns.keys()
        return all(number > max(mine, default=-1) for number in self.columns.keys() - mine)

    def _fit(self, found: Mapping[int, str]) -> bool:
        types = {field.name: field.type for field, _ in self.unkeyed}
        return all(is_consistent(types[name], self.columns[number]) for number, name in found.items())

    def _unclear(self, name: str) -> InvalidTableStateError:
        known = ", ".join(repr(field.name) for field in self.columns.values())
        return InvalidTableStateError(
            f"leaf {self.leaf!r} has a column {name!r}, and neither its name nor its field id identifies it among the "
            f"table's ({known}): write the leaf again with the table's columns"
        )


def _ids_by_name(metadata: TableMetadata) -> dict[str, tuple[int, ...]]:
    """The ids of the columns that have a name or had it, removed ones too."""
    found: dict[str, list[int]] = {}
    for number, field in metadata.columns.items():
        for name in dict.fromkeys([field.name, physical_name(field.name, number, set())]):
            found.setdefault(name, []).append(number)
    for number, names in metadata.past:
        for name in names:
            if number not in found.setdefault(name, []):
                found[name].append(number)
    return {name: tuple(numbers) for name, numbers in found.items()}
