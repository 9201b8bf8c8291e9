"""Other numbers for the fragments of a leaf: its rows and files stay as they are."""

from __future__ import annotations

from collections.abc import Mapping

import lance
from lance.fragment import FragmentMetadata

from lancepart.storage import leaf_data
from lancepart.storage.leaf_handle import fragments_of, leaf_dataset, live_offsets
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors
from lancepart.storage.union import hidden_offsets


def renumbered(root: Root, location: str, numbers: Mapping[int, int], *, base: int) -> int:
    """Make a version whose fragments have other numbers; deletion files, which are found by these, are written again.

    An index that the leaf has covers none of them any more.
    """
    handle = leaf_dataset(root, location, base)
    found = [item.metadata for item in handle.get_fragments()]
    groups = [lance.LanceOperation.RewriteGroup([item], [_numbered(item, numbers[int(item.id)])]) for item in found]
    gone = {
        numbers[int(item.id)]: hidden_offsets(int(item.physical_rows), live_offsets(handle, int(item.id)))
        for item in found
        if item.deletion_file is not None
    }
    newer = leaf_data.commit_version(root, location, lance.LanceOperation.Rewrite(groups, []), base)
    if not gone:
        return newer
    made = leaf_dataset(root, location, newer)
    with storage_errors(f"write the deletions of the leaf at {location!r}", root):
        done = [fragments_of(made, [number])[0].delete_rows(rows.tolist()) for number, rows in gone.items()]
    left = [item for item in done if item is not None]
    assert len(left) == len(done)
    return leaf_data.commit_version(root, location, lance.LanceOperation.Delete(left, [], "lancepart"), newer)


def next_number(root: Root, location: str, *, base: int) -> int | None:
    """The number that the next fragment of a leaf would get, which is above all that it ever had; None if it has none.

    Lance does not show it: a version with a fragment twice, which nobody reads, has it.
    """
    handle = leaf_dataset(root, location, base)
    found = [item.metadata for item in handle.get_fragments()]
    if not found:
        return None
    probe = lance.LanceOperation.Append([_numbered(found[0], 0)])
    newer = leaf_data.commit_version(root, location, probe, base)
    fresh = {int(item.fragment_id) for item in leaf_dataset(root, location, newer).get_fragments()}
    return max(fresh - {int(item.id) for item in found})


def _numbered(item: FragmentMetadata, number: int) -> FragmentMetadata:
    return FragmentMetadata(id=number, files=item.files, physical_rows=item.physical_rows)
