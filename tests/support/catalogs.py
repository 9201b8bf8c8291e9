"""Roots for tests, and what is put into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lancepart import DirectoryNamespace


@dataclass(frozen=True)
class Place:
    """A root, and the storage options that reach it; it pickles, so that other processes can use it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, str]:
        return {"root": self.root, **{f"storage.{key}": value for key, value in self.options.items()}}

    @property
    def storage_options(self) -> dict[str, str] | None:
        return dict(self.options) or None

    def catalog(self, **properties: Any) -> DirectoryNamespace:
        return DirectoryNamespace(**{**self.properties, **properties})

    def uri(self, location: str) -> str:
        return f"{self.root}/{location}"


def ipc(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream, which is what CreateTable takes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def rows(*ids: int) -> pa.Table:
    """A small table."""
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{i}" for i in ids], pa.string())})
