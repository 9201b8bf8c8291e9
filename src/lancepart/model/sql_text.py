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


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token and where it stands; ``name`` is what an identifier means."""

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
