"""Validating the structure of untrusted JSON before it is used."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import Value

Given = TypeVar("Given")
Shape: TypeAlias = object
"""A type, ``None``, a tuple of alternatives, ``[shape]`` for a list, ``{key: shape}`` for an object with these keys."""


def checked(value: Given, shape: Shape, what: str) -> Given:
    """The value itself if it has the shape; else an error that names the place.

    >>> checked({"ids": [1, None]}, {"ids": [(int, None)]}, "plan")
    {'ids': [1, None]}
    >>> checked({"ids": ["a"]}, {"ids": [int]}, "plan")
    Traceback (most recent call last):
    ...
    lance_namespace.errors.InvalidInputError: plan.ids[0] does not have the expected type
    """
    fault = _fault(value, shape)
    if fault is not None:
        raise InvalidInputError(f"{what}{fault} does not have the expected type")
    return value


def _fault(value: Value, shape: Shape) -> str | None:
    """Where a value differs from its shape, as a path; ``None`` where it does not."""
    if isinstance(shape, tuple):
        faults = [_fault(value, each) for each in shape]
        return None if None in faults else max(faults, key=lambda fault: len(fault or ""))
    if isinstance(shape, list):
        if type(value) is not list:
            return ""
        found = ((at, _fault(each, shape[0])) for at, each in enumerate(value))
        return next((f"[{at}]{fault}" for at, fault in found if fault is not None), None)
    if isinstance(shape, dict):
        if type(value) is not dict or value.keys() != shape.keys():
            return ""
        return next((f".{key}{fault}" for key in shape if (fault := _fault(value[key], shape[key])) is not None), None)
    return None if (value is None and shape is None) or type(value) is shape else ""
