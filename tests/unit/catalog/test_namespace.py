"""The facade: every operation of the interface is served, or refused by name."""

from __future__ import annotations

import inspect

import lance_namespace
import pytest

from lancepart import DirectoryNamespace
from lancepart.errors import UnsupportedOperationError
from tests.conformance.catalog.client import Client


def test_it_names_its_root_and_no_credentials(client: Client) -> None:
    assert client.place.root in client.namespace.namespace_id()
    secret = DirectoryNamespace(root="s3://bucket/x", **{"storage.aws_secret_access_key": "s3cr3t"})
    assert "s3cr3t" not in f"{secret!r}{secret.namespace_id()}"


def test_the_operations_that_are_not_served_are_these(client: Client) -> None:
    operations = {
        name
        for name, method in inspect.getmembers(lance_namespace.LanceNamespace, inspect.isfunction)
        if "request" in inspect.signature(method).parameters
    }
    unserved = operations - set(vars(DirectoryNamespace))

    assert len(operations - unserved) > 40
    assert {name.rpartition("_")[2] for name in unserved} <= {
        "branch", "branches", "columns", "table", "transaction", "view",
    }  # fmt: skip
    for name in sorted(unserved):
        with pytest.raises(UnsupportedOperationError):
            getattr(client.namespace, name)(None)
