"""Reports of tasks: what they are made of comes back as it was, and nothing else is made of what a server sends."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancepart.commit import distributed_write
from lancepart.errors import InvalidInputError
from lancepart.maintain.fingerprint import Fingerprint
from lancepart.maintain.sweep import Found, Garbage, Removed
from lancepart.maintain.upgrade_copy import CopiedRows, Copy
from lancepart.spark.results import dumps, loads
from tests.support.catalogs import Place
from tests.transactions.tables import content, data, make, opened


def test_what_a_write_reports_can_be_committed(local: Place) -> None:
    table = make(local, [(1, "A", 10), (2, "B", 20)])
    job = distributed_write.plan(table._manifest, mode="upsert", on=("id",))
    report = distributed_write.write(job, data([(1, "A", 11), (3, "Ü$ '", 30)]))

    found = loads(dumps(report))

    assert replace(found, keys=None) == replace(report, keys=None)
    assert found.keys.equals(report.keys)
    distributed_write.commit(opened(local)._manifest, job, [found])
    assert content(table) == {(1, "A", 11): 1, (2, "B", 20): 1, (3, "Ü$ '", 30): 1}


def test_places_of_rows_come_back() -> None:
    gone = {0: np.array([1, 2**63], np.uint64), 7: np.array([], np.uint64)}

    found = loads(dumps(distributed_write.WriteResult(gone=gone))).gone

    assert {key: list(value) for key, value in found.items()} == {0: [1, 2**63], 7: []}
    assert all(value.dtype == np.uint64 for value in found.values())


@pytest.mark.parametrize(
    "report",
    [
        (),
        (0, None, True, "text \u0000 \U0001f600", 2**64 - 1, 0.5),
        Found(top="t", garbage=(Garbage(path="t/data/a", key="data/a", size=3),), unknown=("t/x",), broken="why"),
        Removed(files=2, bytes=3),
        Copy(
            object_id="o",
            version=3,
            pieces=(CopiedRows(key=("k",), values=(), fragments=(), expected=Fingerprint(1, 2)),),
        ),
    ],
)
def test_reports_come_back_as_they_were(report: Any) -> None:
    assert loads(dumps(report)) == report


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(None, pa.string()),
        pa.scalar(float("nan")),
        pa.scalar(Decimal("1.50"), pa.decimal128(38, 2)),
        pa.scalar(2**62, pa.timestamp("us", "Europe/Berlin")),
        pa.scalar(b"\x00\xff", pa.large_binary()),
    ],
)
def test_partition_values_keep_their_types(value: pa.Scalar) -> None:
    (found,) = loads(dumps((value,)))

    assert found.type == value.type
    assert pa.array([found], found.type).to_string() == pa.array([value], value.type).to_string()


class Hostile:
    """What runs when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"\xff",
        b'{"a":1}',
        b'["object","Path",{"a":1}]',
        b'["object","Removed",{"files":1}]',
        b'["object","Removed",{"files":1,"bytes":2,"broken":null,"more":3}]',
        b'["eval","1"]',
        b'["tuple",["nothing"]]',
        b'[["tuple"]]',
        b"[]",
        b'["numbers","object","AAAAAAAAAAA="]',
        b'["table","AAAA"]',
        b'["schema","AAAA"]',
        b'["fragment","{}"]',
        b"[" * 100_000,
    ],
)
def test_what_is_no_report_is_refused(report: bytes) -> None:
    with pytest.raises(InvalidInputError, match="not understood"):
        loads(report)


def test_a_pickle_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        loads(pickle.dumps(Hostile(tmp_path / "run")))
    with pytest.raises(TypeError, match="can't hold Hostile"):
        dumps(Hostile(tmp_path / "run"))
    with pytest.raises(InvalidInputError):
        loads(json.dumps(["object", "Hostile", {"path": "x"}]).encode())

    assert list(tmp_path.iterdir()) == []
