"""Names of tables with dots and back-ticks in their parts are written so that they can be read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.model.table_names import joined, parts_of


@given(st.lists(st.text("ab.`", min_size=1), min_size=1, max_size=4))
def test_a_name_is_read_as_it_was_written(path: list[str]) -> None:
    assert parts_of(joined(path)) == tuple(path)


@pytest.mark.parametrize("name", [".", "a.", ".a", "a..b", "`a", "`a`b", "``"])
def test_what_is_no_name_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        parts_of(name)
    assert repr(name) in str(raised.value)


def test_the_names_that_a_warehouse_lists_open_its_tables(tmp_path: Path) -> None:
    db = lp.connect(tmp_path)
    db.create_namespace(["v1.0"])
    for name in ("plain", "2026.01"):
        db.create_table(["v1.0", name], pa.schema([("id", pa.int64())]))
    assert db.list_namespaces() == ["`v1.0`"]
    assert sorted(db.list_tables("`v1.0`")) == ["`v1.0`.`2026.01`", "`v1.0`.plain"]
    for name in db.list_tables():
        assert db.table(name).count_rows() == 0
    db.drop_table("`v1.0`.`2026.01`")
    assert db.list_tables() == ["`v1.0`.plain"]
