"""``a IS DISTINCT FROM b AND c``: DataFusion takes ``b AND c`` for the operand, so parentheses are set first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lancepart.errors import InvalidInputError
from lancepart.model.sql_text import Token, tokens

_MENTIONED = re.compile(r"\bdistinct\s+from\b", re.IGNORECASE)
_JOINING = frozenset({"and", "or"})
_NEGATED = frozenset({"between", "ilike", "in", "like", "regexp", "rlike", "similar"})
_BEFORE = _JOINING | {"by", "case", "distinct", "else", "having", "not", "on", "select", "then", "when", "where"}
"""What an operand on the left can begin after, beside an opening parenthesis and a comma."""
_AFTER = frozenset(
    [
        *("as", "asc", "cross", "desc", "else", "end", "except", "fetch", "for", "from", "full", "group", "having"),
        *("inner", "intersect", "join", "left", "limit", "natural", "nulls", "offset", "on", "order", "qualify"),
        *("right", "then", "union", "using", "when", "where", "window"),
    ]
)
"""What ends a right operand with nothing to set parentheses for."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def with_distinct_tests(sql: str) -> str:
    """The same SQL with parentheses around each such test that AND or OR follows.

    >>> with_distinct_tests("NOT a IS DISTINCT FROM b AND c")
    'NOT (a IS DISTINCT FROM b) AND c'
    """
    if not _MENTIONED.search(sql):
        return sql
    try:
        found = tokens(sql)
    except InvalidInputError:
        return sql
    spans = [span for at in range(len(found)) if (span := _span(found, at)) is not None]
    edits = [(found[start].start, "(") for start, _ in spans] + [(found[last].end, ")") for _, last in spans]
    for position, text in sorted(edits, reverse=True):
        sql = sql[:position] + text + sql[position:]
    return sql


def _span(found: Sequence[Token], at: int) -> tuple[int, int] | None:
    """The first and the last token of a test whose IS is at a place, if it needs parentheses."""
    words = [_word(token) for token in found[at : at + 4]]
    operand = at + 4 if words[1:2] == ["not"] else at + 3
    if words[:1] != ["is"] or words[operand - at - 2 : operand - at] != ["distinct", "from"]:
        return None
    last = _last(found, operand)
    return None if last is None else (_first(found, at - 1), last)


def _first(found: Sequence[Token], at: int) -> int:
    """Where the left operand begins that ends at a place."""
    depth = cases = 0
    while at >= 0:
        text, word = found[at].text, _word(found[at])
        depth += (text in _CLOSING) - (text in _OPENING)
        cases += (word == "end") - (word == "case")
        if depth < 0 or cases < 0:
            break
        if depth == cases == 0 and (text == "," or (word in _BEFORE and not _belongs(found, at))):
            break
        at -= 1
    return at + 1


def _last(found: Sequence[Token], at: int) -> int | None:
    """Where the right operand ends that begins at a place; None if no AND or OR follows it."""
    depth = cases = ranges = 0
    for place in range(at, len(found)):
        text, word = found[place].text, _word(found[place])
        if depth == cases == 0 and (text in _CLOSING or text in (",", ";") or word in _AFTER):
            return None
        if depth == cases == 0 and word in _JOINING:
            if word == "or" or not ranges:
                return place - 1
            ranges -= 1
        depth += (text in _OPENING) - (text in _CLOSING)
        cases += (word == "case") - (word == "end")
        ranges += depth == cases == 0 and word == "between"
    return None


def _belongs(found: Sequence[Token], at: int) -> bool:
    """Whether a word is inside an operand, such as the NOT of NOT IN, or the AND of BETWEEN."""
    word, following = _word(found[at]), _word(found[at + 1]) if at + 1 < len(found) else None
    before = _word(found[at - 1]) if at else None
    if word == "and":
        return _ends_range(found, at)
    if word == "distinct":
        return before in ("is", "not") and following == "from"
    return word == "case" or (word == "not" and (following in _NEGATED or before == "is"))


def _ends_range(found: Sequence[Token], at: int) -> bool:
    """Whether an AND is that of a BETWEEN."""
    depth = 0
    for token in reversed(found[:at]):
        depth += (token.text in _CLOSING) - (token.text in _OPENING)
        if depth < 0 or (depth == 0 and (token.text == "," or _word(token) in _JOINING)):
            return False
        if depth == 0 and _word(token) == "between":
            return True
    return False


def _word(token: Token) -> str | None:
    return token.name if token.kind == "word" else None
