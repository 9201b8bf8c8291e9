"""DuckDB's own extension for Lance, which knows nothing of partitioned tables, reads what ``publish_lance`` wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from benchmarks.installed import installed
from tests.support.catalogs import Place

PACKAGES = ("duckdb==1.5.5", "duckdb-extension-lance==1.5.5")
"""The newest release of the extension on PyPI, and the DuckDB that loads it: older than the one of the other tests."""
QUERIES = {
    "rows": "SELECT id, tenant, n FROM {table} ORDER BY id",
    "filtered": "SELECT id FROM {table} WHERE tenant = 'a''b' AND n > 10 ORDER BY id",
    "groups": "SELECT tenant, count(*), sum(n) FROM {table} GROUP BY tenant ORDER BY tenant",
}
PROGRAM = """
import duckdb, json, sys
extension, path, queries = sys.argv[1:]
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{extension}'")
found = {name: connection.execute(text).fetchall() for name, text in json.loads(queries).items()}
nearest = "SELECT id FROM lance_vector_search(?, 'v', [2.0, 2.0]::FLOAT[2], k = 5) ORDER BY _distance"
print(json.dumps({**found, "nearest": connection.execute(nearest, [path]).fetchall()}))
"""


def table_at(place: Place) -> lp.PartitionedTable:
    vectors = np.random.default_rng(5).normal(size=(60, 2)).astype("float32")
    rows = pa.table(
        {
            "id": range(60),
            "tenant": ["a'b", "c", None] * 20,
            "m": pa.array(range(60), pa.int32()),
            "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 2),
        }
    )
    table = lp.create_table_from(place.root, rows.slice(0, 40), partition_by=["tenant"])
    table.rename_column("m", "n")
    table.append(rows.slice(40).rename_columns(["id", "tenant", "n", "v"]))
    table.delete("id IN (4, 41)")
    return table


@pytest.mark.slow
def test_the_extension_of_duckdb_reads_and_searches_a_published_union(local: Place) -> None:
    folder = installed("duckdb-lance", *PACKAGES)
    if folder is None:
        pytest.skip(f"{PACKAGES[1]} can't be installed")
    (extension,) = folder.rglob("lance.duckdb_extension")
    table = table_at(local)
    published = table.publish_lance().uri

    there = {name: text.format(table=f"'{published}'") for name, text in QUERIES.items()}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(extension), published, json.dumps(there)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )

    found = json.loads(done.stdout)
    t = table.scan().to_arrow()  # noqa: F841
    for name, text in QUERIES.items():
        assert found[name] == [list(row) for row in duckdb.sql(text.format(table="t")).fetchall()], name
    assert [each for (each,) in found["nearest"]] == table.search([2.0, 2.0], k=5).to_arrow()["id"].to_pylist()
