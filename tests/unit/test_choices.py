"""Parameters that take one of a few names have Literal types, which name exactly what is accepted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.maintain import index_upkeep, indices
from lancepart.model import aliases
from lancepart.plan.output import kind_of_join
from lancepart.read.search_request import DISTANCE_TYPES, Options, SearchOptions
from lancepart.write.frames import check_distribution

CHOICES: dict[str, list[Callable[..., Any]]] = {
    "transactions": [lp.create_table, lp.create_table_from, lp.Connection.create_table],
    "layout": [lp.create_table, lp.create_table_from],
    "format": [lp.load],
    "how": [lp.PartitionedTable.join],
    "isolation": [lp.PartitionedTable.transaction],
    "distribution": [
        lp.PartitionedTable.append,
        lp.PartitionedTable.overwrite,
        lp.PartitionedTable.upsert,
        lp.spark.upsert_batches,
    ],
    "kind": [lp.Maintenance.create_index],
    "scope": [lp.Maintenance.create_index],
}


def choices(annotation: str) -> tuple[str, ...]:
    """The names that an annotation allows."""
    allowed = eval(annotation, vars(aliases))
    return tuple(name for each in (allowed, *get_args(allowed)) for name in get_args(each) if isinstance(name, str))


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_has_a_literal_type(name: str) -> None:
    for function in CHOICES[name]:
        parameter = inspect.signature(function).parameters[name]
        assert choices(parameter.annotation), function
        assert parameter.default is None or parameter.default in choices(parameter.annotation)


def test_the_options_of_a_search_have_literal_types() -> None:
    hints = get_type_hints(SearchOptions)
    assert get_args(hints["distance_type"]) == DISTANCE_TYPES
    for name in get_args(hints["statistics"]):
        assert Options(statistics=name).statistics == name


def test_the_names_are_those_that_are_accepted() -> None:
    assert {kind_of_join(name) for name in get_args(aliases.JoinType)} == set(get_args(aliases.JoinType)[:6])
    assert set(get_args(aliases.IndexScope)) == set(index_upkeep.SCOPES)
    assert set(get_args(aliases.IndexKind)) == {kind for kinds, _, _ in indices._KINDS for kind in kinds} | {"FTS"}
    for name in get_args(aliases.Distribution):
        check_distribution(name)


def test_tables_are_made_and_files_are_loaded_by_every_name(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    for layout in get_args(aliases.TableLayout):
        for mode in get_args(aliases.Transactions) if layout == "manifest" else ("weak",):
            made = lp.create_table(tmp_path / f"{layout}-{mode}", schema, ["k"], layout=layout, transactions=mode)
            assert (made.metadata.layout, made.metadata.transactions) == (layout, mode)
    strong = lp.open_table(tmp_path / "manifest-strong")
    for isolation in get_args(aliases.Isolation):
        with strong.transaction(isolation) as tx:
            tx.append([{"id": 1, "k": "a"}])
    with pa.OSFile(str(tmp_path / "rows.data"), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(strong.scan().to_arrow())
    assert lp.load(strong.root, tmp_path / "rows.data", format="arrow").count() == 4
    with pytest.raises(InvalidInputError, match=r"format is 'xml': use 'parquet', .*'arrow'"):
        lp.load(strong.root, tmp_path / "rows.data", format="xml")  # type: ignore[arg-type]
