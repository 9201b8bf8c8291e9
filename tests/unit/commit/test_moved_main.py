"""A leaf that is read at an ordinary version of main, while main has moved on: a commit takes nothing else along."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pytest

import lancepart as lp
from tests.conformance.partitioned import appendix
from tests.conformance.partitioned.appendix import DAY, LOCATIONS, V1_LEAF, V2_LEAF
from tests.support.catalogs import Place


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: table.append(appendix.events((20, DAY, "US"))), [4, 5, 20]),
        (lambda table: table.delete("id = 4"), [5]),
        (lambda table: table.update({"country": "'US'"}, "id = 4"), [4, 5]),
        (lambda table: table.overwrite(appendix.events((20, DAY, "US"))), [20]),
    ],
    ids=["append", "delete", "update", "overwrite"],
)
def test_what_others_put_on_main_is_not_taken_along(
    local: Place, change: Callable[[lp.PartitionedTable], None], expected: list[int]
) -> None:
    detached = appendix.write_leaves(local.root)[V1_LEAF]
    records = [row for row in appendix.appendix_c(detached) if not row[0].startswith("v1$")]
    appendix.write_manifest(local.root, records)
    lance.write_dataset(appendix.events((99, DAY, "US")), f"{local.root}/{LOCATIONS[V2_LEAF]}", mode="append")
    table = lp.open_table(local.root)

    change(table)

    assert appendix.ids(table) == expected
