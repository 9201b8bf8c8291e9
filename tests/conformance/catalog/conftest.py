"""Catalogs in each of the three modes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.catalog.client import MODES, WITH_LISTING, WITH_MANIFEST, Client
from tests.support.catalogs import Place


@pytest.fixture
def client(local: Place) -> Client:
    """A catalog in compatibility mode, on the local disk."""
    return Client(local)


@pytest.fixture
def anywhere(place: Place) -> Client:
    """A catalog in compatibility mode, on the local disk and on the S3 protocol."""
    return Client(place)


@pytest.fixture(params=MODES)
def any_mode(request: Any, local: Place) -> Client:
    """A catalog in each of the three modes."""
    return Client(local, **request.param)


@pytest.fixture(params=WITH_MANIFEST)
def with_manifest(request: Any, local: Place) -> Client:
    """A catalog in each of the modes that have a manifest."""
    return Client(local, **request.param)


@pytest.fixture(params=WITH_LISTING)
def with_listing(request: Any, local: Place) -> Client:
    """A catalog in each of the modes that list directories."""
    return Client(local, **request.param)


@pytest.fixture
def v1(local: Place) -> Client:
    """A catalog that only lists directories."""
    return Client(local, manifest_enabled="false")


@pytest.fixture
def v2(local: Place) -> Client:
    """A catalog that only reads its manifest."""
    return Client(local, dir_listing_enabled="false")


@pytest.fixture
def managed(place: Place) -> Client:
    """A catalog that keeps the versions of its tables, on the local disk and on the S3 protocol."""
    return Client(place).manage_versions()


@pytest.fixture
def managed_here(local: Place) -> Client:
    """A catalog that keeps the versions of its tables, on the local disk."""
    return Client(local).manage_versions()
