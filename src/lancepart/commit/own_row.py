"""Expressions that set a row's values may use that row alone: an update runs leaf by leaf, a merge pair by pair.

A window or a subquery would see the rows of one leaf only, and ``unnest`` would make rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from datafusion import DataFrame
from datafusion.plan import LogicalPlan

from lancepart.errors import InvalidInputError
from lancepart.model.sql_text import tokens

_NODES = {"WindowExpr": ("a window function", "over"), "Unnest": ("unnest", "unnest")}
"""Nodes of plans that are refused: what they are called, and the word that brings them into a plan."""
_SUBQUERY = ("a subquery", "select")


class OtherRowsError(InvalidInputError):
    """An expression for one row uses others, or makes some."""


def refuse_other_rows(frame: DataFrame, expressions: Iterable[str]) -> None:
    """Refuse expressions, as a planned query has them, that use more than their own row."""
    plan = frame.logical_plan()
    found = next((_NODES[kind] for kind in _kinds(plan) if kind in _NODES), None)
    if found is None and "<subquery>" in plan.display_indent():
        found = _SUBQUERY
    if found is None:
        return
    what, word = found
    if blamed := next((each for each in expressions if _says(each, word)), None):
        raise OtherRowsError(
            f"{blamed!r} uses {what}: an expression may only use the values of its own row; compute the others first, "
            "as with lp.sql, and merge or upsert them"
        )


def _kinds(plan: LogicalPlan) -> Iterator[str]:
    yield type(plan.to_variant()).__name__
    for inner in plan.inputs():
        yield from _kinds(inner)


def _says(expression: str, word: str) -> bool:
    return any(token.kind == "word" and token.name == word for token in tokens(expression))
