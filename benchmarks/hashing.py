"""Buckets of integers and of short strings, beside ``pyiceberg_core.transform.bucket``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg_core import transform

from benchmarks.report import Report
from lancepart.model.hashing import bucket

RUNS = 5


def columns() -> dict[str, Any]:
    numbers = np.random.default_rng(0).integers(-(2**62), 2**62, 5_000_000)
    return {
        "5 M int64": pa.array(numbers),
        "1 M short strings": pa.array([f"user-{number}" for number in range(1_000_000)]),
    }


def best_seconds(call: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run(report: Report) -> None:
    for name, column in columns().items():
        ours = best_seconds(lambda column=column: bucket(column, 16))
        theirs = best_seconds(lambda column=column: transform.bucket(column, 16))
        report.add(f"bucket of {name}, best ms (pyiceberg-core)", ours * 1000, theirs * 1000)
