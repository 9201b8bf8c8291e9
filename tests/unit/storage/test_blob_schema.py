"""Columns that are marked as blobs, as Lance numbers them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from lancepart.storage.blob_schema import stored_schema

SCHEMA = pa.schema(
    [
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", "note": "x"}),
        pa.field("id", pa.int64()),
    ]
)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_after_a_blob_have_the_ids_that_files_know(tmp_path: Path, version: str) -> None:
    rows = pa.table([pa.array([b"x", None], pa.large_binary()), pa.array([1, 2])], schema=SCHEMA)
    place = str(tmp_path / "t.lance")
    fragments = write_fragments(rows, place, schema=SCHEMA, mode="create", data_storage_version=version)

    schema = stored_schema(SCHEMA, fragments)
    done = lance.LanceDataset.commit(place, lance.LanceOperation.Overwrite(schema, fragments))

    assert (schema == SCHEMA) == (version == "2.1")
    assert [field.id() for field in done.lance_schema.fields()] == list(fragments[0].files[0].fields)
    assert done.schema.field("b").metadata[b"note"] == b"x"
    assert done.to_table(blob_handling="all_binary").to_pylist() == rows.to_pylist()


def test_a_leaf_without_files_keeps_its_schema() -> None:
    assert stored_schema(SCHEMA, ()) == SCHEMA
