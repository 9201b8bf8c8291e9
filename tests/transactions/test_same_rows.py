"""Two commits that change the same row: the second must not win."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.commit.transaction import Transaction
from lancepart.errors import CommitConflictError
from tests.support.catalogs import Place

CHANGES: dict[str, Callable[[Transaction], None]] = {
    "delete": lambda transaction: transaction.delete("id = 1"),
    "update": lambda transaction: transaction.update({"v": "v + 1"}, "id = 1"),
}


@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("first", CHANGES)
def test_the_second_change_of_one_row_is_a_conflict_and_leaves_nothing(local: Place, first: str, second: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    table = lp.create_table(local.root, schema, ["k"])
    table.append([{"id": number, "k": "a", "v": 0} for number in range(3)])
    winner, loser = table.transaction(), table.transaction()
    CHANGES[first](winner)
    CHANGES[second](loser)
    winner.commit()
    before = table.scan().to_arrow().sort_by("id")

    with pytest.raises(CommitConflictError) as raised:
        loser.commit()

    assert len(raised.value.partitions) == 1
    assert table.scan().to_arrow().sort_by("id") == before
