"""A catalog on the local disk with one small table, ``t``, and a namespace, ``ns``."""

from __future__ import annotations

import pytest

from tests.conformance.catalog.client import Client
from tests.support.catalogs import Place


@pytest.fixture
def client(local: Place) -> Client:
    made = Client(local)
    made.create_namespace("ns")
    made.create("t")
    return made
