"""What two partitionings have in common over the join keys: values that both sides can derive for every leaf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancepart.model.aliases import Value
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Transform
from lancepart.model.values import canonical, decoded, logical_type
from lancepart.plan.leaf_pruning import column_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinKey:
    """Two columns that must be equal, and the type that they are compared in."""

    left: str
    right: str
    left_type: pa.DataType
    right_type: pa.DataType
    compared: pa.DataType

    @property
    def is_uniform(self) -> bool:
        """Whether both columns hold values of one type, so that any expression gives the same for equal ones."""
        return bool(logical_type(self.left_type) == logical_type(self.right_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFunction:
    """A function of some join keys, by position: equal keys have equal values of it, on whichever side they are."""

    keys: tuple[int, ...]
    transform: Transform | None
    expression: str | None = None
    result_type: pa.DataType = None

    @property
    def keeps_value(self) -> bool:
        """Whether its value is that of the key itself."""
        return self.transform is not None and self.transform.keeps_value

    def can_match(self, value: Value) -> bool:
        """Whether a leaf with this value can hold a row that matches: a transform is NULL only of NULL keys."""
        return value is not None or self.transform is None

    def describe(self, names: Sequence[str]) -> str:
        """The function as ``partition_by`` spells it."""
        own = [names[key] for key in self.keys]
        if self.transform is None:
            return f"expr({self.expression}) of {', '.join(own)}"
        return self.transform.spelled(own)


def offers(spec: PartitionSpec, positions: Mapping[int, int], keys: Sequence[JoinKey]) -> frozenset[KeyFunction]:
    """The values of join keys that a spec's leaves determine; ``positions`` are those of the key columns' field ids."""
    found = (offer(field, positions) for field in spec.fields)
    return frozenset(function for function in found if function is not None and _agrees(function, keys))


def offer(field: PartitionField, positions: Mapping[int, int]) -> KeyFunction | None:
    """A partition field as a function of join keys, if it is known, and over nothing else."""
    unknown = field.transform is not None and not field.transform.is_known
    if field.opaque or field.any_zone or unknown or not set(field.source_ids) <= positions.keys():
        return None
    positions_of_keys = tuple(positions[source] for source in field.source_ids)
    given = None if field.expression is None else field.result_type
    return KeyFunction(
        keys=positions_of_keys, transform=field.transform, expression=field.expression, result_type=given
    )


def _agrees(function: KeyFunction, keys: Sequence[JoinKey]) -> bool:
    """Whether equal keys give equal values though the two columns' types differ."""
    own = [keys[place] for place in function.keys]
    if function.transform is None:
        return all(key.is_uniform for key in own)
    return all(function.transform.agrees(key.left_type, key.right_type) for key in own)


def meet(offered: Iterable[frozenset[KeyFunction]], keys: Sequence[JoinKey]) -> tuple[KeyFunction, ...]:
    """The finest functions of the keys that follow from every one of several sets."""
    sets = iter(offered)
    common = next(sets)
    for other in sets:
        pairs = {_coarser(mine, theirs, keys) for mine in common for theirs in other}
        common = frozenset(
            function
            for function in pairs | _implied(common, other, keys) | _implied(other, common, keys)
            if function is not None
        )
    exact = {function.keys[0] for function in common if function.keeps_value}
    kept = [function for function in common if function.keeps_value or not set(function.keys) <= exact]
    return tuple(sorted(kept, key=lambda function: (function.keys, repr(function))))


def _implied(
    known: frozenset[KeyFunction], wanted: frozenset[KeyFunction], keys: Sequence[JoinKey]
) -> set[KeyFunction | None]:
    """Functions on one side whose arguments the other side knows exactly."""
    exact = {function.keys[0] for function in known if function.keeps_value}
    return {function for function in wanted if set(function.keys) <= exact and _follows(function, keys)}


def _follows(function: KeyFunction, keys: Sequence[JoinKey]) -> bool:
    """Whether a function can be computed from partition values, which do not keep the sign of a float's zero."""
    floats = any(pa.types.is_floating(logical_type(keys[place].left_type)) for place in function.keys)
    return function.expression is None or not floats


def _coarser(mine: KeyFunction, theirs: KeyFunction, keys: Sequence[JoinKey]) -> KeyFunction | None:
    """The finest function that follows from each of two over the same keys."""
    if mine.keys != theirs.keys:
        return None
    if mine == theirs:
        return mine
    if mine.transform is None or theirs.transform is None:
        return None
    common = mine.transform.coarser(theirs.transform, keys[mine.keys[0]].left_type)
    return None if common is None else replace(mine, transform=common)


def key_function_values(
    function: KeyFunction,
    spec: PartitionSpec,
    positions: Mapping[int, int],
    types: Sequence[pa.DataType],
    rows: pa.Table,
) -> pa.Array:
    """Its value for each of a spec's leaves; ``types`` are the key columns' own on this side."""
    fields = [(field, own) for field in spec.fields if (own := offer(field, positions)) is not None]
    for field, own in fields:
        if own == function:
            return column_of(rows, field)
    for field, own in fields:
        if own.keys == function.keys and own.transform is not None and function.transform is not None:
            reduced = own.transform.reduced(column_of(rows, field), function.transform)
            if reduced is not None:
                return reduced
    exact = {own.keys[0]: field for field, own in fields if own.keeps_value}
    arrays = [column_of(rows, exact[place]).cast(logical_type(types[place])) for place in function.keys]
    return canonical(decoded(_applied(function, arrays)))


def _applied(function: KeyFunction, arrays: Sequence[pa.Array]) -> pa.Array:
    if function.transform is not None:
        return function.transform.apply(arrays)
    sources = tuple(range(len(arrays)))
    field = PartitionField(
        field_id="share", source_ids=sources, expression=function.expression, result_type=function.result_type
    )
    return field.apply(arrays)
