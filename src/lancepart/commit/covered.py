"""Leaves that another client's commit covers because it left numbers out while ours was being made."""

from __future__ import annotations

from collections.abc import Collection

from lancepart.format.names import split_version_id
from lancepart.format.records import signature_of
from lancepart.storage import history
from lancepart.storage.manifest import Manifest
from lancepart.storage.translate import MissingError


def covered(manifest: Manifest, leaves: Collection[str], transaction: str, *, after: int, until: int) -> set[str]:
    """The leaves to which others added versions between the snapshot that a commit was planned on and the commit.

    Each of two commits to one leaf writes the leaf's next number, so that one of them fails. A client that skips
    numbers conflicts with nobody, and its version hides the other.
    """
    found: set[str] = set()
    for version in range(after + 1, until + 1):
        try:
            records = history.info(manifest, version).records
        except MissingError:
            continue
        signed = [signature_of(row) for row in records]
        if any(each is not None and each.transaction == transaction for each in signed):
            break
        named = [split_version_id(row.object_id) for row in records]
        found |= {each[0] for each in named if each is not None and each[0] in leaves}
    return found
