"""Shared fixtures: catalogs on a local disk and on the S3 protocol, and small data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import s3
from tests.support.catalogs import Place
from tests.support.processes import TORTURE
from tests.support.tiers import slow, thin

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("long" if os.environ.get("LANCEPART_TORTURE") else "ci")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.Server]:
    """moto's S3 server in a process of its own, on loopback."""
    with s3.serve() as server:
        yield server


@pytest.fixture(params=["local", slow("s3")])
def place(request: Any, tmp_path: Path) -> Place:
    """A fresh root, once on the local disk and once on the S3 protocol."""
    if request.param == "local":
        return Place(str(tmp_path / "root"), {})
    return request.getfixturevalue("s3_server").place()


@pytest.fixture
def local(tmp_path: Path) -> Place:
    """A fresh root on the local disk."""
    return Place(str(tmp_path / "root"), {})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave most variants to ``make test-all``, and the long races and kills to ``make torture``."""
    thin(items)
    if TORTURE:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
    items[:] = [item for item in items if not item.get_closest_marker("long")]
