"""TPC-H's and TPC-DS's tables and query texts, made by DuckDB's own generators: the repository holds none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.installed import installed

GENERATOR = "duckdb==0.10.3"
"""The last release of DuckDB whose wheel holds the generators; it goes into a directory of its own."""

H, DS = "tpch", "tpcds"
_CALLS = {H: "dbgen", DS: "dsdgen"}
_GENERATE = """
import duckdb, json, sys
folder, suite, call, scale = sys.argv[1:]
connection = duckdb.connect()
connection.execute(f"LOAD {suite}")
connection.execute(f"CALL {call}(sf={scale})")
for (name,) in connection.execute("SHOW TABLES").fetchall():
    connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
queries = dict(connection.execute(f"SELECT query_nr, query FROM {suite}_queries()").fetchall())
json.dump(queries, open(f"{folder}/queries.json", "w"))
"""


def generator() -> Path | None:
    """The directory of the generator, installed if need be; None if it can't be had."""
    return installed("tpch", GENERATOR)


def generate(folder: Path, scale: float, suite: str = H) -> dict[int, str] | None:
    """Write a suite's tables as Parquet unless they are there; its query texts, None if the generator can't be had."""
    texts = folder / "queries.json"
    if not texts.exists():
        found = generator()
        if found is None:
            return None
        command = [sys.executable, "-c", _GENERATE, str(folder), suite, _CALLS[suite], str(scale)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(found)})
    return {int(number): text.rstrip().rstrip(";") for number, text in json.loads(texts.read_text()).items()}


def tables(folder: Path) -> Sequence[str]:
    """The names of the tables that a folder has."""
    return sorted(path.stem for path in folder.glob("*.parquet"))
