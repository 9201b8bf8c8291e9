"""A plain Lance table as a table of one leaf, for the plans, reads and searches of partitioned tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from lancepart.errors import TableNotFoundError
from lancepart.format.names import LOCATION, OBJECT_ID
from lancepart.format.records import Stats
from lancepart.layout.leaves import PLAIN_ID, Leaf
from lancepart.layout.metadata import PLAIN, WEAK, TableMetadata, without_ids
from lancepart.model.schema import assign_field_ids, max_field_id
from lancepart.model.spec import PartitionSpec
from lancepart.storage import leaf_handle, leaf_record
from lancepart.storage.dataset import Dataset, open_dataset
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError

_SPEC = PartitionSpec(id=1, fields=())


class PlainSnapshot(Snapshot):
    """A plain Lance table at one version, in place of the manifest that it has not."""

    def __init__(self, dataset: Dataset, root: Root, location: str) -> None:
        super().__init__(None, root)
        self.dataset = dataset
        self.location = location
        self.version = int(dataset.version)

    @cached_property
    def metadata(self) -> TableMetadata:
        """The definition that the table would have with a manifest."""
        stored = leaf_handle.shape_of(self.dataset).schema
        schema = assign_field_ids(pa.schema([without_ids(field) for field in stored]))
        return TableMetadata(
            schema=schema,
            specs=(_SPEC,),
            transactions=WEAK,
            salt="",
            last_field_id=max_field_id(schema),
            layout=PLAIN,
        )

    @cached_property
    def leaf(self) -> Leaf:
        """The whole table at this version; its id names the version's files, so that no other table is taken for it."""
        rows, size, fragments = leaf_handle.measure(self.dataset)
        return Leaf(
            object_id=f"{PLAIN_ID}{leaf_record.identity(self.dataset)}",
            spec_id=_SPEC.id,
            location=self.location,
            key=(),
            values=(),
            read_version=self.version,
            stats=Stats(rows=rows, bytes=size, fragments=fragments),
        )

    @property
    def candidates(self) -> pa.Table:
        """The one leaf, as a row."""
        return pa.table({OBJECT_ID: [self.leaf.object_id], LOCATION: [self.location]})


@dataclass(frozen=True, slots=True)
class PlainManifest:
    """Where the snapshots of a plain Lance table come from: it is always the one that was opened."""

    opened: PlainSnapshot

    @classmethod
    def at(cls, root: Root, location: str, version: int | str | None = None) -> PlainManifest:
        """The table in a directory, as it is now or at a version or tag."""
        return cls(PlainSnapshot(open_plain(root, location, version), root, location))

    @property
    def root(self) -> Root:
        """The directory that the table is in."""
        return self.opened.root

    def snapshot(self, version: int | None = None) -> PlainSnapshot:
        """The version that was opened."""
        return self.opened


def open_plain(root: Root, location: str, version: int | str | None) -> Dataset:
    """A plain Lance table, at a version or tag if given."""
    try:
        return open_dataset(root, location, version)
    except (MissingError, FileNotFoundError):
        what = "has no data yet" if version is None else f"has no version {version!r}"
        raise TableNotFoundError(f"the table at {location!r} {what}") from None
