"""What makes a directory catalog a partitioned table: its schema and specs, in the manifest's metadata map."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TypeVar

import pyarrow as pa

from lancepart.errors import InvalidInputError, InvalidTableStateError, TableNotFoundError, UnsupportedOperationError
from lancepart.format.names import (
    CHANGE,
    FEATURES,
    FORMAT,
    FORMAT_VERSION,
    LAST_FIELD,
    MODE,
    ORIGIN,
    PAST_NAMES,
    SALT,
    SCHEMA,
    SPEC_PREFIX,
)
from lancepart.model import draft
from lancepart.model.aliases import Value
from lancepart.model.schema import (
    FIELD_ID,
    dumps,
    field_id,
    field_ids,
    max_field_id,
    require_field_ids,
    schema_from_json,
    schema_to_json,
)
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.trust import check_stored, trusted

STRONG, WEAK = "strong", "weak"
FOREIGN = "foreign"
MANIFEST, DRAFT, HIVE, PLAIN = "manifest", "draft", "hive", "plain"

_SPEC_KEY = re.compile(rf"^{SPEC_PREFIX}(\d+)$")

Read = TypeVar("Read")


@dataclass(frozen=True, kw_only=True)
class TableMetadata:
    """A partitioned table's definition at one snapshot; ``change`` counts the changes of schema and specs.

    ``past`` holds the names that columns no longer have, by field id, those of removed columns too. A ``foreign``
    table was made by another client.
    """

    schema: pa.Schema
    specs: tuple[PartitionSpec, ...]
    transactions: str
    salt: str
    last_field_id: int
    change: int = 0
    layout: str = MANIFEST
    past: tuple[tuple[int, tuple[str, ...]], ...] = ()
    foreign: bool = False

    @property
    def spec(self) -> PartitionSpec:
        """The spec that new rows are written under."""
        return self.specs[-1]

    @cached_property
    def columns(self) -> dict[int, pa.Field]:
        """The columns by field id."""
        return {int(field_id(field) or 0): field for field in self.schema}

    @cached_property
    def owners(self) -> dict[int, pa.Field]:
        """The columns by the id of any field in them, nested ones too."""
        return {number: field for field in self.schema for number in field_ids([field])}

    @cached_property
    def plain_schema(self) -> pa.Schema:
        """The schema as its user gave it, without field ids."""
        return pa.schema([without_ids(field) for field in self.schema], metadata=self.schema.metadata)

    @property
    def partition_fields(self) -> dict[str, PartitionField]:
        """Every partition field of any spec, by its id; the newest spelling of each."""
        return {field.field_id: field for spec in self.specs for field in spec.fields}

    def spec_of(self, number: int) -> PartitionSpec | None:
        """The spec with an id."""
        return next((spec for spec in self.specs if spec.id == number), None)

    def to_properties(self) -> dict[str, str]:
        """The entries of the manifest's metadata map."""
        specs = {f"{SPEC_PREFIX}{spec.id}": spec.dumps() for spec in self.specs}
        return {
            SCHEMA: dumps(schema_to_json(self.schema)),
            **specs,
            FORMAT: json.dumps({"version": FORMAT_VERSION, "features": sorted(FEATURES)}),
            MODE: self.transactions,
            SALT: self.salt,
            LAST_FIELD: str(self.last_field_id),
            CHANGE: str(self.change),
            PAST_NAMES: json.dumps({str(number): list(names) for number, names in self.past}),
            **({ORIGIN: FOREIGN} if self.foreign else {}),
        }

    def changed(self, **values: Value) -> TableMetadata:
        """The definition after a change, counted."""
        return replace(self, change=self.change + 1, **values)


def is_partitioned(properties: Mapping[str, str]) -> bool:
    """Whether a metadata map is that of a partitioned table: it has at least one spec."""
    return any(_SPEC_KEY.match(key) for key in properties)


def is_draft(properties: Mapping[str, str]) -> bool:
    """Whether a partitioned table's specs are those of the expression draft: arrays, all of them."""
    texts = [text for key, text in properties.items() if _SPEC_KEY.match(key)]
    arrays = [text for text in texts if draft.is_array(text)]
    if arrays and len(arrays) != len(texts):
        raise InvalidTableStateError("some partition specs are arrays of the older draft, and others are not")
    return bool(arrays)


def read_metadata(properties: Mapping[str, str], *, has_read_version: bool, root: str) -> TableMetadata:
    """Read and check a table's definition, once for as long as it stays; an invalid one says which field and why."""
    return _read(tuple(properties.items()), has_read_version, root)


@lru_cache(maxsize=64)
def _read(entries: tuple[tuple[str, str], ...], has_read_version: bool, root: str) -> TableMetadata:
    properties = dict(entries)
    if not is_partitioned(properties):
        raise TableNotFoundError(f"there is no partitioned table at {root!r}: make one with lancepart.create_table")
    _refuse_newer(properties)
    schema = _schema(properties)
    specs = _specs(properties)
    layout = DRAFT if is_draft(properties) else MANIFEST
    if layout == DRAFT:
        specs = tuple(_with_transforms(spec, schema) for spec in specs)
    for spec in specs:
        _checked(f"{SPEC_PREFIX}{spec.id}", partial(check_stored, spec, schema))
    _refuse_reused(specs)
    foreign = FORMAT not in properties or properties.get(ORIGIN) == FOREIGN
    specs = tuple(trusted(spec, schema, foreign=foreign) for spec in specs)
    mode = properties.get(MODE, STRONG if has_read_version else WEAK)
    if mode not in (STRONG, WEAK):
        raise InvalidTableStateError(f"{MODE} is {mode!r}, neither {STRONG} nor {WEAK}")
    used = [number for spec in specs for field in spec.fields for number in field.source_ids]
    return TableMetadata(
        schema=schema,
        specs=specs,
        transactions=mode,
        salt=properties.get(SALT, ""),
        last_field_id=max(_number(properties, LAST_FIELD, -1), max_field_id(schema), *used, 0),
        change=_number(properties, CHANGE, 0),
        layout=layout,
        past=_past(properties),
        foreign=foreign,
    )


def _refuse_reused(specs: Sequence[PartitionSpec]) -> None:
    """A field id names one field in all specs: its column of the manifest holds the values of one function."""
    known: dict[str, tuple[int, PartitionField]] = {}
    for spec in specs:
        for field in spec.fields:
            number, other = known.setdefault(field.field_id, (spec.id, field))
            if not field.same_values(other):
                raise InvalidTableStateError(
                    f"partition field {field.field_id!r} means one thing in {SPEC_PREFIX}{number} and for another "
                    f"in {SPEC_PREFIX}{spec.id}: a field_id must never be reused"
                )


def _refuse_newer(properties: Mapping[str, str]) -> None:
    spelled = properties.get(FORMAT)
    if spelled is None:
        return
    try:
        given = json.loads(spelled)
        version, features = int(given["version"]), set(given.get("features", ()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidTableStateError(f"{FORMAT} is not understood: {spelled!r}") from None
    unknown = sorted(features - FEATURES)
    if version > FORMAT_VERSION or unknown:
        needs = f"format {version}" if version > FORMAT_VERSION else f"the features {', '.join(unknown)}"
        raise UnsupportedOperationError(f"the table needs {needs}, which this lancepart lacks: upgrade lancepart")


def requiring(properties: Mapping[str, str], feature: str) -> dict[str, str]:
    """The properties by which clients must know one more feature; none if it is required already.

    A table of another client stays known as one.
    """
    given = json.loads(properties.get(FORMAT, "{}"))
    features = {*given.get("features", ()), feature}
    if FORMAT in properties and feature in given.get("features", ()):
        return {}
    spelled = json.dumps({**given, "version": given.get("version", FORMAT_VERSION), "features": sorted(features)})
    return {FORMAT: spelled, **({} if FORMAT in properties else {ORIGIN: FOREIGN})}


def _schema(properties: Mapping[str, str]) -> pa.Schema:
    if SCHEMA not in properties:
        raise InvalidTableStateError("the table has partition specs but no 'schema' property")

    def read() -> pa.Schema:
        schema = schema_from_json(properties[SCHEMA])
        require_field_ids(schema)
        return schema

    return _checked(SCHEMA, read)


def _specs(properties: Mapping[str, str]) -> tuple[PartitionSpec, ...]:
    found: dict[int, PartitionSpec] = {}
    for key, text in properties.items():
        if match := _SPEC_KEY.match(key):
            number = int(match.group(1))
            read = draft.spec_from_array if draft.is_array(text) else _spec_from_object
            spec = _checked(key, partial(read, number, text))
            if spec.id != number:
                raise InvalidTableStateError(f"{key} holds a spec with id {spec.id}")
            found[spec.id] = spec
    return tuple(found[number] for number in sorted(found))


def _spec_from_object(number: int, text: str) -> PartitionSpec:
    return PartitionSpec.from_json(text)


def _with_transforms(spec: PartitionSpec, schema: pa.Schema) -> PartitionSpec:
    """A spec of the draft with the transforms that its expressions are, so that ranges prune by them too."""
    fields = [
        draft.recognised(field, [None if source is None else source.type for source in field.sources(schema)])
        for field in spec.fields
    ]
    return replace(spec, fields=tuple(fields))


def _checked(key: str, read: Callable[[], Read]) -> Read:
    try:
        return read()
    except InvalidTableStateError as error:
        raise InvalidTableStateError(f"property {key!r}: {error}") from None
    except InvalidInputError as error:
        raise InvalidTableStateError(f"property {key!r} is not valid: {error}") from None


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(properties.get(key, default))
    except ValueError:
        raise InvalidTableStateError(f"property {key!r} is not a number: {properties[key]!r}") from None


def _past(properties: Mapping[str, str]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    spelled = properties.get(PAST_NAMES, "{}")
    try:
        return tuple((int(number), tuple(map(str, names))) for number, names in json.loads(spelled).items())
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise InvalidTableStateError(f"property {PAST_NAMES!r} is not understood: {spelled!r}") from None


def without_ids(field: pa.Field) -> pa.Field:
    """A field without its id, nested ones too."""
    kept = {key: value for key, value in (field.metadata or {}).items() if key != FIELD_ID.encode()}
    return pa.field(field.name, map_children(field.type, without_ids), field.nullable, kept or None)


def as_stored(field: pa.Field) -> pa.Field:
    """A field in the type that Lance returns: views are returned as plain types; unsupported types are refused."""
    kinds = pa.types
    if kinds.is_decimal32(field.type) or kinds.is_decimal64(field.type):
        raise InvalidInputError(f"column {field.name!r}: Lance does not store {field.type}; use decimal128")
    if kinds.is_string_view(field.type) or kinds.is_binary_view(field.type):
        return field.with_type(pa.string() if kinds.is_string_view(field.type) else pa.binary())
    return field.with_type(map_children(field.type, as_stored))


def map_children(arrow_type: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A type with each of its nested fields changed."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([change(arrow_type.field(i)) for i in range(arrow_type.num_fields)])
    if pa.types.is_map(arrow_type):
        return pa.map_(change(arrow_type.key_field), change(arrow_type.item_field), arrow_type.keys_sorted)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(change(arrow_type.value_field), arrow_type.list_size)
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(change(arrow_type.value_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(change(arrow_type.value_field))
    return arrow_type
