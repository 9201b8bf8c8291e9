"""Plain Lance tables as queries read them."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from datafusion import SessionContext

from lancepart.storage import lance_tables
from lancepart.storage.translate import MissingError
from tests.support.catalogs import rows


def test_a_table_is_opened_at_a_version_and_read_by_datafusion(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(1, 2), uri)
    lance.write_dataset(rows(3), uri, mode="append")

    first = lance_tables.opened(uri, version=1)

    assert lance_tables.is_lance(first)
    assert not lance_tables.is_lance(rows(1))
    assert lance_tables.schema_of(first) == rows().schema
    context = SessionContext()
    context.register_table("t", lance_tables.table_provider(first))
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 2}]


def test_one_that_is_missing_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        lance_tables.opened(str(tmp_path / "nothing.lance"))
