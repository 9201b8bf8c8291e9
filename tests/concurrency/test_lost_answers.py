"""On an object store an answer can be lost after the work was done: what was asked for still happens once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DropTableRequest,
    ListTableVersionsRequest,
    RenameTableRequest,
)

from lancepart import DirectoryNamespace
from lancepart.errors import LanceNamespaceError
from tests.concurrency import actions, audit
from tests.support import proxy, s3
from tests.support.catalogs import Place, ipc, rows
from tests.support.processes import TORTURE
from tests.support.tiers import one_in

pytestmark = pytest.mark.torture

Action = Callable[[DirectoryNamespace, Place], Any]


@pytest.fixture(scope="module")
def losing(s3_server: s3.Server) -> Iterator[proxy.Proxy]:
    with proxy.losing(s3_server.endpoint) as running:
        yield running


def create_namespace(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.create_namespace(CreateNamespaceRequest(id=["ns", "new"]))


def declare_table(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.declare_table(DeclareTableRequest(id=["ns", "new"]))


def declare_root_table(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.declare_table(DeclareTableRequest(id=["new"]))


def create_table(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.create_table(CreateTableRequest(id=["new"]), ipc(rows(1, 2)))


def rename_table(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.rename_table(RenameTableRequest(id=["t"], new_table_name="new"))


def drop_table(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.drop_table(DropTableRequest(id=["t"]))


def create_version(catalog: DirectoryNamespace, place: Place) -> None:
    catalog.create_table_version(actions.stage_version(place, ["t"], 2))


def prepared(server: s3.Server, managed: bool) -> Place:
    place = server.place()
    actions.set_root_properties(place, {"table_version_management": str(managed).lower()})
    actions.create_namespace(place, ["ns"])
    actions.create_table(place, ["t"], 1)
    return place


def through(running: proxy.Proxy, place: Place) -> DirectoryNamespace:
    return Place(place.root, {**place.options, "aws_endpoint": running.endpoint}).catalog()


def chosen(writes: int, name: str) -> list[int]:
    return list(range(writes)) if TORTURE else random.Random(name).sample(range(writes), 1)


SAMPLE = [
    (create_namespace, False, {"ns$new"}, {None}),
    (declare_root_table, False, {"new"}, {None}),
    (create_table, False, {"new"}, {None}),
    (create_version, True, {"t$2"}, {None}),
]
REST = [
    (declare_table, False, {"ns$new"}, {None}),
    (create_table, True, {"new", "new$1"}, {None}),
    (rename_table, False, {"new"}, {None}),
    (create_version, False, set(), {None}),
    (drop_table, False, set(), {None, 4}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("action", "managed", "made", "codes"), one_in(4, SAMPLE + (REST if TORTURE else [])))
def test_an_answer_lost_after_the_work_was_done_doubles_nothing(
    s3_server: s3.Server, losing: proxy.Proxy, action: Action, managed: bool, made: set[str], codes: set[int | None]
) -> None:
    place = prepared(s3_server, managed)
    before = set(audit.rows(place))
    losing.lose(None)
    action(through(losing, place), place)
    after = set(audit.rows(place))
    assert after - before == made

    for write in chosen(losing.writes, action.__name__):
        place = prepared(s3_server, managed)
        losing.lose(write)
        code = None
        try:
            action(through(losing, place), place)
        except LanceNamespaceError as error:
            code = int(error.code)

        assert code in codes, write
        assert set(audit.whole(place, garbage=None)) == after, write
        if action is create_version:
            listed = place.catalog().list_table_versions(ListTableVersionsRequest(id=["t"])).versions
            assert [item.version for item in listed] == [1, 2]
