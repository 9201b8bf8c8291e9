"""Completion shows what is public and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.model.public import public_names

INSIDES = {
    "bind_specs", "delete_matching", "html", "makers", "of", "over", "planned", "predicate", "snapshot", "strays",
    "task_of", "tasks", "work_for", "work_on", "works",
}  # fmt: skip
CLASSES = [name for name in lp.__all__ if isinstance(getattr(lp, name), type)]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """One object of each class that is exported."""
    folder = tmp_path_factory.mktemp("completion")
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(folder / "t", schema, ["k"])
    first = table.append([{"id": 1, "k": "a", "v": [1.0, 0.0]}])
    made = [
        table,
        first,
        table.changes(table.version),
        lp.connect(folder / "w"),
        table.namespace,
        table.inspect,
        table.join(table, on=["id"]),
        table.maintenance,
        table.maintenance.compact(progress=False),
        table.merge([{"id": 1}], on=["id"]),
        table.spec.fields[0],
        table.spec,
        table.to_dataset(),
        table.scan().plan(),
        lp.sql("SELECT 1 FROM t", t=table),
        table.scan(),
        table.search([1.0, 0.0]),
        table.describe(),
        table.tags,
    ]
    with table.transaction() as tx:
        yield {type(each).__name__: each for each in [*made, tx]}


@pytest.mark.parametrize("module", [lp, lp.spark, lp.errors], ids=lambda each: each.__name__)
def test_a_module_shows_its_public_names(module: Any) -> None:
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "Result"])
def test_an_object_shows_its_public_names(name: str, objects: dict[str, object]) -> None:
    kind, found = getattr(lp, name), objects[name]

    shown = [each for each in dir(found) if not each.startswith("_")]

    assert shown == public_names(kind)
    assert not INSIDES & set(shown)
    assert not [each for each in shown if not hasattr(found, each)]


@pytest.mark.parametrize("name", [*CLASSES, "config"])
def test_what_is_shown_is_documented(name: str) -> None:
    kind = getattr(lp, name) if name in CLASSES else type(lp.config)
    for each in public_names(kind):
        member = inspect.getattr_static(kind, each, None)
        if callable(member) or isinstance(member, property | classmethod):
            assert inspect.getdoc(member), f"{name}.{each}"


def test_settings_are_what_the_config_shows() -> None:
    assert dir(lp.config) == ["cache_bytes", "progress", "retries", "threads"]


def test_the_older_name_of_a_method_still_works(objects: dict[str, Any]) -> None:
    assert objects["Inspect"].strays().num_rows == 0
