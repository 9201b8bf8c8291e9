"""Every call of Python's maintenance has a procedure in SQL, with all of its arguments."""

from __future__ import annotations

import inspect

from lancepart.maintain.maintenance import Maintenance
from lancepart.maintain.tags import Tags
from lancepart.model.public import public_names
from lancepart.spark import plain_calls
from lancepart.spark.procedures import PROCEDURES

CALLS = {
    "compact": "compact",
    "rewrite": "rewrite",
    "expire": "expire",
    "remove_orphans": "remove_orphans",
    "create_index": "create_index",
    "optimize_indices": "optimize_indices",
    "drop_index": "drop_index",
    "repair": "repair",
    "rollback": "rollback",
}
"""The procedure of each method of ``table.maintenance``."""
TAGS = {"create": "create_tag", "delete": "drop_tag", "list": None}
OTHERS = {"upgrade", "add_partition_field", "drop_partition_field", "replace_partition_field"}
"""Procedures that are functions of the package, or ``table.update_spec``."""
DRIVER_ONLY = {"spark", "progress"}
IN_ONE_PROCESS = {"repair"}
"""What changes the manifest alone, so that there is nothing to hand to executors."""


def test_a_new_method_of_maintenance_needs_a_procedure() -> None:
    assert set(public_names(Maintenance)) == set(CALLS)
    assert set(public_names(Tags)) == set(TAGS)
    tags = {name for name in TAGS.values() if name is not None}
    assert set(PROCEDURES) == set(CALLS.values()) | tags | OTHERS


def test_a_procedure_takes_the_arguments_of_its_method() -> None:
    for method, procedure in CALLS.items():
        taken = {each.name for each in PROCEDURES[procedure].parameters}
        wanted = {
            "params" if each.kind is inspect.Parameter.VAR_KEYWORD else each.name
            for each in inspect.signature(getattr(Maintenance, method)).parameters.values()
        }
        assert wanted - DRIVER_ONLY - {"self"} <= taken, method


def test_what_takes_long_can_run_on_executors() -> None:
    for method in CALLS:
        parameters = inspect.signature(getattr(Maintenance, method)).parameters
        assert ("spark" in parameters) == (method not in IN_ONE_PROCESS), method


def test_procedures_on_plain_tables_are_procedures() -> None:
    assert set(plain_calls.PROCEDURES) <= set(PROCEDURES)
