"""Manifests that wait to become versions."""

from __future__ import annotations

import pytest

from lancepart.catalog import staging, tables
from lancepart.errors import InvalidInputError
from tests.conformance.catalog.client import Client, stage


def test_a_staged_manifest_becomes_the_next_version(client: Client) -> None:
    managed = client.manage_versions()
    managed.create("m")
    waiting = stage(managed, "m")
    located = tables.locate(managed.inside, ["m"])
    request = type("Request", (), {"manifest_size": None, "metadata": None, "naming_scheme": None, **waiting.fields})

    found = staging.read(managed.inside, located, request)

    assert (found.version, found.row_id) == (2, "m$2")
    assert found.final_path != found.path
    assert staging.copy_to_final(managed.inside, found).version == 2
    assert {item.version for item in staging.files(managed.inside, located)} == {1, 2}


@pytest.mark.parametrize("version", [0, None])
def test_a_version_below_one_is_refused(client: Client, version: int | None) -> None:
    located = tables.locate(client.inside, ["t"])
    with pytest.raises(InvalidInputError, match="start at 1"):
        staging.read(client.inside, located, type("Request", (), {"version": version}))


def test_a_path_is_shown_from_the_stores_root(client: Client) -> None:
    assert staging.store_path(client.inside, "t.lance/x") == f"{client.place.root.strip('/')}/t.lance/x"
