"""001, «Namespace Implementation Configuration Properties»."""

import json
from pathlib import Path

import lance_namespace
import pytest

from lancepart import DirectoryNamespace
from lancepart.errors import InvalidInputError, LanceNamespaceError
from tests.conformance.catalog.client import MODES, Client, refused
from tests.support.catalogs import Place, rows


@pytest.mark.parametrize("properties", [{}, {"root": ""}, {"root": "  "}])
def test_configuration_root_is_required(properties: dict[str, str]) -> None:
    with refused(InvalidInputError, 13):
        DirectoryNamespace(**properties)


def test_configuration_root_is_a_local_path_or_a_cloud_uri(anywhere: Client) -> None:
    anywhere.create("t")

    assert anywhere.describe_table("t").location == f"{anywhere.place.root}/t.lance"


def test_configuration_root_may_be_a_path_object_or_a_file_uri(local: Place) -> None:
    Client(local).create("t")

    for root in (Path(local.root), f"file://{local.root}", local.root + "/"):
        assert Client(Place(root)).tables() == ["t"]


def test_configuration_both_switches_default_to_true(local: Place) -> None:
    spelled = Client(local, manifest_enabled="true", dir_listing_enabled="true")
    spelled.create_namespace("ns")
    spelled.storage.write("listed.lance/.lance-reserved")

    default = Client(local)

    assert default.namespaces() == ["ns"]
    assert default.tables() == ["listed"]


@pytest.mark.parametrize("value", ["false", "False", " FALSE ", False])
def test_configuration_manifest_enabled_is_accepted_as_a_string(local: Place, value: object) -> None:
    catalog = Client(local, manifest_enabled=value)
    catalog.create("t")

    assert not any(path.startswith("__manifest") for path in catalog.storage.files())


@pytest.mark.parametrize("value", ["false", "False", " FALSE ", False])
def test_configuration_dir_listing_enabled_is_accepted_as_a_string(local: Place, value: object) -> None:
    catalog = Client(local, dir_listing_enabled=value)
    catalog.storage.write("listed.lance/.lance-reserved")

    assert catalog.tables() == []


@pytest.mark.parametrize("name", ["manifest_enabled", "dir_listing_enabled"])
def test_configuration_a_switch_is_true_or_false_and_nothing_else(local: Place, name: str) -> None:
    with refused(InvalidInputError, 13):
        local.catalog(**{name: "yes"})


def test_configuration_both_ways_off_is_refused(local: Place) -> None:
    with refused(InvalidInputError, 13):
        local.catalog(manifest_enabled="false", dir_listing_enabled="false")


def test_configuration_unknown_properties_are_refused_rather_than_ignored(local: Place) -> None:
    with refused(InvalidInputError, 13) as caught:
        local.catalog(manifest_enabeld="false")

    assert "manifest_enabeld" in str(caught.value)


def test_configuration_storage_properties_reach_the_object_store_without_their_prefix(s3_server) -> None:
    place = s3_server.place()
    assert all(
        key == "root" or key.startswith("storage.aws_") or key == "storage.allow_http" for key in place.properties
    )
    catalog = Client(place)
    catalog.create("t")

    vended = catalog.describe_table("t", vend_credentials=True).storage_options

    assert vended == place.options


@pytest.mark.parametrize("mode", MODES)
def test_configuration_making_a_namespace_has_no_side_effects(local: Place, mode: dict[str, str]) -> None:
    Client(local, **mode)

    assert not Path(local.root).exists()


@pytest.mark.parametrize("mode", MODES)
def test_configuration_reading_an_empty_namespace_writes_nothing(local: Place, mode: dict[str, str]) -> None:
    catalog = Client(local, **mode)

    assert catalog.tables() == []
    assert catalog.namespaces() == []
    assert not Path(local.root).exists()


def test_configuration_lance_namespace_connects_by_class_name(local: Place) -> None:
    properties = {"root": local.root, "manifest_enabled": "true", "dir_listing_enabled": "false"}
    catalog = lance_namespace.connect("lancepart.DirectoryNamespace", properties)
    catalog.create_namespace(lance_namespace.CreateNamespaceRequest(id=["ns"]))

    assert isinstance(catalog, DirectoryNamespace)
    assert catalog.list_namespaces(lance_namespace.ListNamespacesRequest(id=[])).namespaces == ["ns"]


def test_configuration_credentials_stand_in_no_name_and_no_answer(s3_server) -> None:
    catalog = Client(s3_server.place())
    catalog.create("t", data=rows(1))
    shown = [repr(catalog.namespace), catalog.namespace.namespace_id(), repr(catalog.inside)]
    shown += [repr(catalog.describe_table("t")), json.dumps(catalog.describe_table("t").to_dict())]

    assert not any("testing-secret" in text or "testing-key" in text for text in shown)


def test_configuration_credentials_stand_in_no_error(s3_server) -> None:
    secret = {"aws_secret_access_key": "very-secret-value", "aws_session_token": "very-secret-token"}
    place = Place("s3://no-such-bucket/warehouse", {**s3_server.options, **secret})

    with pytest.raises(LanceNamespaceError) as caught:
        Client(place).create("t")

    assert "very-secret" not in str(caught.value) + repr(caught.value)
