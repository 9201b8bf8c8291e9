"""Fragments that are not yet part of any version, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import lance
from lance.fragment import FragmentMetadata

from lancepart.storage.leaf_handle import data_path, open_leaf
from lancepart.storage.root import Root
from lancepart.storage.translate import MissingError

Fragment = FragmentMetadata
"""What Lance says of a fragment: its files, its rows, those that are deleted."""


def fragments_to_json(fragments: Sequence[FragmentMetadata]) -> list[str]:
    """Staged fragments as texts, to be noted down."""
    return [json.dumps(item.to_json()) for item in fragments]


def fragments_from_json(texts: Sequence[str]) -> tuple[FragmentMetadata, ...]:
    """Staged fragments from their texts."""
    return tuple(lance.FragmentMetadata.from_json(text) for text in texts)


def version_with(root: Root, location: str, fragments: Sequence[FragmentMetadata]) -> int | None:
    """The latest version of a leaf, if it has exactly the files of some fragments."""
    try:
        handle = open_leaf(root, location, None)
    except MissingError:
        return None
    there = sorted(path for item in handle.get_fragments() for path in _paths(item.metadata))
    wanted = sorted(path for item in fragments for path in _paths(item))
    return int(handle.version) if there == wanted else None


def _paths(metadata: FragmentMetadata) -> list[str]:
    return [data_path(file) for file in metadata.files]
