"""Numbers in a filter that meet decimal columns: exact to the last of 38 digits, never by way of a double."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonObject
from lancepart.model.filter_text import Atom
from lancepart.model.quoting import quote_identifier
from lancepart.model.sql_text import Token

_DIGITS = 38
_EXACT = Context(prec=200)
_OPERATOR = re.compile(r"(?P<operator>=|<>|!=|<=|>=|<|>)(?P<sign>[+-]?)")
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
Replacement = tuple[int, int, str]
"""Where in a text something else is put, and what."""


def decimal_names(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The decimal columns of a schema by name; with None as type those inside other columns."""
    found: JsonObject = {}
    for field in schema:
        for name in _inside(field.type):
            found.setdefault(name, None)
    found.update({field.name: field.type for field in schema if pa.types.is_decimal(field.type)})
    return found


def _inside(data_type: pa.DataType) -> Iterator[str]:
    for at in range(data_type.num_fields if pa.types.is_nested(data_type) else 0):
        field = data_type.field(at)
        if pa.types.is_decimal(field.type):
            yield field.name
        yield from _inside(field.type)


def exact_numbers(found: Sequence[Token], atoms: Sequence[Atom], names: dict[str, pa.DataType]) -> list[Replacement]:
    """What to put in the place of the numbers of atoms that name a decimal column."""
    replacements: list[Replacement] = []
    for atom in atoms if names else ():
        own = found[atom.first : atom.last]
        if any(token.name in names for token in own):
            compared = _compared(own, names)
            replacements += [compared] if compared is not None else _spelled(own)
    return replacements


def _spelled(own: Sequence[Token]) -> Iterator[Replacement]:
    """Each number with a fraction or more digits than an integer has, as a decimal of just its digits."""
    for token in own:
        if token.kind == "number" and (not token.text.isdigit() or len(token.text) > 18):
            value = Decimal(token.text)
            scale = max(-int(value.as_tuple().exponent), 0)
            precision = max(len(value.as_tuple().digits) + max(int(value.as_tuple().exponent), 0), scale, 1)
            if precision > _DIGITS:
                raise InvalidInputError(f"the number {token.text} has more than {_DIGITS} digits")
            yield token.start, token.end, f"arrow_cast('{value:f}', 'Decimal128({precision}, {scale})')"


def _compared(own: Sequence[Token], names: dict[str, pa.DataType]) -> Replacement | None:
    """A column beside one number, both in the column's own type; None for anything else.

    >>> from lancepart.model.sql_text import tokens
    >>> _compared(tokens("price < 1.239"), {"price": pa.decimal128(5, 2)})[2]
    "`price` <= arrow_cast('1.23', 'Decimal128(5, 2)')"
    """
    names_first = own[0].name is not None
    column, number = (own[0], own[-1]) if names_first else (own[-1], own[0])
    inner = own[1:-1]
    if not names_first and own[0].text in "+-" and len(own) > 3:
        number, inner = own[1], own[2:-1]
    if number.kind != "number" or names.get(column.name or "") is None or any(t.kind != "symbol" for t in inner):
        return None
    signed = _OPERATOR.fullmatch("".join(token.text for token in inner))
    if signed is None or (signed["sign"] and not names_first):
        return None
    sign = signed["sign"] or ("" if number is own[0] or names_first else own[0].text)
    operator = {"!=": "<>"}.get(signed["operator"], signed["operator"])
    kind = names[str(column.name)]
    found = adapted(operator if names_first else _MIRRORED[operator], Decimal(f"{sign}{number.text}"), kind)
    if found is None:
        return None
    literal = f"arrow_cast('{found[1]:f}', 'Decimal128({kind.precision}, {kind.scale})')"
    return own[0].start, own[-1].end, f"{quote_identifier(str(column.name))} {found[0]} {literal}"


def adapted(operator: str, value: Decimal, kind: pa.DataType) -> tuple[str, Decimal] | None:
    """A comparison of a decimal column with any number as one with a value of the column's type; None if there is none.

    Between two values of the type, and beyond them all, another operator says the same; NULL stays NULL.

    >>> adapted("=", Decimal("0.5"), pa.decimal128(3, 0))
    ('>', Decimal('999'))
    """
    if kind.bit_width > 128 or kind.scale < 0:
        return None
    step, most = Decimal(1).scaleb(-kind.scale), Decimal(10**kind.precision - 1).scaleb(-kind.scale, _EXACT)
    never, always = (">", most), ("<=", most)
    below, above = (value.quantize(step, rounding, _EXACT) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    if operator in ("=", "<>"):
        if below == above and abs(below) <= most:
            return operator, below
        return never if operator == "=" else always
    upper = operator in ("<", "<=")
    bound = below if upper else above
    if abs(bound) > most:
        return always if upper == (bound > 0) else never
    return (operator if below == above else operator[0] + "="), bound
