"""Identifiers: what would be ambiguous or lead elsewhere is refused, all else works in every mode."""

from typing import Any

import lance
import pytest

from lancepart.errors import InvalidInputError
from tests.conformance.catalog.client import MODES, WITH_MANIFEST, Client, refused
from tests.support.catalogs import Place, rows

ALLOWED = [
    'it\'s "50% off"',
    " padded 😀 e\u0301 ",
    "%2F%24",
    "a#b?c*d&e=f:g",
    "[a]{b}`c..d",
    ".hidden.lance",
    "~home",
]
REFUSED = ["", " ", "a$b", "a/b", "/abs", "a\\b", ".", "..", "a\nb", "a\tb", "a\x00b", "a\x7fb", "\ud800"]
ON_S3 = "it's 50% off #1? 😀*"

TABLE_CALLS: dict[str, dict[str, Any]] = {
    "declare_table": {},
    "create": {},
    "register_table": {"location": "other.lance"},
    "describe_table": {},
    "table_exists": {},
    "deregister_table": {},
    "drop_table": {},
    "rename_table": {"new_table_name": "fine"},
    "list_table_versions": {},
    "describe_table_version": {"version": 1},
    "batch_delete_table_versions": {"ranges": []},
    "create_table_version": {"version": 1, "manifest_path": "x"},
}
NAMESPACE_CALLS = ["create_namespace", "describe_namespace", "drop_namespace", "namespace_exists", "list_namespaces"]
NAMESPACE_CALLS += ["list_tables", "list_all_tables"]


def live_a_table(client: Client, *path: str) -> None:
    """Take a table through its whole life."""
    name, parent = path[-1], path[:-1]
    client.declare_table(*path)
    client.create(*path)
    assert client.tables(*parent) == [name]
    assert client.count_table_rows(*path).count == 2
    location = client.location(*path)
    uri = client.describe_table(*path, with_table_uri=True).table_uri
    assert lance.dataset(uri, storage_options=client.place.storage_options).to_table() == rows(1, 2)
    client.deregister_table(*path)
    assert client.tables(*parent) == []
    client.register_table(*path, location=location)
    client.insert_into_table(*path, data=rows(3))
    assert [version.version for version in client.list_table_versions(*path).versions] == [1, 2]


@pytest.mark.parametrize("name", ALLOWED)
def test_identifiers_every_other_character_works_for_tables_in_every_mode(any_mode: Client, name: str) -> None:
    live_a_table(any_mode, name)
    any_mode.drop_table(name)

    assert any_mode.tables() == []
    assert not {path for path in any_mode.storage.files() if not path.startswith("__manifest/")}


@pytest.mark.parametrize("name", ALLOWED)
def test_identifiers_every_other_character_works_for_namespaces(with_manifest: Client, name: str) -> None:
    with_manifest.create_namespace(name, properties={name: name})
    with_manifest.create_namespace(name, name)
    live_a_table(with_manifest, name, name, name)
    with_manifest.rename_table(name, name, name, new_table_name=f"{name}2", new_namespace_id=[name])

    assert with_manifest.namespaces() == with_manifest.namespaces(name) == [name]
    assert with_manifest.describe_namespace(name).properties == {name: name}
    assert with_manifest.count_table_rows(name, f"{name}2").count == 3
    with_manifest.drop_namespace(name, behavior="cascade")
    assert with_manifest.namespaces() == []


@pytest.mark.parametrize("mode", MODES)
def test_identifiers_every_other_character_works_on_s3(s3_server, mode: dict[str, str]) -> None:
    catalog = Client(s3_server.place(), **mode)
    live_a_table(catalog, ON_S3)
    if mode in [parameters.values[0] for parameters in WITH_MANIFEST]:
        catalog.rename_table(ON_S3, new_table_name=f"{ON_S3}2")
        catalog.drop_table(f"{ON_S3}2")
    else:
        catalog.drop_table(ON_S3)

    assert catalog.tables() == []


@pytest.mark.parametrize("name", [ON_S3, "it's", "50% off"])
def test_identifiers_every_other_character_works_with_managed_versions(managed_here: Client, name: str) -> None:
    managed_here.create_namespace(name)
    live_a_table(managed_here, name, name)
    managed_here.rename_table(name, name, new_table_name="plain")

    assert managed_here.count_table_rows(name, "plain").count == 3


def test_identifiers_error_13_for_tables_and_nothing_changes(any_mode: Client) -> None:
    any_mode.create("other")
    before = any_mode.storage.files()

    for operation, fields in TABLE_CALLS.items():
        if operation == "rename_table" and not any_mode.inside.manifest_enabled:
            continue
        for path in (path for part in REFUSED for path in ([part], [part, "users"], ["other", part])):
            with refused(InvalidInputError, 13):
                getattr(any_mode, operation)(id=path, **fields)

    assert any_mode.storage.files() == before


def test_identifiers_error_13_for_namespaces_and_nothing_changes(with_manifest: Client) -> None:
    with_manifest.create_namespace("other")
    before = with_manifest.manifest_rows()

    for operation in NAMESPACE_CALLS:
        for path in (path for part in REFUSED for path in ([part], ["other", part])):
            with refused(InvalidInputError, 13):
                getattr(with_manifest, operation)(id=path)

    assert with_manifest.manifest_rows() == before


@pytest.mark.parametrize("operation", TABLE_CALLS)
def test_identifiers_a_table_has_a_name(client: Client, operation: str) -> None:
    with refused(InvalidInputError, 13):
        getattr(client, operation)(id=[], **TABLE_CALLS[operation])


def test_identifiers_are_long_enough_for_deep_paths(local: Place) -> None:
    catalog = Client(local)
    path = [f"level {depth} " + "x" * 60 for depth in range(6)]
    for depth in range(1, len(path)):
        catalog.create_namespace(*path[:depth])

    catalog.create(*path)

    assert catalog.count_table_rows(*path).count == 2
