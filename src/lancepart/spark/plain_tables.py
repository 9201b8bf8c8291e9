"""Plain Lance tables of a warehouse in Spark's statements: read as tables of one leaf, and changed by versions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt

from lancepart.catalog import tables
from lancepart.catalog.context import Catalog, shown
from lancepart.errors import CommitConflictError, UnsupportedOperationError
from lancepart.layout.plain import PlainManifest, PlainSnapshot
from lancepart.model.ids import DELIMITER
from lancepart.model.predicate import Constant, Predicate
from lancepart.model.snapshot_text import number_or_tag
from lancepart.read.leaf import LeafTask, matching_addresses
from lancepart.spark.filters import Tree, exact_predicate_of
from lancepart.storage import leaf_data
from lancepart.storage.leaf_handle import split_addresses
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError
from lancepart.table import PartitionedTable

ROOT, LOCATION = "lancepart.plain.root", "lancepart.plain"
"""The options by which the jar names a plain table: its warehouse, and its directory there."""


def is_plain(options: Mapping[str, str]) -> bool:
    """Whether options name a plain Lance table."""
    return LOCATION in options


def opened(root: Root, location: str, version: str | int | None = None) -> PartitionedTable:
    """A plain Lance table as it is now, or at a version or tag, as a table of one leaf that is only read."""
    wanted = number_or_tag(version) if isinstance(version, str) else version
    return PartitionedTable(PlainManifest.at(root, location, wanted))


def named(
    options: Mapping[str, str], storage: Mapping[str, str], version: int | str | datetime | None = None
) -> PartitionedTable:
    """The plain Lance table that options name, as it is now or at a version or tag."""
    if isinstance(version, datetime):
        raise UnsupportedOperationError("a plain Lance table is read at a version or a tag, not at a moment")
    return opened(Root.parse(options[ROOT], storage), options[LOCATION], version)


def writable(catalog: Catalog, path: tuple[str, ...]) -> str:
    """The directory of a plain table; one whose versions others keep is refused."""
    located = tables.find(catalog, catalog.snapshot(), path)
    if located is None or located.leaf_of is not None:
        raise UnsupportedOperationError(f"{shown(path)} is part of a partitioned table: write to that one")
    if located.managed:
        raise UnsupportedOperationError(
            f"the catalog keeps the versions of table {shown(path)}: write to it with DirectoryNamespace"
        )
    return str(located.location)


def refuse_kept(root: Root, location: str) -> None:
    """Refuse to change a directory whose versions others keep, by whatever name the catalog knows it."""
    catalog = Catalog.of({"root": root.uri, **{f"storage.{key}": value for key, value in root.storage_options.items()}})
    for row in catalog.snapshot().at_locations([location]):
        writable(catalog, tuple(row.object_id.split(DELIMITER)))


def matching(root: Root, snapshot: PlainSnapshot, where: Predicate) -> dict[int, npt.NDArray[np.int64]]:
    """The rows of a plain table that a filter matches: their offsets, by fragment."""
    task = LeafTask(root=root, metadata=snapshot.metadata, leaf=snapshot.leaf, columns=(), predicate=where)
    found = np.sort(matching_addresses(task))
    return split_addresses(found) if len(found) else {}


def delete(options: Mapping[str, str], storage: Mapping[str, str], where: tuple[Tree, ...]) -> int:
    """Remove the rows that filters match, or all, as the table's next version."""
    root, location = Root.parse(options[ROOT], storage), options[LOCATION]
    refuse_kept(root, location)
    snapshot = PlainManifest.at(root, location).snapshot()
    predicate = exact_predicate_of(where, snapshot.metadata.plain_schema)
    try:
        if isinstance(predicate, Constant):
            return leaf_data.clear(root, location, base=None) if predicate.value else snapshot.version
        rows = matching(root, snapshot, predicate)
        return leaf_data.replace_rows(root, location, rows, (), seen=snapshot.version) if rows else snapshot.version
    except ConflictError as error:
        raise CommitConflictError(f"{error}; nothing was changed, so run it again") from None
