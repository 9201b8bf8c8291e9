"""What the manifest records of the fragments of leaves: with it a union names their files without opening them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lancepart.format.fragments import LeafFiles
from lancepart.format.names import METADATA, OBJECT_ID, READ_VERSION, version_id
from lancepart.format.records import FILES, LOCATION
from lancepart.layout.leaves import Leaf
from lancepart.storage.snapshot import Snapshot

_COLUMNS = (OBJECT_ID, READ_VERSION.name, METADATA)


def recorded_files(snapshot: Snapshot | None, leaves: Sequence[Leaf]) -> dict[str, LeafFiles]:
    """The fragments of leaves by their object ids, as far as the rows of the versions that they have record them."""
    wanted = {
        version_id(leaf.object_id, leaf.number): leaf
        for leaf in leaves
        if leaf.number and leaf.read_version is not None and leaf.branch is None
    }
    rows = None if snapshot is None or not wanted else snapshot.versions_of(list(wanted), _COLUMNS)
    found: dict[str, LeafFiles] = {}
    columns = [] if rows is None else [rows.column(name).to_pylist() for name in _COLUMNS]
    for name, version, text in zip(*columns, strict=True):
        leaf = wanted[name]
        files = _files(text, leaf.location)
        if files is not None and version == files.version == leaf.read_version:
            found[leaf.object_id] = files
    return found


def _files(text: str | None, location: str) -> LeafFiles | None:
    """The fragments that the metadata of a version's row records, if they are in the leaf's directory."""
    try:
        metadata = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(metadata, dict) or metadata.get(LOCATION) != location or FILES not in metadata:
        return None
    return LeafFiles.from_json(metadata[FILES])
