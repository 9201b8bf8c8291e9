"""A process killed at any step of an operation leaves a catalog that reads as before it or as after it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    CreateTableVersionRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
    RegisterTableRequest,
    RenameTableRequest,
    TableExistsRequest,
)

from lancepart import DirectoryNamespace
from lancepart.errors import LanceNamespaceError
from tests.concurrency import actions, audit
from tests.support.catalogs import Place, ipc, rows
from tests.support.dying import Kill
from tests.support.processes import TORTURE, count_steps, run_and_die
from tests.support.tiers import one_in

pytestmark = pytest.mark.torture

SAMPLE = 2
DECLARED = "declared"


@dataclass(frozen=True)
class Scenario:
    """An operation, what stands there before it, and what it says when it is run again after it was done.

    ``between`` are states that a kill may leave and a second run ends; ``done`` are states that count as its end.
    """

    name: str
    act: Callable[[DirectoryNamespace], Any]
    prepare: Callable[[Place], Any]
    again: int | None
    managed: bool = False
    between: tuple[dict[str, Any], ...] = field(default=())
    done: tuple[dict[str, Any], ...] = field(default=())


def declare_root(catalog: DirectoryNamespace) -> None:
    catalog.declare_table(DeclareTableRequest(id=["t"]))


def declare_child(catalog: DirectoryNamespace) -> None:
    catalog.declare_table(DeclareTableRequest(id=["ns", "t"]))


def create_root(catalog: DirectoryNamespace) -> None:
    catalog.create_table(CreateTableRequest(id=["t"]), ipc(rows(1, 2)))


def create_child(catalog: DirectoryNamespace) -> None:
    catalog.create_table(CreateTableRequest(id=["ns", "t"]), ipc(rows(1, 2)))


def drop_root(catalog: DirectoryNamespace) -> None:
    catalog.drop_table(DropTableRequest(id=["t"]))


def drop_child(catalog: DirectoryNamespace) -> None:
    catalog.drop_table(DropTableRequest(id=["ns", "t"]))


def rename_root(catalog: DirectoryNamespace) -> None:
    catalog.rename_table(RenameTableRequest(id=["t"], new_table_name="u"))


def rename_child(catalog: DirectoryNamespace) -> None:
    catalog.rename_table(RenameTableRequest(id=["ns", "t"], new_table_name="u"))


def move_to_child(catalog: DirectoryNamespace) -> None:
    catalog.rename_table(RenameTableRequest(id=["t"], new_namespace_id=["ns"], new_table_name="u"))


def deregister_root(catalog: DirectoryNamespace) -> None:
    catalog.deregister_table(DeregisterTableRequest(id=["t"]))


def deregister_child(catalog: DirectoryNamespace) -> None:
    catalog.deregister_table(DeregisterTableRequest(id=["ns", "t"]))


def register_root(catalog: DirectoryNamespace) -> None:
    catalog.register_table(RegisterTableRequest(id=["t"], location="t.lance"))


def commit_version(catalog: DirectoryNamespace) -> None:
    store = catalog._catalog.files
    staged = next((info for info in store.walk("t.lance/_versions") if ".manifest-" in info.path), None)
    path = staged.path if staged else "t.lance/_versions/18446744073709551613.manifest-gone"
    catalog.create_table_version(CreateTableVersionRequest(id=["t"], version=2, manifest_path=path))


def drop_namespace(catalog: DirectoryNamespace) -> None:
    catalog.drop_namespace(DropNamespaceRequest(id=["ns"], behavior="cascade"))


def overwrite_namespace(catalog: DirectoryNamespace) -> None:
    catalog.create_namespace(CreateNamespaceRequest(id=["ns"], mode="overwrite"))


def create_namespace(catalog: DirectoryNamespace) -> None:
    catalog.create_namespace(CreateNamespaceRequest(id=["ns", "inner"]))


def nothing(place: Place) -> None:
    actions.create_namespace(place, ["ns"])
    actions.create_table(place, ["other"], 7)


def a_declared_table(place: Place) -> None:
    nothing(place)
    actions.declare_table(place, ["t"])


def a_table(place: Place) -> None:
    nothing(place)
    actions.create_table(place, ["t"], 1)


def a_table_only_listed(place: Place) -> None:
    nothing(place)
    lance.write_dataset(rows(1), place.uri("t.lance"), storage_options=place.storage_options)


def a_deregistered_table(place: Place) -> None:
    a_table(place)
    actions.deregister_table(place, ["t"])


def a_child(place: Place) -> None:
    nothing(place)
    actions.create_table(place, ["ns", "t"], 1)


def a_staged_version(place: Place) -> None:
    a_table(place)
    actions.stage_version(place, ["t"], 2)


def a_full_namespace(place: Place) -> None:
    a_child(place)
    actions.create_namespace(place, ["ns", "inner"])
    actions.create_table(place, ["ns", "inner", "v"], 2)
    actions.create_table(place, ["ns2"], 3)


SCENARIOS = [
    Scenario("declare in the root", declare_root, nothing, 5),
    Scenario("declare in a namespace", declare_child, nothing, 5),
    Scenario("create in the root", create_root, nothing, 5),
    Scenario("create in a namespace", create_child, nothing, 5),
    Scenario("create what is declared", create_root, a_declared_table, 5, done=({"t": ([1], [1, 2])},)),
    Scenario("create, managed", create_root, nothing, 5, managed=True, between=({"t": DECLARED},)),
    Scenario("create in a namespace, managed", create_child, nothing, 5, managed=True, between=({"ns$t": DECLARED},)),
    Scenario("drop from the root", drop_root, a_table, 4),
    Scenario("drop from a namespace", drop_child, a_child, 4),
    Scenario("drop, managed", drop_root, a_table, 4, managed=True),
    Scenario("drop what is only listed", drop_root, a_table_only_listed, 4),
    Scenario("rename in the root", rename_root, a_table, 4),
    Scenario("rename in a namespace", rename_child, a_child, 4),
    Scenario("rename, managed", rename_root, a_table, 4, managed=True),
    Scenario("rename what is only listed", rename_root, a_table_only_listed, 4),
    Scenario("rename what is only declared", rename_root, a_declared_table, 4),
    Scenario("rename into a namespace", move_to_child, a_table, 4),
    Scenario("deregister from the root", deregister_root, a_table, 4),
    Scenario("deregister from a namespace", deregister_child, a_child, 4),
    Scenario("register again", register_root, a_deregistered_table, 5),
    Scenario("commit a version", commit_version, a_staged_version, 12),
    Scenario("commit a version, managed", commit_version, a_staged_version, 12, managed=True),
    Scenario("drop a namespace and all in it", drop_namespace, a_full_namespace, 1),
    Scenario("overwrite a namespace", overwrite_namespace, a_full_namespace, None),
    Scenario("create a namespace", create_namespace, nothing, 2),
]
ON_S3 = {"rename in the root", "commit a version, managed"}
ON_S3_AT_LENGTH = {"declare in a namespace", "create in the root", "create, managed", "drop, managed"}


def look(place: Place) -> dict[str, Any]:
    """All that a fresh catalog tells: each namespace, and of each table its versions and rows."""
    catalog = place.catalog()
    seen: dict[str, Any] = {f"{name}/": True for name in namespaces(catalog, [])}
    for name in catalog.list_all_tables(ListTablesRequest(id=[])).tables:
        path = name.split("$")
        catalog.table_exists(TableExistsRequest(id=path))
        described = catalog.describe_table(DescribeTableRequest(id=path, check_declared=True))
        seen[name] = DECLARED if described.is_only_declared else content(place, catalog, path)
    return seen


def namespaces(catalog: DirectoryNamespace, path: list[str]) -> Iterator[str]:
    for name in catalog.list_namespaces(ListNamespacesRequest(id=path)).namespaces:
        yield "$".join([*path, name])
        yield from namespaces(catalog, [*path, name])


def content(place: Place, catalog: DirectoryNamespace, path: list[str]) -> tuple[list[int], list[int]]:
    versions = [item.version for item in catalog.list_table_versions(ListTableVersionsRequest(id=path)).versions]
    table = lance.dataset(namespace_client=catalog, table_id=path, storage_options=place.storage_options)
    return versions, sorted(table.to_table()["id"].to_pylist())


def prepared(scenario: Scenario, place: Place) -> Place:
    actions.set_root_properties(place, {"table_version_management": str(scenario.managed).lower()})
    scenario.prepare(place)
    return place


def kills(scenario: Scenario, steps: int) -> list[Kill]:
    """Every moment in `make torture`; some of them, always the same, in `make test`."""
    every = [Kill(step, after) for step in range(steps) for after in (False, True)]
    if TORTURE:
        return every
    return random.Random(scenario.name).sample(every, min(SAMPLE, len(every)))


def check(scenario: Scenario, place: Place, kill: Kill, before: dict[str, Any], after: dict[str, Any]) -> None:
    run_and_die(scenario.act, place, kill)

    found = look(place)
    finished = [after, *({**before, **extra} for extra in scenario.done)]
    assert found in (before, *finished, *({**before, **extra} for extra in scenario.between)), kill
    audit.whole(place, garbage=None)
    assert run_again(scenario, place) == (scenario.again if found in finished else None), kill
    assert look(place) == (found if found in finished else after), kill
    audit.whole(place, garbage=None)


def run_again(scenario: Scenario, place: Place) -> int | None:
    """The code that the operation ends with when it is run once more, or nothing if it succeeds."""
    try:
        scenario.act(place.catalog())
    except LanceNamespaceError as error:
        return int(error.code)
    return None


@pytest.mark.parametrize("scenario", one_in(6, SCENARIOS), ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_a_kill_at_any_step_leaves_the_catalog_as_before_or_as_after(tmp_path: Path, scenario: Scenario) -> None:
    template = prepared(scenario, Place(str(tmp_path / "template")))
    before = look(template)

    def copy(name: str) -> Place:
        return Place(shutil.copytree(template.root, tmp_path / name))

    done = copy("done")
    steps = count_steps(scenario.act, done)
    after = look(done)
    assert before != after
    assert steps
    for kill in kills(scenario, steps):
        check(scenario, copy(f"{kill.step}-{kill.after}"), kill, before, after)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in SCENARIOS if scenario.name in ON_S3 | (ON_S3_AT_LENGTH if TORTURE else set())],
    ids=lambda scenario: scenario.name.replace(" ", "-"),
)
def test_a_kill_at_any_step_leaves_a_catalog_on_s3_as_before_or_as_after(s3_server: Any, scenario: Scenario) -> None:
    done = prepared(scenario, s3_server.place())
    before = look(done)
    steps = count_steps(scenario.act, done)
    after = look(done)
    for kill in kills(scenario, steps)[: None if TORTURE else 1]:
        check(scenario, prepared(scenario, s3_server.place()), kill, before, after)


def test_a_version_that_was_committed_and_not_finished_is_finished_by_the_next_reader(local: Place) -> None:
    prepared(Scenario("", commit_version, a_staged_version, None, managed=True), local)
    run_and_die(commit_version, local, Kill(step=0, after=True))
    assert lance.dataset(local.uri("t.lance")).version == 1

    listed = local.catalog().list_table_versions(ListTableVersionsRequest(id=["t"])).versions

    assert [item.version for item in listed] == [1, 2]
    assert lance.dataset(local.uri("t.lance")).to_table()["id"].to_pylist() == [1, 2]
    names = [info.path for info in audit.files(local).walk("t.lance/_versions")]
    assert [name for name in names if ".manifest-" in name] == []


def test_what_a_killed_drop_left_is_removed_by_the_next_drop(local: Place) -> None:
    a_table(local)
    run_and_die(drop_root, local, Kill(step=2, after=True))
    assert "t.lance" in audit.directories(local)

    with pytest.raises(LanceNamespaceError, match="does not exist"):
        drop_root(local.catalog())

    assert "t.lance" not in audit.directories(local)


def test_a_table_made_where_a_killed_drop_left_its_remains_has_only_its_own_rows(local: Place) -> None:
    a_table(local)
    run_and_die(drop_root, local, Kill(step=2, after=True))

    create_root(local.catalog())

    assert look(local)["t"] == ([1], [1, 2])
    audit.whole(local, garbage={"t.lance"})
