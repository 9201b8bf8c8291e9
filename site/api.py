"""Fills the API page when the documentation is built: what is public, with signatures, docstrings and parameters."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_origin

import lancepart as lp
from lancepart.maintain.plots import Plots
from lancepart.model import aliases
from lancepart.model.public import public_names

MARK = "<!-- every public name -->"
FIRST = ("PartitionedTable", "Result", "Scan", "Plan", "Join", "Search")
CLASSES: dict[str, type] = {
    name: getattr(lp, name)
    for name in (*FIRST, *(each for each in lp.__all__ if each not in FIRST))
    if isinstance(getattr(lp, name), type)
} | {"Config": type(lp.config), "Plots": Plots}
"""The classes that are exported, and those of ``lp.config`` and ``table.plot``."""
WHERE = {"Config": "`lp.config`", "Plots": "`table.plot`"}
FUNCTIONS = tuple(name for name in lp.__all__ if inspect.isfunction(getattr(lp, name)))
_UNPACKED = re.compile(r"Unpack\[(\w+)\]")
_LITERALS = {
    name: str(value).replace("typing.", "") for name, value in vars(aliases).items() if get_origin(value) is Literal
}


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs for every page."""
    return markdown.replace(MARK, "\n".join(written(explained(markdown)))) if MARK in markdown else markdown


def explained(markdown: str) -> dict[str, str]:
    """The parameters that the page's table explains."""
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", markdown, re.MULTILINE))


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and method, by the name that it is called by."""
    for name in FUNCTIONS:
        yield f"lp.{name}", getattr(lp, name)
    for name in lp.spark.__all__:
        yield f"lp.spark.{name}", getattr(lp.spark, name)
    for owner, kind in CLASSES.items():
        if kind is lp.DirectoryNamespace:
            yield f"{owner}.{owner}", kind
        for name in members(kind):
            if callable(found := getattr(kind, name, None)):
                yield f"{owner}.{name}", found


def members(kind: type) -> list[str]:
    """The public names that a class itself adds: not those of ``Result``, nor those of a class of other libraries."""
    others = [base for base in kind.__mro__[1:] if base.__module__ != "lancepart.table.readable"]
    own = [name for name in public_names(kind) if not any(name in vars(base) for base in others)]
    return own if kind is not lp.PartitionedTable else [*own, "count_rows"]


def inherited(kind: type) -> list[str]:
    """The public names whose meaning another library defines."""
    outside = [base for base in kind.__mro__[1:-1] if not base.__module__.startswith("lancepart.")]
    return [name for name in public_names(kind) if any(name in vars(base) for base in outside)]


def attributes(kind: type) -> Iterator[tuple[str, str, str]]:
    """The public properties and fields of a class: the name, the type and what it says of itself."""
    typed = {each.name: str(each.type) for each in fields(kind)} if is_dataclass(kind) else {}
    typed |= {name: str(each) for name, each in vars(kind).get("__annotations__", {}).items()}
    for name in members(kind):
        found = inspect.getattr_static(kind, name, None)
        made = getattr(found, "fget", None) or getattr(found, "func", None)
        if made is not None:
            back = inspect.signature(made).return_annotation
            yield name, str(back), (inspect.getdoc(made) or "").partition("\n\n")[0]
        elif name in typed:
            yield name, typed[name], _said(kind).get(name, "")


def _said(kind: type) -> dict[str, str]:
    """What the source says of a class's fields: a string right after one."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters; options that a type lists are named one by one."""
    return [each.name for each in _expanded(function)]


def _expanded(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = []
    for each in inspect.signature(function).parameters.values():
        listed = _UNPACKED.search(str(each.annotation))
        if each.name in ("self", "cls"):
            continue
        if listed is None:
            found.append(each)
            continue
        for name, kind in inspect.unwrap(function).__globals__[listed[1]].__annotations__.items():
            annotation = getattr(kind, "__forward_arg__", str(kind))
            found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=...))
    return found


def written(meanings: dict[str, str]) -> Iterator[str]:
    """The page's sections."""
    everything = dict(callables())
    yield from _section("Functions", "lp.", everything, meanings)
    yield from _section("Spark", "lp.spark.", everything, meanings)
    for owner, kind in CLASSES.items():
        yield f"\n## {owner}\n\n" + (f"{WHERE[owner]}: " if owner in WHERE else "") + _text(kind) + "\n"
        for name, annotation, about in attributes(kind):
            yield f"- `{name}`: `{_literal(annotation)}`" + (f": {_plain(about)}" if about else "")
        if others := inherited(kind):
            yield f"\nWhat its base class has: {', '.join(f'`{name}`' for name in others)}.\n"
        yield from _section(owner, f"{owner}.", everything, meanings, heading=False)


def _section(
    title: str,
    prefix: str,
    everything: dict[str, Callable[..., Any]],
    meanings: dict[str, str],
    *,
    heading: bool = True,
) -> Iterator[str]:
    if heading:
        yield f"\n## {title}\n"
    for name, function in everything.items():
        if name.rpartition(".")[0] + "." == prefix:
            called = name.removeprefix("lp.").removeprefix(f"{title}.")
            yield f"\n### {called}\n\n{_signature(called if called == title else name, function)}\n"
            yield ("" if inspect.isclass(function) else _text(function)) + "\n"
            yield from (f"- `{each}`: {meanings[each]}" for each in parameters(function) if each in meanings)


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A signature as one would write it, a parameter a line where it is long."""
    given = _expanded(function)
    shown = [str(each).replace(f"'{each.annotation}'", str(each.annotation)) for each in given]
    shown = [_literal(each).replace(" = Ellipsis", " = …") for each in shown]
    kinds = [each.kind for each in given]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = inspect.signature(function).return_annotation
    back = "" if returned in (inspect.Signature.empty, None) else f" -> {returned}"
    line = f"{name}({', '.join(shown)}){back}"
    if len(line) > 100:
        line = f"{name}(\n    " + ",\n    ".join(shown) + f",\n){back}"
    return f"```python\n{line}\n```"


def _literal(annotation: str) -> str:
    """An annotation with the choices themselves in place of the name that they have in the source."""
    return re.sub(r"\b[A-Z]\w+\b", lambda found: _LITERALS.get(found[0], found[0]), annotation)


def _text(thing: object) -> str:
    """A docstring as Markdown: examples as code."""
    return re.sub(
        r"(^>>> .*(?:\n(?!\n).*)*)",
        lambda found: f"```pycon\n{textwrap.dedent(found[1])}\n```",
        _plain(inspect.getdoc(thing) or ""),
        flags=re.MULTILINE,
    )


def _plain(text: str) -> str:
    """A docstring's own marks as Markdown."""
    return re.sub(r"``(.+?)``", r"`\1`", re.sub(r":\w+:`[\w.]+\.(\w+)`", r"`\1`", text))
