"""Buckets of integers and of short strings, beside ``pyiceberg_core.transform.bucket``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg_core import transform

from benchmarks.report import Report, sized
from lancepart.model.hashing import bucket

RUNS = sized(9, 3)


def columns() -> dict[str, Any]:
    numbers = np.random.default_rng(0).integers(-(2**62), 2**62, 5_000_000)
    return {
        "5 M int64": pa.array(numbers),
        "1 M short strings": pa.array([f"user-{number}" for number in range(1_000_000)]),
    }


def run(report: Report) -> None:
    for name, column in columns().items():
        peers = {"pyiceberg-core": partial(transform.bucket, column, 16)}
        report.compare(f"bucket of {name}", partial(bucket, column, 16), peers, runs=RUNS)
