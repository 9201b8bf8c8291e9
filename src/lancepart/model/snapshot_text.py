"""Snapshots as users write them in texts."""

from __future__ import annotations

_DIGITS = 19
"""A number of more digits is no snapshot's."""


def number_or_tag(text: str) -> int | str:
    """A snapshot's number, or a tag: no tag can be made that reads as a number.

    >>> number_or_tag("12"), number_or_tag("v12")
    (12, 'v12')
    """
    return int(text) if is_number(text) else text


def is_number(text: str) -> bool:
    """Whether a text reads as the number of a snapshot."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS
