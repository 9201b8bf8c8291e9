"""Open a table and find one of its partitions, beside deltalake and PyIceberg, over metadata of the same shape.

Each call starts anew: a fresh handle, session and catalog. Only metadata is made, as the table's own client would
leave it, since no plan opens a data file: ours as rows of ``__manifest`` (a namespace, a table and a version each),
deltalake's as add actions in one commit and a checkpoint of it, PyIceberg's as data files in one appended manifest.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import deltalake
import lance
import pyarrow as pa
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

import lancepart as lp
from benchmarks.report import LARGE, QUICK, Report, Timing, cpu_seconds, sized, timing
from lancepart.model.ids import leaf_location, partition_name
from lancepart.storage import manifest_maintenance
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.manifest_rows import NAMESPACE, TABLE, TABLE_VERSION
from lancepart.storage.root import Root

SIZES = (1_000,) if QUICK else (1_000, 10_000, 100_000) if LARGE else (1_000, 30_000)
MOST = sized(300_000, 20_000, "LANCEPART_BENCH_PARTITIONS", large=1_000_000)
RUNS = 15
MOST_SECONDS = 10
ROWS, BYTES = 10, 1_000
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])


def run(report: Report) -> None:
    for size in SIZES:
        figures = {}
        for name, (fill, prune) in PEERS.items():
            with tempfile.TemporaryDirectory() as root:
                fill(root, size)
                figures[name] = _measure(lambda city, root=root, prune=prune: prune(root, city), size)
        for peer in ("deltalake", "pyiceberg"):
            label = f"open a table and find one of {size:,} partitions"
            last = size == SIZES[-1]
            report.add(label, figures["lancepart"], figures[peer], peer=peer, unit="ms", headline=last)
    with tempfile.TemporaryDirectory() as root:
        _fill_lancepart(root, MOST)
        found = _measure(lambda city: _prune_lancepart(root, city), MOST)
    report.note(
        f"lancepart alone, {MOST:,} partitions: {min(found.values):.1f} ms at best, {found.median:.1f} ms median"
    )


def _measure(prune: Callable[[str], int], size: int) -> Timing:
    """Milliseconds of each run; what takes seconds is run less often."""
    prune(_city(0))
    used = cpu_seconds()
    spent: list[float] = []
    for turn in range(RUNS):
        if len(spent) >= 3 and sum(spent) > MOST_SECONDS * 1000:
            break
        wanted = _city(turn * 7919 % size)
        start = time.perf_counter()
        found = prune(wanted)
        spent.append((time.perf_counter() - start) * 1000)
        assert found == 1
    return timing(spent, (cpu_seconds() - used) / len(spent))


def _city(number: int) -> str:
    return f"city-{number:07d}"


def _fill_lancepart(root: str, size: int) -> None:
    salt = lp.create_table(root, SCHEMA, ["city"]).metadata.salt
    manifest = Manifest(Root.parse(root))
    cities = [_city(number) for number in range(size)]
    spaces = [f"v1${partition_name(salt, 1, (f's{city}',))}" for city in cities]
    leaves = [f"{space}$dataset" for space in spaces]
    size_of = f'"n":1,"rows":{ROWS},"bytes":{BYTES},"fragments":1'
    handle = manifest.snapshot().handle
    assert handle is not None
    for kind, ids, details in (
        (NAMESPACE, spaces, "{}"),
        (TABLE, leaves, f"{{{size_of}}}"),
        (TABLE_VERSION, [f"{leaf}$1" for leaf in leaves], f'{{"operation":"append","added":{ROWS},{size_of}}}'),
    ):
        given = {
            "object_id": ids,
            "object_type": [kind] * size,
            "metadata": [details] * size,
            "created_at": [datetime.now(UTC)] * size,
            "location": [leaf_location("bench", leaf) for leaf in leaves] if kind == TABLE else None,
            "read_version": [1] * size if kind != NAMESPACE else None,
            "partition_field_city": cities if kind != TABLE_VERSION else None,
        }
        columns = [pa.array(given.get(each.name) or [None] * size, each.type) for each in handle.schema]
        lance.write_dataset(pa.table(columns, schema=handle.schema), f"{root}/{NAME}", mode="append")
    manifest_maintenance.index(manifest)


def _prune_lancepart(root: str, city: str) -> int:
    return len(lp.open_table(root).scan(f"city = '{city}'").plan().leaves)


def _fill_deltalake(root: str, size: int) -> None:
    stats = f'{{"numRecords":{ROWS},"minValues":{{"id":0}},"maxValues":{{"id":9}},"nullCount":{{"id":0}}}}'
    actions = [
        AddAction(f"city={city}/part-0.parquet", BYTES, {"city": city}, 1_700_000_000_000, True, stats)
        for city in map(_city, range(size))
    ]
    fields = deltalake.Schema.from_arrow(SCHEMA)
    create_table_with_add_actions(root, fields, actions, partition_by=["city"])
    deltalake.DeltaTable(root).create_checkpoint()


def _prune_deltalake(root: str, city: str) -> int:
    return len(deltalake.DeltaTable(root).file_uris([("city", "=", city)]))


def _catalog(root: str) -> SqlCatalog:
    return SqlCatalog("bench", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}")


def _fill_pyiceberg(root: str, size: int) -> None:
    catalog = _catalog(root)
    catalog.create_namespace("ns")
    fields = Schema(NestedField(1, "id", LongType()), NestedField(2, "city", StringType()))
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="city"))
    table = catalog.create_table("ns.t", fields, partition_spec=spec)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for city in map(_city, range(size)):
            append.append_data_file(_data_file(f"file://{root}/{city}.parquet", city))


def _data_file(path: str, city: str) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(city),
        record_count=ROWS,
        file_size_in_bytes=BYTES,
        column_sizes={},
        value_counts={1: ROWS, 2: ROWS},
        null_value_counts={1: 0, 2: 0},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=None,
        spec_id=0,
    )


def _prune_pyiceberg(root: str, city: str) -> int:
    return len(list(_catalog(root).load_table("ns.t").scan(row_filter=f"city = '{city}'").plan_files()))


PEERS: dict[str, tuple[Callable[[str, int], None], Callable[[str, str], Any]]] = {
    "lancepart": (_fill_lancepart, _prune_lancepart),
    "deltalake": (_fill_deltalake, _prune_deltalake),
    "pyiceberg": (_fill_pyiceberg, _prune_pyiceberg),
}
