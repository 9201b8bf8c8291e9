"""Filters given as Polars expressions, as SQL: read from the JSON in which Polars stores an expression."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonObject, Value
from lancepart.model.quoting import quote_identifier, quote_literal, quote_string
from lancepart.model.transforms.base import MAX_INT32

if TYPE_CHECKING:
    import polars as pl

_COMPARISONS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_SAMENESS = {"EqValidity": "IS NOT DISTINCT FROM", "NotEqValidity": "IS DISTINCT FROM"}
_CHAINS = {"And": "AND", "Or": "OR", "LogicalAnd": "AND", "LogicalOr": "OR"}
_ARITHMETIC = {"Plus": "+", "Minus": "-", "Multiply": "*"}
_PARTS = {"Year": "year", "Month": "month", "Day": "day", "Hour": "hour"}
_BOUNDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_CASTS = {"Float64": "DOUBLE", "Int64": "BIGINT"}
_REGEX = frozenset(".^$*+?{}[]\\|()")
_UNITS = {"Microseconds": "us", "Milliseconds": "ms", "Nanoseconds": "ns"}


class UntranslatableError(InvalidInputError):
    """An expression, or a part of one, that has no SQL here."""


def from_polars(expression: pl.Expr, schema: pa.Schema, *, loosely: bool = False) -> str | None:
    """A Polars expression as SQL; ``loosely`` leaves out what has none and says None if nothing is left.

    A widened filter may match more rows, so it must be applied again to those that it finds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = json.loads(expression.meta.serialize(format="json"))
    found = _Translator(schema, loosely=loosely)
    try:
        return found.filter(tree)
    except UntranslatableError:
        if not loosely:
            raise
        return None
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if loosely:
            return None
        raise UntranslatableError(f"the Polars expression {expression} is not understood: {error}") from None


class _Translator:
    def __init__(self, schema: pa.Schema, *, loosely: bool) -> None:
        self.schema, self.loosely = schema, loosely

    def filter(self, node: JsonObject) -> str:
        """A boolean expression."""
        ((kind, value),) = node.items()
        if kind == "BinaryExpr" and value["op"] in _CHAINS:
            return self._chain(_CHAINS[value["op"]], [value["left"], value["right"]])
        if kind == "BinaryExpr" and value["op"] in _COMPARISONS | _SAMENESS:
            return self._comparison(value)
        if kind == "Function":
            return self._function(value["function"], value["input"])
        if kind == "Column":
            return self.value(node)
        if kind == "Literal":
            return self.value(node)
        raise UntranslatableError(f"a filter of Polars with {kind} has no SQL: write it as SQL")

    def _chain(self, operator: str, operands: list[JsonObject]) -> str:
        said: list[str] = []
        for operand in operands:
            try:
                said.append(self.filter(operand))
            except (UntranslatableError, KeyError, TypeError, IndexError, ValueError):
                if not self.loosely or operator == "OR":
                    raise
        if not said:
            raise UntranslatableError("nothing of the filter has SQL")
        return f"({f' {operator} '.join(said)})"

    def _comparison(self, value: JsonObject) -> str:
        left, right = value["left"], value["right"]
        if self.loosely and (self._is_delicate(left) or self._is_delicate(right)):
            raise UntranslatableError("floats, NaN and zeros compare differently in Polars")
        operator = (_COMPARISONS | _SAMENESS)[value["op"]]
        return f"({self.value(left)} {operator} {self.value(right)})"

    def _function(self, function: JsonObject | str, operands: list[JsonObject]) -> str:
        ((kind, name),) = function.items() if isinstance(function, dict) else ((function, ""),)
        if kind == "Boolean":
            return self._boolean(name, operands)
        if kind == "StringExpr" and name in ("StartsWith", "EndsWith"):
            function_name = {"StartsWith": "starts_with", "EndsWith": "ends_with"}[name]
            return f"{function_name}({self.value(operands[0])}, {self.value(operands[1])})"
        if kind == "StringExpr" and isinstance(name, dict) and "Contains" in name:
            return self._contains(name["Contains"], operands)
        raise UntranslatableError(f"the function {kind} {name} of Polars has no SQL here: write the filter as SQL")

    def _contains(self, options: JsonObject, operands: list[JsonObject]) -> str:
        """A search for a text, or for a regular expression: Polars and DataFusion have the same engine for these."""
        pattern = operands[1]["Literal"]["Scalar"]["String"]
        plain = options["literal"] or not _REGEX.intersection(pattern)
        return f"{'contains' if plain else 'regexp_like'}({self.value(operands[0])}, {quote_string(pattern)})"

    def _between(self, closed: str, operands: list[JsonObject]) -> str:
        if self.loosely and any(map(self._is_delicate, operands)):
            raise UntranslatableError("floats compare differently in Polars")
        first, low, high = map(self.value, operands)
        above, below = _BOUNDS[closed]
        return f"({first} {above} {low} AND {first} {below} {high})"

    def _boolean(self, name: JsonObject | str, operands: list[JsonObject]) -> str:
        if name == "Not":
            return f"(NOT {_Translator(self.schema, loosely=False).strictly(operands[0], self)})"
        if isinstance(name, dict) and "IsBetween" in name:
            return self._between(name["IsBetween"]["closed"], operands)
        first = self.value(operands[0])
        if name in ("IsNan", "IsNotNan") and self._is_delicate(operands[0]):
            return f"({'NOT ' if name == 'IsNotNan' else ''}isnan({first}))"
        if name in ("IsNull", "IsNotNull"):
            return f"({first} IS {'NOT ' if name == 'IsNotNull' else ''}NULL)"
        if isinstance(name, dict) and "IsIn" in name and not name["IsIn"].get("nulls_equal"):
            if self.loosely and self._is_delicate(operands[0]):
                raise UntranslatableError("floats compare differently in Polars")
            raw = bytes(operands[1]["Literal"]["Scalar"]["List"])
            items = pa.ipc.open_stream(raw).read_all().column(0).combine_chunks()
            flat = items.flatten() if pa.types.is_list(items.type) or pa.types.is_large_list(items.type) else items
            listed = ", ".join(quote_literal(item) for item in flat if item.is_valid)
            return f"({first} IN ({listed}))" if listed else f"({first} IS NULL AND NULL)"
        raise UntranslatableError(f"the function {name} of Polars has no SQL here: write the filter as SQL")

    def strictly(self, node: JsonObject, outer: _Translator) -> str:
        """What a negation holds: all of it must have SQL, and mean the same there."""
        if outer.loosely and outer.has_floats(node):
            raise UntranslatableError("floats compare differently in Polars")
        return self.filter(node)

    def has_floats(self, node: Value) -> bool:
        """Whether anything beneath a node is a float."""
        if isinstance(node, dict):
            return self._is_delicate(node) or any(self.has_floats(child) for child in node.values())
        return any(self.has_floats(child) for child in node) if isinstance(node, list) else False

    def _is_delicate(self, node: JsonObject) -> bool:
        kind = self._type(node)
        return pa.types.is_floating(kind) if kind is not None else "Float" in json.dumps(node.get("Literal"))

    def value(self, node: JsonObject) -> str:
        """An operand of a comparison."""
        ((kind, value),) = node.items()
        if kind == "Column":
            if value not in self.schema.names:
                raise InvalidInputError(f"the filter names {value!r}: there is no such column")
            return quote_identifier(str(value))
        if kind == "Literal":
            return _literal(value)
        if kind == "BinaryExpr" and value["op"] in _ARITHMETIC and not self.loosely:
            return f"({self.value(value['left'])} {_ARITHMETIC[value['op']]} {self.value(value['right'])})"
        if kind == "BinaryExpr" and value["op"] == "Modulus":
            return self._modulus(value["left"], value["right"])
        if kind == "Cast" and not self.loosely and self._is_whole(value["expr"]):
            return f"CAST({self.value(value['expr'])} AS {_CASTS[value['dtype']['Literal']]})"
        if kind == "Function" and isinstance(value["function"], dict) and "TemporalExpr" in value["function"]:
            return self._part(value["function"]["TemporalExpr"], value["input"][0])
        if kind == "Function" and isinstance(value["function"], dict) and "StructExpr" in value["function"]:
            name = value["function"]["StructExpr"]["FieldByName"]
            return f"{self.value(value['input'][0])}[{quote_string(name)}]"
        raise UntranslatableError(f"{kind} of Polars has no SQL here: write the filter as SQL")

    def _modulus(self, left: JsonObject, right: JsonObject) -> str:
        """A remainder that is never negative, as in Polars, by a whole number."""
        number = _literal(right["Literal"])
        if not self._is_whole(left) or not number.isdigit() or not 0 < int(number) <= MAX_INT32:
            raise UntranslatableError(
                "a remainder of Polars has SQL for a column of whole numbers and a positive number"
            )
        return f"((({self.value(left)} % {number}) + {number}) % {number})"

    def _part(self, name: str, operand: JsonObject) -> str:
        """A part of a date or of a time without a zone: Polars takes those of others in their zone."""
        kind = self._type(operand)
        dated = kind is not None and pa.types.is_date(kind) and name != "Hour"
        if not dated and (kind is None or not pa.types.is_timestamp(kind) or kind.tz is not None):
            raise UntranslatableError(f"{name} of Polars has SQL for dates and for times without a zone")
        return f"{_PARTS[name]}({self.value(operand)})"

    def _is_whole(self, node: JsonObject) -> bool:
        kind = self._type(node)
        return kind is not None and pa.types.is_integer(kind) and not pa.types.is_uint64(kind)

    def _type(self, node: JsonObject) -> pa.DataType | None:
        """The type of a column or of a field inside one; None of anything else."""
        if (name := node.get("Column")) is not None:
            return self.schema.field(name).type if name in self.schema.names else None
        called: JsonObject = node.get("Function") or {"function": ""}
        function = called["function"]
        if not isinstance(function, dict) or "StructExpr" not in function:
            return None
        outer, field = self._type(called["input"][0]), function["StructExpr"].get("FieldByName")
        if outer is None or not pa.types.is_struct(outer) or outer.get_field_index(field) < 0:
            return None
        return outer.field(field).type


def _literal(value: JsonObject) -> str:
    ((form, inner),) = value.items()
    kind: str = next(iter(inner)) if isinstance(inner, dict) else str(inner)
    held: Value = inner[kind] if isinstance(inner, dict) else None
    if form not in ("Dyn", "Scalar"):
        raise UntranslatableError(f"a literal {form} of Polars has no SQL here")
    reading: dict[str, Callable[[], pa.Scalar]] = {
        "Null": lambda: pa.scalar(None),
        "Boolean": lambda: pa.scalar(bool(held)),
        "String": lambda: pa.scalar(str(held)),
        "StringOwned": lambda: pa.scalar(str(held)),
        "Date": lambda: pa.scalar(int(held), pa.int32()).cast(pa.date32()),
        "Binary": lambda: pa.scalar(bytes(held)),
    }
    if kind in reading:
        return quote_literal(reading[kind]())
    if kind.startswith(("Int", "UInt")):
        return str(int(held))
    if kind.startswith("Float") and math.isfinite(float(held)):
        return quote_literal(pa.scalar(float(held)))
    if kind.startswith("Datetime"):
        number, unit, zone = held
        named = zone["inner"] if isinstance(zone, dict) else zone
        stamp = pa.scalar(int(number), pa.int64()).cast(pa.timestamp(_UNITS[unit], named))
        return quote_literal(stamp)
    raise UntranslatableError(f"a literal {kind} of Polars has no SQL here")
