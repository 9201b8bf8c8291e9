"""The crew of eight processes, hired once for all races, and the places where they race."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.catalogs import Place
from tests.support.processes import TORTURE, Crew, hire
from tests.support.tiers import slow


class Spot(NamedTuple):
    """A root, and the namespace in it where the race is held."""

    place: Place
    parent: list[str]


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    with hire() as crew:
        yield crew


@pytest.fixture(params=["local-root", "local-child", slow("s3-root"), *(["s3-child"] if TORTURE else [])])
def spot(request: Any) -> Spot:
    """In the root, whose tables live in directories named after them, and in a namespace, whose tables do not."""
    kind, level = request.param.split("-")
    place = request.getfixturevalue("s3_server").place() if kind == "s3" else request.getfixturevalue("local")
    return Spot(place, ["ns"] if level == "child" else [])
