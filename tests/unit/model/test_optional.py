"""Calls that need a library that is not installed say what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import UnsupportedOperationError


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named_with_its_command(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), ["id"])
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnsupportedOperationError, match=f"to_{library}.*pip install {library}"):
        getattr(table.scan(), f"to_{library}")()


def test_a_lazy_frame_needs_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), ["id"])
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UnsupportedOperationError, match="pip install polars"):
        lp.scan_polars(table.root)
