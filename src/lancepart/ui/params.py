"""The parameters of a request, checked: each has bounds, and what is not known is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lancepart.errors import InvalidInputError
from lancepart.model.allowed import ALLOWED
from lancepart.model.partition_by import SPANS
from lancepart.model.sql_text import Token, tokens
from lancepart.model.transforms import TRANSFORMS

MOST_ROWS = 200

_WORDS = (
    *("all", "and", "any", "between", "case", "cast", "else", "exists", "extract", "ilike", "in", "is", "like", "not"),
    *("on", "or", "then", "try_cast", "when", "where"),
)
_CALLED = ALLOWED.union(_WORDS, TRANSFORMS, SPANS)
"""What may stand before a parenthesis: functions of bounded cost, partition functions and words of SQL."""


@dataclass(frozen=True, slots=True)
class Params:
    """The query of a URL, each name at most once."""

    given: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        return self.given.get(name, default)

    def optional(self, name: str) -> str | None:
        """A text; ``None`` if it is missing or empty."""
        return self.given.get(name, "").strip() or None

    def required(self, name: str) -> str:
        """A text that must be there."""
        found = self.optional(name)
        if found is None:
            raise InvalidInputError(f"the parameter {name!r} is missing")
        return found

    def where(self) -> str | None:
        """A filter; one that calls a function whose cost its arguments do not bound is refused.

        A filter can't be interrupted, and the page serves others meanwhile.
        """
        found = self.optional("where")
        if found is not None:
            _refuse_unbounded(tokens(found))
        return found

    def number(self, name: str, default: int, *, least: int = 0, most: int = 1 << 62) -> int:
        """A whole number; one that is too large becomes the largest."""
        text = self.given.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise InvalidInputError(f"{name} is {text!r}: give a whole number from {least} up")
        return max(least, min(int(text), most))

    def limit(self, default: int = 50, most: int = MOST_ROWS) -> int:
        """How many rows of a page."""
        return self.number("limit", default, least=1, most=most)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of a few words, the first unless given."""
        found = self.given.get(name, choices[0])
        if found not in choices:
            raise InvalidInputError(f"{name} is {found!r}: use one of {', '.join(choices)}")
        return found

    def path(self, name: str) -> list[str | None]:
        """Partition values as a JSON list of texts and nulls."""
        try:
            found = json.loads(self.given.get(name, "[]"))
        except ValueError:
            found = None
        if not isinstance(found, list) or not all(each is None or isinstance(each, str) for each in found):
            raise InvalidInputError(f"{name} is {self.given.get(name)!r}: give a JSON list of texts and nulls")
        return found


def _refuse_unbounded(found: Sequence[Token]) -> None:
    """Refuse calls whose cost has no bound, and ways of quoting that could hide one."""
    for token, following in pairwise(found):
        if following.text == "(" and token.name is not None and token.name.lower() not in _CALLED:
            raise InvalidInputError(
                f"the page evaluates no filter with {token.name}(…), whose cost has no bound: use it in Python or "
                "in the command line"
            )
        if following.kind == "string" and token.kind == "word" and token.end == following.start:
            raise InvalidInputError(
                f"the page takes no text with a prefix, such as {token.text}'…': leave the prefix out"
            )
    if any(token.text == "$" for token in found):
        raise InvalidInputError(
            "the page takes no $ outside of quotes: write values out, with single quotes around texts"
        )
