"""Filters given as pyarrow expressions, as SQL: read from the form in which Arrow itself stores an expression."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.quoting import quote_identifier, quote_literal, quote_string

_COMPARISONS = {"equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_PARTS = frozenset({"year", "month", "day", "hour"})
_CASTS = {pa.float64(): "DOUBLE", pa.int64(): "BIGINT"}
_SKIP, _EMIT_NULL = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A filter as SQL that matches no fewer rows, None for nothing said; ``exact`` if it matches the very same.

    ``columns`` are those that the filter reads, and ``unknown`` is a part of it that has no SQL.
    """

    sql: str | None
    exact: bool
    columns: frozenset[str]
    unknown: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """An operand: its SQL, its kind as far as comparisons care, and whether it is a zero or NaN."""

    sql: str
    kind: str
    delicate: bool = False


class _ArrowSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


def translated(expression: pc.Expression, schema: pa.Schema, *, trusting: bool = False) -> Translated:
    """A pyarrow expression as SQL over a schema.

    ``trusting`` lets SQL's own meaning decide where pyarrow's differs: of NaN, zeros with a sign, and mixed types.

    >>> translated((pc.field("n") > 5) & pc.field("s").isin(["a"]), pa.schema([("n", "int64"), ("s", "string")])).sql
    "((`n` > 5) AND ((`s` IN ('a')) AND `s` IS NOT NULL))"
    """
    try:
        (stored,) = expression.__reduce__()[1]
        reader = pa.ipc.open_file(stored)
        batch = reader.get_batch(0)
        steps = list(_pairs(reader.schema))
    except (pa.ArrowException, ValueError) as error:
        return Translated(sql=None, exact=False, columns=frozenset(schema.names), unknown=str(error))
    return _Translator(schema, batch, steps, trusting=trusting).whole()


def _pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The metadata of a schema with the keys that repeat, which pyarrow shows once."""
    found = _ArrowSchema()
    schema._export_to_c(ctypes.addressof(found))
    try:
        raw = found.metadata
        if raw is None:
            return
        position = raw + 4
        for _ in range(ctypes.c_int32.from_address(raw).value):
            texts = []
            for _ in range(2):
                size = ctypes.c_int32.from_address(position).value
                texts.append(ctypes.string_at(position + 4, size).decode())
                position += 4 + size
            yield texts[0], texts[1]
    finally:
        pa.Schema._import_from_c(ctypes.addressof(found))


class _Translator:
    """Reads one stored expression from left to right."""

    def __init__(
        self, schema: pa.Schema, batch: pa.RecordBatch, steps: Sequence[tuple[str, str]], *, trusting: bool
    ) -> None:
        self.schema, self.batch, self.steps, self.trusting = schema, batch, steps, trusting
        self.at = 0
        self.columns: set[str] = set()

    def whole(self) -> Translated:
        """The whole filter."""
        found = self._filter()
        return replace(found, columns=frozenset(self.columns))

    def _filter(self) -> Translated:
        key, value = self.steps[self.at]
        if key == "literal":
            self.at += 1
            literal = self._scalar(value).as_py()
            return _said({True: "true", False: "false"}.get(literal, "arrow_cast(NULL, 'Boolean')"))
        if key in ("field_ref", "nested_field_ref"):
            operand = self._value()
            return _said(operand.sql) if operand is not None and operand.kind == "bool" else _unsaid("a column")
        self.at += 1
        return self._call(value)

    def _call(self, name: str) -> Translated:
        if name in ("and_kleene", "or_kleene", "and", "or"):
            parts = self._operands(name)
            return self._chain(name, parts)
        if name == "invert":
            (part,) = self._operands(name)
            return _said(f"(NOT {part.sql})") if part.sql is not None and part.exact else _unsaid(part.unknown or name)
        values, options = self._arguments(name)
        if any(value is None for value in values):
            return _unsaid(name)
        known = [value for value in values if value is not None]
        if name in _COMPARISONS:
            return self._comparison(name, known[0], known[1])
        return self._function(name, known[0], options) if known else _unsaid(name)

    def _operands(self, name: str) -> list[Translated]:
        parts = []
        while self.steps[self.at][0] != "end":
            parts.append(self._filter())
        self.at += 1
        return parts

    def _chain(self, name: str, parts: Sequence[Translated]) -> Translated:
        unknown = next((part.unknown for part in parts if part.unknown is not None), None)
        exact = all(part.exact for part in parts) and (name.endswith("kleene") or self.trusting)
        said = [part.sql for part in parts if part.sql is not None]
        if not said or (name.startswith("or") and len(said) < len(parts)):
            return _unsaid(unknown)
        joined = f" {name.split('_', maxsplit=1)[0].upper()} ".join(said)
        return Translated(sql=f"({joined})", exact=exact, columns=frozenset(), unknown=unknown)

    def _comparison(self, name: str, left: _Value, right: _Value) -> Translated:
        sql = f"({left.sql} {_COMPARISONS[name]} {right.sql})"
        if self.trusting:
            return _said(sql)
        if left.kind != right.kind or left.kind == "other" or left.delicate or right.delicate:
            return _unsaid(name)
        return Translated(sql=sql, exact=left.kind != "float", columns=frozenset())

    def _function(self, name: str, value: _Value, options: pa.StructScalar | None) -> Translated:
        chosen = {} if options is None else dict(zip(options.type.names, options.values(), strict=True))
        if name == "is_valid":
            return _said(f"({value.sql} IS NOT NULL)")
        if name == "is_nan" and self.trusting and value.kind == "float":
            return _said(f"isnan({value.sql})")
        if name == "is_null" and chosen["nan_is_null"].as_py() and self.trusting and value.kind == "float":
            return _said(f"({value.sql} IS NULL OR isnan({value.sql}))")
        if name == "is_null" and not chosen["nan_is_null"].as_py():
            return _said(f"({value.sql} IS NULL)")
        if name == "is_in":
            return self._is_in(value, chosen)
        if name in ("starts_with", "ends_with", "match_substring") and not chosen["ignore_case"].as_py():
            function = {"match_substring": "contains"}.get(name, name)
            return _said(f"{function}({value.sql}, {quote_string(_text(chosen['pattern']))})")
        return _unsaid(name)

    def _is_in(self, value: _Value, chosen: dict[str, pa.Scalar]) -> Translated:
        given = chosen["value_set"].values
        behavior = int(chosen["null_matching_behavior"].as_py())
        plain = [item for item in given if item.is_valid]
        unsure = value.kind == "float" or (plain and _kind(given.type) != value.kind)
        if behavior >= _EMIT_NULL or (unsure and not self.trusting):
            return _unsaid("is_in")
        listed = ", ".join(map(quote_literal, plain))
        found = f"(({value.sql} IN ({listed})) AND {value.sql} IS NOT NULL)" if plain else "false"
        with_null = behavior != _SKIP and len(plain) < len(given)
        return _said(f"({found} OR {value.sql} IS NULL)" if with_null else found)

    def _arguments(self, name: str) -> tuple[list[_Value | None], pa.StructScalar | None]:
        values: list[_Value | None] = []
        options = None
        while (step := self.steps[self.at])[0] != "end":
            if step[0] == "options":
                options = self._scalar(step[1])
                self.at += 1
            else:
                values.append(self._value())
        self.at += 1
        return values, options

    def _value(self) -> _Value | None:
        key, text = self.steps[self.at]
        self.at += 1
        if key == "literal":
            scalar = self._scalar(text)
            number = scalar.as_py() if pa.types.is_floating(scalar.type) else None
            delicate = number is not None and (number == 0 or math.isnan(number))
            return _Value(sql=quote_literal(scalar), kind=_kind(scalar.type), delicate=delicate)
        if key in ("field_ref", "nested_field_ref"):
            names = [text]
            if key == "nested_field_ref":
                names = [name for _, name in self.steps[self.at : self.at + int(text)]]
                self.at += int(text)
            return self._field(names)
        values, options = self._arguments(text)
        if len(values) == 1 and values[0] is not None:
            return self._computed(text, values[0], options)
        operator = _ARITHMETIC.get(text.removesuffix("_checked"))
        known = [value for value in values if value is not None]
        if not self.trusting or operator is None or len(known) != 2:
            return None
        return _Value(sql=f"({known[0].sql} {operator} {known[1].sql})", kind="other")

    def _computed(self, name: str, value: _Value, options: pa.StructScalar | None) -> _Value | None:
        """A function of one operand: a part of a date or of a time without a zone, or a cast of whole numbers."""
        if name in _PARTS and (value.kind == "timestamp" or (value.kind == "date" and name != "hour")):
            return _Value(sql=f"{name}({value.sql})", kind="int")
        if name == "cast" and options is not None and self.trusting and value.kind == "int":
            wanted = options.type.field("to_type").type
            kind = next((sql for data_type, sql in _CASTS.items() if data_type == wanted), None)
            return None if kind is None else _Value(sql=f"CAST({value.sql} AS {kind})", kind=_kind(wanted))
        return None

    def _field(self, names: Sequence[str]) -> _Value | None:
        kind: pa.DataType | pa.Schema = self.schema
        for name in names:
            index = kind.get_field_index(name) if isinstance(kind, pa.Schema | pa.StructType) else -1
            if index < 0:
                raise InvalidInputError(f"the filter names {'.'.join(names)!r}: there is no such column")
            kind = kind.field(index).type
        self.columns.add(names[0])
        inner = "".join(f"[{quote_string(name)}]" for name in names[1:])
        return _Value(sql=f"{quote_identifier(names[0])}{inner}", kind=_kind(kind))

    def _scalar(self, column: str) -> pa.Scalar:
        return self.batch.column(int(column))[0]


def _said(sql: str) -> Translated:
    return Translated(sql=sql, exact=True, columns=frozenset())


def _unsaid(what: str | None) -> Translated:
    return Translated(sql=None, exact=False, columns=frozenset(), unknown=what or "a part of it")


def _text(scalar: pa.Scalar) -> str:
    value = scalar.as_py()
    return value.decode() if isinstance(value, bytes) else str(value)


def _kind(data_type: pa.DataType) -> str:
    """What values are compared as; kinds that SQL may compare in another way than pyarrow are ``other``."""
    types = pa.types
    tests = {
        "int": types.is_integer,
        "float": lambda kind: types.is_floating(kind) and not types.is_float16(kind),
        "bool": types.is_boolean,
        "text": lambda kind: types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind),
        "date": types.is_date32,
        "decimal": types.is_decimal128,
    }
    found = next((name for name, test in tests.items() if test(data_type)), None)
    if types.is_timestamp(data_type):
        return "instant" if data_type.tz is not None else "timestamp"
    return found or "other"
