"""Rows of others as a table in a temporary directory, so that joins read them as they read any table."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass

from lancepart.commit.actions import Append
from lancepart.commit.perform import perform
from lancepart.layout import create
from lancepart.layout.metadata import STRONG
from lancepart.model.aliases import RowSource
from lancepart.model.quoting import quote_identifier
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.write.conform import reader
from lancepart.write.dicts import are_dicts, table_of


@dataclass(frozen=True, slots=True)
class TemporaryTable:
    """A table of one leaf, which exists as long as the object given to ``belongs_to``."""

    manifest: Manifest

    @classmethod
    def of(cls, data: RowSource) -> TemporaryTable:
        """Write rows to a new temporary table, little by little."""
        rows = table_of(data) if are_dicts(data) and data else data
        stream = reader(rows, None)
        table = cls(Manifest(Root.parse(tempfile.mkdtemp(prefix="lancepart-join-"))))
        try:
            first = quote_identifier(stream.schema.names[0])
            single = f"expr({first} IS NULL OR {first} IS NOT NULL) AS part"
            create.create(table.manifest, stream.schema.remove_metadata(), [single], transactions=STRONG)
            perform(table.manifest, Append(data=stream))
        except BaseException:
            table.remove()
            raise
        return table

    def belongs_to(self, owner: object) -> None:
        """Remove the table when its owner is gone."""
        weakref.finalize(owner, shutil.rmtree, self.manifest.root.uri, ignore_errors=True)

    def remove(self) -> None:
        """Remove the table now."""
        shutil.rmtree(self.manifest.root.uri, ignore_errors=True)
