"""Faults of what a table has beside its leaves: published unions, and the segments of table-wide indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lancepart.layout.declared_indices import Index
from lancepart.model.aliases import JsonObject
from lancepart.storage import published, table_index
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.translate import UnreadableError

if TYPE_CHECKING:
    from lancepart.maintain.publish_union import UnionPlace

_NAMED = 3


def gone(files: Sequence[str]) -> str | None:
    """Which files are gone, in a sentence; None if none is."""
    return f"{len(files)} files are gone: {', '.join(files[:_NAMED])}" if files else None


def of_unions(manifest: Manifest) -> Iterator[JsonObject]:
    """The published unions that can't be read, and why."""
    from lancepart.maintain.publish_union import recorded_places

    for place in recorded_places(manifest):
        error = _union_fault(manifest.root, place)
        if error is not None:
            yield {"uri": place.uri, "error": error}


def _union_fault(root: Root, place: UnionPlace) -> str | None:
    try:
        handle = published.find(root, place.uri)
    except UnreadableError as error:
        return str(error)
    return "there is no dataset" if handle is None else gone(published.missing_files(root, place.uri, handle))


def of_indices(root: Root, indices: Sequence[Index]) -> Iterator[JsonObject]:
    """The segments of table-wide indices that can't be used, and why."""
    for index in indices:
        for segment in index.segments:
            error = _segment_fault(root, segment)
            if error is not None:
                yield {"name": index.name, "segment": segment, "error": error}


def _segment_fault(root: Root, name: str) -> str | None:
    try:
        segment = table_index.read(root, name)
        return gone(
            [f"{table_index.place_of(name)}/{table_index.FACTS}"]
            if segment is None
            else table_index.missing_files(root, segment)
        )
    except UnreadableError as error:
        return str(error)
