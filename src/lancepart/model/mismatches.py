"""Comparisons of a column with a literal that it can never equal, found before DataFusion converts one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lancepart.errors import InvalidInputError, reraise_interrupt
from lancepart.model.aliases import RawExpr
from lancepart.model.quoting import arrow_type_name, quote_string
from lancepart.model.terms import bound_transform

_OPERATORS = frozenset({"=", "!=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
_LITERAL = re.compile(r"(?P<type>Interval|U?Int|Float|Decimal|Boolean|Large|Utf8|Binary|FixedSizeBinary)\w*\(")
_KINDS = {"UInt": "number", "Int": "number", "Float": "number", "Decimal": "number", "Boolean": "truth value"}
_MOMENT = re.compile(r'CAST\(Utf8\("(?P<text>.*)"\) AS (?P<type>Date|Timestamp)', re.DOTALL)
_NULL = re.compile(r"NULL|\w+\(NULL\)")
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_TYPED = re.compile(r"\w+\((-?[\d.]+)\)")
_DAY_WITHOUT_QUOTES = re.compile(r"(\d{4}) - (\d{1,2}) - (\d{1,2})")
_TAKES: dict[str, frozenset[str]] = {
    "number": frozenset({"number", "text"}),
    "text": frozenset({"text", "date", "timestamp", "binary value"}),
    "truth value": frozenset({"truth value"}),
    "date": frozenset({"text", "date", "timestamp"}),
    "timestamp": frozenset({"text", "date", "timestamp"}),
    "time of day": frozenset({"text"}),
    "binary value": frozenset({"text", "binary value"}),
}
"""The kinds of literals that a column of each kind is compared with; the others can never be meant."""
_EXAMPLES = {
    "number": "7",
    "truth value": "true",
    "text": "'text'",
    "date": "DATE '2026-01-31'",
    "timestamp": "TIMESTAMP '2026-01-31 10:00:00'",
    "time of day": "'10:00:00'",
    "binary value": "X'00FF'",
}
_TESTS: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("number", lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)),
    ("text", lambda kind: kind in (pa.string(), pa.large_string(), pa.string_view())),
    ("truth value", pa.types.is_boolean),
    ("date", pa.types.is_date),
    ("timestamp", pa.types.is_timestamp),
    ("time of day", pa.types.is_time),
    ("binary value", lambda kind: kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
)
_FEW_TRIED = 1_000
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """A column, or a part or a partition function of one, beside a literal."""

    name: str
    type: pa.DataType
    side: RawExpr
    literal: RawExpr

    def reason(self) -> str:
        """What is wrong with it, and what to write."""
        kind, given = kind_of(self.type), _literal_kind(self.literal)
        value = _shown(self.literal)
        what = f"{self.name} is of type {self.type}, and {value} is {_article(str(given))}"
        if given == "text" and kind in _TAKES and kind != "truth value":
            wanted = "whole number" if pa.types.is_integer(self.type) else kind
            what = f"{self.name} is of type {self.type}, and the text {value} is no {wanted}"
        if given in ("date", "timestamp") and given in _TAKES.get(kind or "", ()):
            what = f"{value} is no {given} that there is"
        if kind is None:
            return f"{what}: {_without_literals(self.name, self.type)}"
        return f"{what}: {_remedy(self.name, kind, given, value)}"


def refuse_mismatches(expression: RawExpr, schema: pa.Schema) -> None:
    """Refuse a comparison that DataFusion would make possible by a conversion that nobody means.

    A date and a number would be compared as days since 1970, a text column and a number by reading each text as one.
    """
    for pair in _comparisons(expression, schema):
        takes = _TAKES.get(kind_of(pair.type) or "")
        if takes is not None and (given := _literal_kind(pair.literal)) is not None and given not in takes:
            raise InvalidInputError(pair.reason())


def blamed(expression: RawExpr, schema: pa.Schema, is_valid: Callable[[RawExpr, RawExpr], bool]) -> str | None:
    """Why DataFusion does not take a filter, if a comparison of a column with a literal in it is to blame."""
    for at, pair in enumerate(_comparisons(expression, schema)):
        if at > _FEW_TRIED:
            return None
        if _literal_kind(pair.literal) is not None and not is_valid(pair.side, pair.literal):
            return pair.reason()
    for _, kind, operands in _tests(expression):
        subject = _subject(operands[0], schema) if kind == "Like" else None
        if subject is not None and kind_of(subject[1]) != "text":
            name, held = subject
            return f"{name} is of type {held}, and LIKE compares texts: write CAST({name} AS VARCHAR) LIKE …"
    return None


def example_of(data_type: pa.DataType) -> str | None:
    """How a value of a type is written in SQL; None for types without literals."""
    return _EXAMPLES.get(kind_of(data_type) or "")


def kind_of(data_type: pa.DataType) -> str | None:
    """What a type holds, in a word; None for what no literal is compared with.

    >>> kind_of(pa.dictionary(pa.int32(), pa.string())), kind_of(pa.list_(pa.int8()))
    ('text', None)
    """
    if pa.types.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    return next((name for name, test in _TESTS if test(data_type)), None)


def _tests(expression: RawExpr) -> Iterator[tuple[RawExpr, str, list[RawExpr]]]:
    """Every expression within one, its kind and its operands, without recursion however deep it is."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        kind = node.variant_name()
        if kind not in ("Column", "Literal"):
            operands = _operands(node)
            yield node, kind, operands
            waiting.extend(operand for operand in reversed(operands) if operand.variant_name() != "Literal")


def _comparisons(expression: RawExpr, schema: pa.Schema) -> Iterator[_Compared]:
    """Every comparison of a column with a literal in an expression."""
    for node, kind, operands in _tests(expression):
        if kind in ("InList", "Between") or (kind == "BinaryExpr" and node.rex_call_operator() in _OPERATORS):
            yield from _pairs(operands, schema)


def _operands(node: RawExpr) -> list[RawExpr]:
    """What an expression is made of; nothing where DataFusion does not say, as of a subquery."""
    try:
        return list(node.rex_call_operands())
    except Exception as error:
        reraise_interrupt(error)
        return []


def _pairs(operands: list[RawExpr], schema: pa.Schema) -> Iterator[_Compared]:
    side, *others = operands
    if len(others) == 1 and (side.variant_name() == "Literal" or _literal_kind(side) is not None):
        side, others = others[0], [side]
    subject = _subject(side, schema)
    if subject is not None:
        for other in others:
            yield _Compared(name=subject[0], type=subject[1], side=side, literal=other)


def _subject(side: RawExpr, schema: pa.Schema) -> tuple[str, pa.DataType] | None:
    """What a side of a comparison is called and its type, if it is a column, a part or a partition function of one."""
    kind = side.variant_name()
    if kind == "Column":
        name = str(side.to_variant().name())
        at = schema.get_field_index(name)
        return None if at < 0 else (name, _storage(schema.field(at).type))
    if kind != "ScalarFunction":
        return None
    operator, operands = side.rex_call_operator(), side.rex_call_operands()
    if operator == "get_field":
        return _part(_subject(operands[0], schema), operands[1:])
    transform = bound_transform(operator)
    sources = [_subject(operand, schema) for operand in operands] if transform is not None else []
    found = [source for source in sources if source is not None]
    if transform is None or len(found) < len(operands):
        return None
    return transform.call([name for name, _ in found]), transform.result_type([each for _, each in found])


def _part(whole: tuple[str, pa.DataType] | None, names: list[RawExpr]) -> tuple[str, pa.DataType] | None:
    for step in names:
        name = step.python_value() if step.variant_name() == "Literal" else None
        name = name.as_py() if isinstance(name, pa.Scalar) else name
        if whole is None or not pa.types.is_struct(whole[1]) or whole[1].get_field_index(str(name)) < 0:
            return None
        whole = f"{whole[0]}.{name}", _storage(whole[1].field(str(name)).type)
    return whole


def _storage(data_type: pa.DataType) -> pa.DataType:
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _literal_kind(literal: RawExpr) -> str | None:
    """What a literal, or what numbers are computed to, is in a word; None for NULL and for what is no literal."""
    variant = literal.variant_name()
    if variant == "BinaryExpr":
        return "number" if _is_arithmetic(literal) else None
    if variant not in ("Literal", "Cast"):
        return None
    text = literal.canonical_name()
    if variant == "Cast":
        moment = _MOMENT.match(text)
        return None if moment is None else str(moment["type"]).lower()
    found = _LITERAL.match(text)
    if found is None or _NULL.fullmatch(text):
        return None
    word = str(found["type"])
    if word in _KINDS:
        return _KINDS[word]
    if word == "Interval":
        return "interval"
    return "binary value" if "Binary" in text[: found.end()] else "text"


def _is_arithmetic(expression: RawExpr) -> bool:
    """Whether an expression computes with numbers alone, as a day without its quotes does: 2026-01-31 is 1994."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if node.variant_name() == "BinaryExpr" and node.rex_call_operator() in _ARITHMETIC:
            waiting.extend(_operands(node))
        elif node.variant_name() != "Literal" or _literal_kind(node) != "number":
            return False
    return True


def _shown(literal: RawExpr) -> str:
    """A literal as it is written in SQL."""
    if literal.variant_name() == "BinaryExpr":
        text = _TYPED.sub(r"\1", literal.canonical_name())
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    if literal.variant_name() == "Cast" and (moment := _MOMENT.match(literal.canonical_name())) is not None:
        return f"{moment['type'].upper()} {quote_string(moment['text'])}"
    value = literal.python_value()
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    if isinstance(value, str):
        return quote_string(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    if isinstance(value, bytes):
        return f"X'{value[:_SHOWN].hex()}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _without_literals(name: str, data_type: pa.DataType) -> str:
    """What to write for a column of a type that has no literals."""
    if pa.types.is_duration(data_type):
        return f"write {name} = arrow_cast(60, '{arrow_type_name(data_type)}')"
    if pa.types.is_struct(data_type) and data_type.num_fields:
        return f"compare one of its fields, as in {name}.{data_type.field(0).name}"
    if pa.types.is_nested(data_type):
        return f"test its values with array_has({name}, …), or {name} IS NULL"
    return f"only {name} IS NULL can be tested"


def _remedy(name: str, kind: str, given: str | None, value: str) -> str:
    match kind, given:
        case "truth value", _:
            return f"write {name} or NOT {name}"
        case "text", "number" | "truth value":
            return f"write {name} = {quote_string(value)}"
        case "date" | "timestamp", "number" if (moment := _moment(value)) is not None:
            return f"write {name} = {kind.upper()} '{moment[:10] if kind == 'date' else moment}'"
        case _:
            return f"write a {kind}, as in {name} = {_EXAMPLES[kind]}"


def _moment(number: str) -> str | None:
    """The day that a number such as 20260131, or 2026 - 1 - 31, spells, as the start of it."""
    if day := _DAY_WITHOUT_QUOTES.fullmatch(number):
        number = f"{day[1]}{int(day[2]):02}{int(day[3]):02}"
    try:
        return str(datetime.strptime(number, "%Y%m%d")) if len(number) == 8 else None
    except ValueError:
        return None
