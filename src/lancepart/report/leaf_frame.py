"""The leaves of a snapshot as columns, for questions about all of them at once; there may be a million."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.layout.layouts import candidates
from lancepart.layout.leaves import names_of, recorded_sizes
from lancepart.layout.metadata import TableMetadata
from lancepart.model.partition_keys import value_texts
from lancepart.model.spec import PartitionSpec
from lancepart.report.values import text
from lancepart.storage.snapshot import Snapshot
from lancepart.table import PartitionedTable

MEASURES = ("bytes", "rows", "fragments")
SIZES = pa.schema([("read_version", pa.uint64()), *((name, pa.int64()) for name in ("rows", "bytes", "fragments"))])
Values = Sequence[str | None]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFrame:
    """The leaves of one spec version: ``object_id``, sizes, and a column ``p0``, ``p1``… of text for each field.

    They are sorted by the values of their fields.
    """

    spec_id: int
    fields: tuple[str, ...]
    leaves: pa.Table

    @property
    def levels(self) -> list[str]:
        """The columns of partition values."""
        return [f"p{level}" for level in range(len(self.fields))]

    def beneath(self, path: Values) -> Mask:
        """Which leaves have these values in their first fields."""
        if len(path) > len(self.fields):
            raise InvalidInputError(
                f"spec {self.spec_id} has {len(self.fields)} fields, and the path {len(path)} values"
            )
        found = np.ones(self.leaves.num_rows, dtype=np.bool_)
        for name, value in zip(self.levels, path, strict=False):
            column = self.leaves.column(name)
            same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), fill_value=False)
            found &= same.to_numpy(zero_copy_only=False)
        return found

    def differs(self, level: str) -> Mask:
        """Which leaves, from the second on, have another value than the one before."""
        values = self.leaves.column(level)
        found = pc.not_equal(values[1:], values[:-1])
        either = pc.not_equal(pc.is_null(values[1:]), pc.is_null(values[:-1]))
        mask: Mask = pc.coalesce(found, either).to_numpy()
        return mask

    def kept(self, object_ids: pa.Array) -> Mask:
        """Which leaves are among some."""
        found: Mask = pc.is_in(self.leaves.column("object_id"), value_set=object_ids).to_numpy(zero_copy_only=False)
        return found

    def sizes(self, measure: str) -> npt.NDArray[np.int64]:
        """The rows, bytes or fragments of each leaf; 0 where they are not known."""
        found: npt.NDArray[np.int64] = pc.fill_null(self.leaves.column(measure), 0).to_numpy()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafFrame:
    """All leaves of a table at one snapshot, by spec version."""

    version: int
    specs: tuple[SpecFrame, ...]

    @classmethod
    def of(cls, table: PartitionedTable) -> LeafFrame:
        """Read the leaves from the manifest; only those whose size it does not record are opened."""
        scan = table.scan()
        parts = [_spec_frame(table, scan.snapshot, scan.metadata, spec) for spec in scan.metadata.specs]
        return cls(version=scan.snapshot.version, specs=tuple(parts))

    def spec(self, spec_id: int) -> SpecFrame:
        """The leaves of one spec version."""
        for each in self.specs:
            if each.spec_id == spec_id:
                return each
        raise InvalidInputError(f"there is no spec version {spec_id}: use one of {[s.spec_id for s in self.specs]}")

    def __len__(self) -> int:
        return sum(each.leaves.num_rows for each in self.specs)

    def sizes(self, measure: str) -> npt.NDArray[np.int64]:
        """The rows, bytes or fragments of all leaves."""
        if measure not in MEASURES:
            raise InvalidInputError(f"measure is {measure!r}: use one of {', '.join(MEASURES)}")
        return np.concatenate([each.sizes(measure) for each in self.specs] or [np.zeros(0, dtype=np.int64)])

    def largest(self, most: int) -> list[str]:
        """The ids of so many leaves, those with the most rows."""
        rows = self.sizes("rows")
        ids = pa.chunked_array(
            [chunk for each in self.specs for chunk in each.leaves.column("object_id").chunks], pa.string()
        )
        first = np.argpartition(-rows, most)[:most] if most < len(rows) else np.arange(len(rows))
        found: list[str] = ids.take(pa.array(first[np.argsort(-rows[first], kind="stable")])).to_pylist()
        return found

    def label(self, at: int) -> str:
        """A leaf's spec and values for a person, by its place among all leaves."""
        for spec in self.specs:
            if at < spec.leaves.num_rows:
                found = {
                    name: spec.leaves.column(p)[at].as_py() for name, p in zip(spec.fields, spec.levels, strict=True)
                }
                return f"v{spec.spec_id}  {text(found)}"
            at -= spec.leaves.num_rows
        raise IndexError(at)

    def total(self, measure: str) -> int:
        """The rows, bytes or fragments of all leaves together."""
        return int(self.sizes(measure).sum())


def _spec_frame(table: PartitionedTable, snapshot: Snapshot, metadata: TableMetadata, spec: PartitionSpec) -> SpecFrame:
    rows = candidates(snapshot, spec, None)
    sizes = recorded_sizes(snapshot, rows, metadata)
    fields = tuple(field.field_id for field in spec.fields)
    if sizes is None:
        return SpecFrame(spec_id=spec.id, fields=fields, leaves=_measured(table, spec))
    texts = {f"p{at}": pa.array(value_texts(rows.column(name)), pa.string()) for at, name in enumerate(names_of(spec))}
    columns = {"object_id": rows.column("object_id"), **texts, **{name: sizes.column(name) for name in SIZES.names}}
    return SpecFrame(spec_id=spec.id, fields=fields, leaves=_sorted(pa.table(columns), rows, names_of(spec)))


def _sorted(leaves: pa.Table, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Leaves in the order of their values: numbers and times as such, all others as text."""
    keys: dict[str, pa.Array | pa.ChunkedArray] = {}
    for at, name in enumerate(names):
        column = rows.column(name)
        kind = column.type
        ordered = pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_floating(kind)
        keys[f"p{at}"] = column if ordered else leaves.column(f"p{at}")
    return _by_keys(leaves, keys)


def _by_keys(leaves: pa.Table, keys: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    if not keys:
        return leaves
    return leaves.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def _measured(table: PartitionedTable, spec: PartitionSpec) -> pa.Table:
    """The leaves where the manifest does not record all sizes: ``inspect.partitions`` opens those that it must."""
    rows = [row for row in table.inspect.partitions().to_pylist() if row["spec_id"] == spec.id]
    values: list[Mapping[str, str | None]] = [dict(row["partition"]) for row in rows]
    texts = {f"p{at}": [each[field.field_id] for each in values] for at, field in enumerate(spec.fields)}
    sizes = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in SIZES}
    ids = pa.array([row["object_id"] for row in rows], pa.string())
    columns = {name: pa.array(found, pa.string()) for name, found in texts.items()}
    return _by_keys(pa.table({"object_id": ids, **columns, **sizes}), columns)
