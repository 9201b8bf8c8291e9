"""A tokenizer for SQL: enough to find names and calls outside quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lancepart.errors import InvalidInputError

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--|/\*)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)


_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
_PARTS = frozenset({"when", "then", "else", "end", "case"})
_TRIED = frozenset(
    {"case", "cast", "convert", "exists", "interval", "not", "position", "safe_cast", "try_cast", "when"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token and where it is; ``name`` is what an identifier means."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def name(self) -> str | None:
        """The identifier, unquoted or folded to lower case as DataFusion does; None if it is not one."""
        if self.kind == "word":
            return self.text.lower()
        if self.kind == "quoted":
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return None


def tokens(sql: str) -> list[Token]:
    """Split SQL into tokens, spaces left out and comments refused.

    >>> [token.text for token in tokens("left(\\"a b\\", 3) || 'x''y'")]
    ['left', '(', '"a b"', ',', '3', ')', '|', '|', "'x''y'"]
    """
    found = []
    for match in _TOKEN.finditer(sql):
        kind = str(match.lastgroup)
        unclosed = kind == "symbol" and match[0] in "'\"`"
        if kind == "comment" or unclosed:
            raise InvalidInputError(f"{sql!r} has {'an unclosed ' if unclosed else 'a comment: '}{match[0]}")
        if kind != "space":
            found.append(Token(kind=kind, text=match[0], start=match.start(), end=match.end()))
    return found


def closing(found: Sequence[Token], opening: int) -> int:
    """The position of the parenthesis that closes the one at ``opening``."""
    depth = 0
    for position in range(opening, len(found)):
        depth += {"(": 1, ")": -1}.get(found[position].text, 0)
        if depth == 0:
            return position
    raise InvalidInputError("a parenthesis is not closed")


def arguments(found: Sequence[Token], opening: int, end: int) -> Iterator[tuple[int, int]]:
    """Where in the text each argument between two parentheses starts and ends."""
    depth, start = 0, opening + 1
    for position in range(opening + 1, end + 1):
        text = found[position].text
        if depth == 0 and (text == "," or position == end):
            if start < position:
                yield found[start].start, found[position - 1].end
            elif text == "," or start > opening + 1:
                raise InvalidInputError("an argument is missing between two commas or parentheses")
            start = position + 1
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text, 0)


def as_identifier(name: str) -> str:
    """A name as SQL, in double quotes if it is not a plain word.

    >>> as_identifier("day"), as_identifier("net price")
    ('day', '"net price"')
    """
    return name if re.fullmatch(r"[^\W\d]\w*", name) else '"' + name.replace('"', '""') + '"'


def over_columns(expression: str, names: Sequence[str]) -> str:
    """An expression over ``col0``, ``col1`` and so on as one over the columns that these stand for.

    >>> print(over_columns("concat(col0, ' col1 ', col1)", ["first", "last name"]))
    concat(first, ' col1 ', "last name")
    """
    found = {f"col{at}": as_identifier(name) for at, name in enumerate(names)}
    pieces, position = [], 0
    for token in tokens(expression):
        if token.name in found:
            pieces += [expression[position : token.start], found[token.name]]
            position = token.end
    return "".join([*pieces, expression[position:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How hard SQL is on a parser that recurses.

    ``nested`` counts brackets and CASEs inside each other, ``tried`` those of them that DataFusion's parser reads in
    two ways, so that its time doubles with each; ``chain`` is the longest row of operators, each a level of its tree.
    """

    nested: int
    tried: int
    chain: int


def depth(found: Sequence[Token]) -> Depth:
    """How deep SQL goes, found without recursion.

    >>> depth(tokens("CASE WHEN NOT (a + b > 1) THEN f(CAST (a AS int)) END"))
    Depth(nested=3, tried=2, chain=2)
    """
    stack: list[bool] = []
    chains = [0]
    nested = tried = chain = trying = 0
    for at, token in enumerate(found):
        word = token.text.lower() if token.kind == "word" else token.text
        if word in _OPENS or word == "case":
            before = found[at - 1] if at else None
            stack.append(word == "case" or (before is not None and before.kind == "word" and before.name in _TRIED))
            chains.append(0)
            trying += stack[-1]
            nested, tried = max(nested, len(stack)), max(tried, trying)
        elif (word in _CLOSES or word == "end") and stack:
            trying -= stack.pop()
            chains.pop()
        elif word == "," or word in _PARTS:
            chains[-1] = 0
        elif token.kind == "symbol" or word in ("and", "or", "not", "is", "like"):
            chains[-1] += 1
            chain = max(chain, chains[-1])
    return Depth(nested=nested, tried=tried, chain=chain)
