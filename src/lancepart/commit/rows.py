"""The rows of ``__manifest`` that a commit writes for its leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lancepart.commit.leaves import Staged
from lancepart.layout.leaves import Leaf, Stats, partition_column
from lancepart.layout.metadata import READ_VERSION
from lancepart.model.spec import PartitionSpec
from lancepart.storage import leafdata
from lancepart.storage.rows import NAMESPACE, TABLE, TABLE_VERSION, Row, Update, dump_metadata, now
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lancepart.commit.append import Append


def missing_namespaces(snapshot: Snapshot, spec: PartitionSpec, staged: Sequence[Staged]) -> list[Row]:
    """The namespaces above new leaves that do not exist yet, each with its own and its ancestors' values."""
    wanted: dict[str, Row] = {}
    for item in staged:
        parts = item.object_id.split("$")[:-1]
        for depth in range(1, len(parts) + 1):
            identifier = "$".join(parts[:depth])
            columns = _columns(spec, item, depth - 1)
            row = Row(object_id=identifier, object_type=NAMESPACE, metadata={}, created_at=now(), columns=columns)
            wanted.setdefault(identifier, row)
    present = snapshot.rows(wanted)
    return [row for identifier, row in wanted.items() if identifier not in present]


def leaf_row(spec: PartitionSpec, staged: Staged, metadata: Mapping[str, Any], version: int | None = None) -> Row:
    """The row of a new leaf."""
    columns = _columns(spec, staged, len(spec.fields))
    if version is not None:
        columns = {**columns, READ_VERSION.name: version}
    return Row(
        object_id=staged.object_id,
        object_type=TABLE,
        location=staged.location,
        metadata=metadata,
        created_at=now(),
        columns=columns,
    )


def _columns(spec: PartitionSpec, staged: Staged, depth: int) -> dict[str, Any]:
    fields = zip(spec.fields[:depth], staged.values[:depth], strict=True)
    return {partition_column(field.field_id): value for field, value in fields}


def of_append(job: Append, staged: Staged, leaf: Leaf | None, version: int) -> tuple[list[Row], list[Update]]:
    """What an append writes for one leaf: its row points at the new version, and a row records that."""
    before = _before(job, leaf) if leaf is not None else Stats(rows=0, bytes=0, fragments=0)
    number = (leaf.number if leaf is not None else 0) + 1
    details = {
        "n": number,
        "rows": before.rows + staged.fragments.rows,
        "bytes": before.bytes + staged.fragments.bytes,
        "fragments": before.fragments + len(staged.fragments.items),
    }
    record = Row(
        object_id=f"{staged.object_id}${number}",
        object_type=TABLE_VERSION,
        metadata={
            "transaction": job.transaction,
            "operation": "append",
            "added": staged.fragments.rows,
            "change": job.metadata.change,
            **details,
        },
        created_at=now(),
        columns={READ_VERSION.name: version},
    )
    if leaf is None:
        return [leaf_row(job.spec, staged, details, version), record], []
    values = {READ_VERSION.name: version, "metadata": dump_metadata(details)}
    return [record], [Update(object_id=leaf.object_id, values=values)]


def _before(job: Append, leaf: Leaf) -> Stats:
    if leaf.stats is not None:
        return leaf.stats
    rows, size, fragments = leafdata.measure(leafdata.open_leaf(job.manifest.root, leaf.location, leaf.read_version))
    return Stats(rows=rows, bytes=size, fragments=fragments)
