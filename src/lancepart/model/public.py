"""Which names of a class are public: completion and the API reference show these and no others."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from inspect import getdoc
from typing import TypeVar

from lancepart.model.html_text import html_table

_PUBLIC = "__public__"

Class = TypeVar("Class", bound=type)


def public(*names: str) -> Callable[[Class], Class]:
    """Let ``dir()`` of a class's objects, and so completion, show some names and those of its base classes.

    >>> @public("rows")
    ... class Found:
    ...     def rows(self): ...
    ...     def used_by_other_modules(self): ...
    >>> dir(Found())
    ['rows']
    """

    def decorate(kind: Class) -> Class:
        setattr(kind, _PUBLIC, names)
        kind.__dir__ = _dir  # type: ignore[assignment, method-assign]
        return kind

    return decorate


def html_calls(thing: object, title: str) -> str:
    """For a notebook: an object whose purpose is its methods, with what each of them does."""
    kind = type(thing)
    rows = [[f"{name}()", (getdoc(getattr(kind, name)) or "").partition("\n")[0]] for name in public_names(kind)]
    return f"<b>{escape(title)}</b>{html_table(['call', 'what it does'], rows)}"


def _dir(self: object) -> list[str]:
    return public_names(type(self))


def public_names(kind: type) -> list[str]:
    """The public names of a class: those that were declared, or all without an underscore where none were."""
    declared: tuple[str, ...] | None = vars(kind).get(_PUBLIC)
    if declared is None:
        return [name for name in dir(kind) if not name.startswith("_")]
    own = [base for base in kind.__bases__ if base.__module__.startswith("lancepart.")]
    return sorted(set(declared).union(*map(public_names, own)))
