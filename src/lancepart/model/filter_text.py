"""The ANDs, ORs and NOTs of a filter's text, found without recursion however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lancepart.errors import InvalidInputError
from lancepart.model.sql_text import Token

MOST_NESTED = 60


class TooDeepError(InvalidInputError):
    """A filter that is nested deeper than parsers go."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A test without AND, OR or NOT around its parts: tokens from the first up to but without the last."""

    first: int
    last: int

    size = 1
    depth = 1


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands joined by AND or OR; ``size`` counts atoms, ``depth`` levels."""

    operator: str
    parts: tuple[Node, ...]
    size: int
    depth: int


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT of an operand."""

    operand: Node
    size: int
    depth: int


Node = Atom | Chain | Negation


@dataclass(slots=True)
class _Frame:
    """What was read between two parentheses so far: alternatives, each of operands that are joined by AND."""

    alternatives: list[list[Node]] = field(default_factory=lambda: [[]])
    negated: bool = False
    wanting: bool = True
    first: int | None = None


def tree(found: Sequence[Token]) -> Node:
    """The tokens of a filter as a tree of atoms; parentheses around nothing but an operand leave no trace."""
    closes = _closes(found)
    stack = [_Frame()]
    at = 0
    while at < len(found):
        frame, token = stack[-1], found[at]
        word = token.text.lower() if token.kind == "word" else token.text
        if frame.first is None and word == "not":
            frame.negated = not frame.negated
        elif frame.first is None and word == "(" and _is_group(found, closes[at]):
            stack.append(_Frame())
        elif word in ("and", "or"):
            _end(frame, at)
            frame.wanting = True
            if word == "or":
                frame.alternatives.append([])
        elif word == ")":
            _end(frame, at)
            stack.pop()
            if not stack:
                raise InvalidInputError("a parenthesis is closed that was not opened")
            _add(stack[-1], _whole(frame))
        else:
            frame.first = at if frame.first is None else frame.first
            at = _past(found, closes, at)
            continue
        at += 1
    if len(stack) > 1:
        raise InvalidInputError("a parenthesis is not closed")
    _end(stack[0], len(found))
    return _whole(stack[0])


def _closes(found: Sequence[Token]) -> dict[int, int]:
    opened: list[int] = []
    closes = {}
    for at, token in enumerate(found):
        if token.text == "(":
            opened.append(at)
        elif token.text == ")" and opened:
            closes[opened.pop()] = at
    if opened:
        raise InvalidInputError("a parenthesis is not closed")
    return closes


def _is_group(found: Sequence[Token], close: int) -> bool:
    """Whether parentheses enclose a whole operand: the token after them does not continue it."""
    if close + 1 == len(found):
        return True
    following = found[close + 1]
    return following.text == ")" or (following.kind == "word" and following.text.lower() in ("and", "or"))


def _past(found: Sequence[Token], closes: dict[int, int], at: int) -> int:
    """Where an atom continues after a token: after parentheses, after a CASE, after the AND of a BETWEEN."""
    word = found[at].text.lower() if found[at].kind == "word" else found[at].text
    if word == "(":
        return closes[at] + 1
    if word not in ("case", "between"):
        return at + 1
    depth, step = 1, at + 1
    while step < len(found):
        token = found[step]
        inner = token.text.lower() if token.kind == "word" else token.text
        if inner == "(":
            step = closes[step]
        elif word == "between" and inner == "case":
            step = _past(found, closes, step) - 1
        elif word == "between" and inner in ("and", "or", ")"):
            return step + 1 if inner == "and" else step
        elif word == "case":
            depth += {"case": 1, "end": -1}.get(inner, 0)
            if depth == 0:
                return step + 1
        step += 1
    return step


def _end(frame: _Frame, at: int) -> None:
    """End the atom that was being read; each AND, OR and end needs an operand before it."""
    if frame.first is not None:
        first, frame.first = frame.first, None
        _add(frame, Atom(first, at))
    elif frame.wanting:
        raise InvalidInputError("an operand of AND, OR or NOT is missing")


def _add(frame: _Frame, node: Node) -> None:
    frame.wanting = False
    if frame.negated:
        frame.negated = False
        inner = node.operand if isinstance(node, Negation) else None
        node = inner if inner is not None else Negation(node, node.size, node.depth + 1)
    frame.alternatives[-1].append(node)


def _whole(frame: _Frame) -> Node:
    return _chained("OR", [_chained("AND", operands) for operands in frame.alternatives])


def _chained(operator: str, operands: Sequence[Node]) -> Node:
    flat: list[Node] = []
    for operand in operands:
        if isinstance(operand, Chain) and operand.operator == operator:
            flat.extend(operand.parts)
        else:
            flat.append(operand)
    if len(flat) == 1:
        return flat[0]
    size, depth = sum(part.size for part in flat), max(part.depth for part in flat) + 1
    if depth > MOST_NESTED:
        raise TooDeepError(f"ANDs and ORs are nested more than {MOST_NESTED} levels deep")
    return Chain(operator, tuple(flat), size, depth)
