"""Suggestions for misspelt names, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 3


def near(name: object, known: Iterable[str]) -> str:
    """What to add to an error about a name that is not known: the known ones that are spelled like it, or nothing.

    >>> near("contry", ["id", "country"])
    "; did you mean 'country'?"
    """
    found = like(name, known) if isinstance(name, str) else []
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def like(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are spelled like one, the likest first, whatever their case."""
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(each.lower(), each)
    return [folded[each] for each in get_close_matches(name.lower(), folded, n=_MOST, cutoff=0.7)]
