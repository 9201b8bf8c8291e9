"""Partition specs: which values a row is partitioned by, and how specs follow one another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import lru_cache

import pyarrow as pa
from lance_namespace_urllib3_client.models.partition_field import PartitionField as PartitionFieldModel
from lance_namespace_urllib3_client.models.partition_spec import PartitionSpec as PartitionSpecModel

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping
from lancepart.model.expressions import Expression
from lancepart.model.html_text import html_record, html_table
from lancepart.model.public import public
from lancepart.model.schema import dumps, field_by_id, source_by_id, type_from_json, type_to_json
from lancepart.model.transforms import Transform, transform_from_json
from lancepart.model.type_names import holds_exactly, kind_of
from lancepart.model.values import logical_type


@public("expression", "field_id", "from_json", "result_type", "source_ids", "to_json", "transform")
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """How one partition value is derived from source columns.

    The values of an ``opaque`` field can't be derived from a table's rows, and with ``any_zone`` the parts of a time
    may be those in UTC or in the column's zone: another client wrote them.
    """

    field_id: str
    """The name of the field, which stands in paths and in ``partition_field_…`` columns of the manifest."""
    source_ids: tuple[int, ...]
    """The field ids of the columns that the value is made of."""
    result_type: pa.DataType
    """The type of the value."""
    transform: Transform | None = None
    """The function that makes the value; None if an expression does."""
    expression: str | None = None
    """The SQL expression that makes the value, over ``col0``, ``col1`` and so on; None if a transform does."""
    opaque: bool = dataclass_field(default=False, compare=False, repr=False)
    any_zone: bool = dataclass_field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.field_id, str) or not self.field_id:
            raise InvalidInputError(f"a partition field needs a non-empty field_id, not {self.field_id!r}")
        if (self.transform is None) == (self.expression is None):
            raise InvalidInputError(f"partition field {self.field_id!r} needs either a transform or an expression")
        if any(letter in self.field_id for letter in ".`"):
            raise InvalidInputError(f"partition field {self.field_id!r}: a field_id may not hold a dot or a backtick")
        object.__setattr__(self, "source_ids", tuple(self.source_ids))
        self._check_sources()
        if self.expression is not None:
            self._naming(lambda: _expression(str(self.expression), len(self.source_ids)))

    def _check_sources(self) -> None:
        ids = self.source_ids
        if not ids or any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in ids):
            raise InvalidInputError(f"partition field {self.field_id!r} needs source_ids from 0 up, not {list(ids)}")
        if self.transform is not None and not self.transform.takes_many and len(ids) != 1:
            name = self.transform.name
            raise InvalidInputError(
                f"partition field {self.field_id!r}: {name} takes exactly one source, not {len(ids)}"
            )

    @property
    def keeps_value(self) -> bool:
        """Whether its value is that of its source column."""
        return self.transform is not None and self.transform.keeps_value

    def _repr_html_(self) -> str:
        made = self.expression if self.transform is None else self.transform.name
        about = {"made by": made, "of the columns with field ids": self.source_ids, "type": self.result_type}
        return html_record(f"partition field {self.field_id}", about)

    def same_values(self, other: PartitionField) -> bool:
        """Whether both fields give the same value for every row, so that they must share their id."""
        mine = (self.source_ids, self.transform, self.expression)
        return mine == (other.source_ids, other.transform, other.expression)

    def check(self, source_types: Sequence[pa.DataType]) -> None:
        """Refuse columns that the field is not defined for, and a result type that is not what it gives."""
        if self.expression is not None:
            expression = _expression(self.expression, len(self.source_ids))
            self._naming(lambda: expression.check(source_types, self.result_type))
        elif self.transform is not None:
            transform = self.transform
            self._naming(lambda: transform.check(source_types))
            given = transform.result_type(source_types)
            if not pa.types.is_null(given) and kind_of(given) != kind_of(self.result_type):
                message = f"{transform.name} gives {given}, which is not the declared {self.result_type}"
                raise InvalidInputError(f"partition field {self.field_id!r}: {message}")

    def holds_exactly(self, source_types: Sequence[pa.DataType]) -> bool:
        """Whether the declared type keeps every value that the field gives."""
        if self.transform is not None:
            given = self.transform.result_type(source_types)
        else:
            expression = _expression(str(self.expression), len(self.source_ids))
            given = pa.null() if expression.unlisted is not None else expression.value_type(source_types)
        return holds_exactly(logical_type(self.result_type), logical_type(given))

    def check_new(self, source_types: Sequence[pa.DataType]) -> None:
        """Check a field of a new spec; more is required of it than of one that exists."""
        if not self.holds_exactly(source_types):
            message = f"the declared {self.result_type} does not keep every value that the field gives"
            raise InvalidInputError(f"partition field {self.field_id!r}: {message}")
        if self.expression is not None:
            expression = _expression(self.expression, len(self.source_ids))
            self._naming(lambda: expression.check_new(source_types, self.result_type))
            self._naming(lambda: expression.refuse_partial_nulls(source_types, self.result_type))

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The partition value of each row, in the declared type; a removed column is an array of nulls."""
        if self.expression is not None:
            return _expression(self.expression, len(self.source_ids)).apply(arrays, self.result_type)
        if self.opaque:
            self.check([array.type for array in arrays])
        values = self.transform.apply(arrays)  # type: ignore[union-attr]
        try:
            return values if values.type == self.result_type else values.cast(self.result_type)
        except pa.ArrowException as error:
            message = f"a value does not fit the declared {self.result_type}: {error}"
            raise InvalidInputError(f"partition field {self.field_id!r}: {message}") from error

    def sources(self, schema: pa.Schema) -> tuple[pa.Field | None, ...]:
        """The source fields in a schema with field ids, nested ones under their paths; None for a removed one."""
        return tuple(source_by_id(schema, number) for number in self.source_ids)

    def sql(self, columns: Sequence[str], *, source_types: Sequence[pa.DataType] = ()) -> str:
        """The field as DataFusion SQL over columns already quoted; for an expression, over ``col0`` and so on."""
        if self.expression is not None:
            return self.expression
        return self.transform.sql(columns, (*source_types, self.result_type)[0])  # type: ignore[union-attr]

    def to_json(self) -> PartitionFieldModel:
        """The field as its model."""
        return PartitionFieldModel(
            field_id=self.field_id,
            source_ids=list(self.source_ids),
            transform=None if self.transform is None else self.transform.to_json(),
            expression=self.expression,
            result_type=type_to_json(self.result_type),
        )

    @classmethod
    def from_json(cls, spelled: PartitionFieldModel | JsonMapping) -> PartitionField:
        """The field that a model describes; an invalid one says which field and why."""
        name = spelled.field_id if isinstance(spelled, PartitionFieldModel) else spelled.get("field_id")
        try:
            model = (
                spelled if isinstance(spelled, PartitionFieldModel) else PartitionFieldModel.from_dict(dict(spelled))
            )
            assert model is not None
            transform = None if model.transform is None else transform_from_json(model.transform)
            result_type = type_from_json(model.result_type)
        except (ValueError, TypeError, AttributeError, InvalidInputError) as error:
            raise InvalidInputError(f"partition field {name!r} is not valid: {error}") from error
        return cls(
            field_id=model.field_id,
            source_ids=tuple(model.source_ids),
            transform=transform,
            expression=model.expression,
            result_type=result_type,
        )

    def _naming(self, action: Callable[[], object]) -> None:
        try:
            action()
        except InvalidInputError as error:
            raise InvalidInputError(f"partition field {self.field_id!r}: {error}") from error


@public("fields", "from_json", "id", "to_json")
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """One version of how a table is partitioned: an id and the fields, outermost first."""

    id: int
    """The number of this version of the partitioning, from 1 up."""
    fields: tuple[PartitionField, ...]
    """What makes the partition values, outermost first; none if the table is not partitioned."""

    def __post_init__(self) -> None:
        if isinstance(self.id, bool) or not isinstance(self.id, int) or self.id < 1:
            raise InvalidInputError(f"a partition spec's id counts from 1, not {self.id!r}")
        object.__setattr__(self, "fields", tuple(self.fields))
        twice = [name for name, count in Counter(field.field_id for field in self.fields).items() if count > 1]
        if twice:
            raise InvalidInputError(f"partition spec {self.id} has the field {twice[0]!r} more than once")
        for position, field in enumerate(self.fields):
            for other in self.fields[:position]:
                if field.same_values(other):
                    raise InvalidInputError(
                        f"partition fields {other.field_id!r} and {field.field_id!r} are the same: leave one out"
                    )

    def _repr_html_(self) -> str:
        made = [field.expression if field.transform is None else field.transform.name for field in self.fields]
        names = [field.field_id for field in self.fields]
        return f"<b>spec {self.id}</b>{html_table(['field', 'made by'], list(zip(names, made, strict=True)))}"

    def check(self, schema: pa.Schema) -> None:
        """Insist that every field is defined over the columns it names; removed ones read as NULL."""
        for field in self.fields:
            for number, column in zip(field.source_ids, field.sources(schema), strict=True):
                if column is None and (nested := field_by_id(schema, number)) is not None:
                    message = f"source {number} ({nested.name!r}) is inside a list or a map, and has no single value"
                    raise InvalidInputError(f"partition field {field.field_id!r}: {message}")
            field.check([pa.null() if column is None else column.type for column in field.sources(schema)])

    def to_json(self) -> PartitionSpecModel:
        """The model that ``partition_spec_v<N>`` holds."""
        return PartitionSpecModel(id=self.id, fields=[field.to_json() for field in self.fields])

    def dumps(self) -> str:
        """The text that ``partition_spec_v<N>`` holds.

        >>> PartitionSpec(id=1, fields=()).dumps()
        '{"id":1,"fields":[]}'
        """
        return dumps(self.to_json())

    @classmethod
    def from_json(cls, spelled: PartitionSpecModel | JsonMapping | str) -> PartitionSpec:
        """The spec that a model, its mapping or its text describes."""
        if isinstance(spelled, str):
            try:
                spelled = json.loads(spelled)
            except (ValueError, RecursionError) as error:
                raise InvalidInputError(f"a partition spec is not valid JSON: {error}") from error
        given = spelled.to_dict() if isinstance(spelled, PartitionSpecModel) else spelled
        if not isinstance(given, Mapping) or not isinstance(given.get("fields"), list):
            raise InvalidInputError(f"a partition spec is an object with an id and fields, not {given!r}")
        fields = given["fields"]
        wrong = [field for field in fields if not isinstance(field, Mapping)]
        if wrong:
            raise InvalidInputError(f"a partition field is an object, not {wrong[0]!r}")
        return cls(id=given.get("id"), fields=tuple(PartitionField.from_json(field) for field in fields))  # type: ignore[arg-type]


def evolve(existing: Sequence[PartitionSpec], new_fields: Sequence[PartitionField]) -> PartitionSpec:
    """The next spec: a field that some spec has already keeps its id, any other gets one never used before."""
    known = [field for spec in existing for field in spec.fields]
    taken = {field.field_id.lower() for field in known}
    chosen: list[PartitionField] = []
    for field in new_fields:
        same = next((old for old in known if old.same_values(field)), None)
        if same is None:
            same = replace(field, field_id=unused_id(field.field_id, taken))
        elif kind_of(same.result_type) != kind_of(field.result_type):
            message = f"it stands in an older spec with result type {same.result_type}, not {field.result_type}"
            raise InvalidInputError(f"partition field {field.field_id!r}: {message}")
        taken.add(same.field_id.lower())
        chosen.append(same)
    return PartitionSpec(id=max((spec.id for spec in existing), default=0) + 1, fields=tuple(chosen))


def unused_id(wanted: str, taken: set[str]) -> str:
    """The wanted id, or the same with the first number that makes it new, whatever its case.

    >>> unused_id("Day", {"day", "day_2"})
    'Day_3'
    """
    if wanted.lower() not in taken:
        return wanted
    number = 2
    while f"{wanted}_{number}".lower() in taken:
        number += 1
    return f"{wanted}_{number}"


@lru_cache(maxsize=512)
def _expression(sql: str, arity: int) -> Expression:
    return Expression(sql, arity)
