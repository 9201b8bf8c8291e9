"""The files that Lance keeps beneath a table: of which kind each one is, and which of them a version needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lancepart.errors import LanceNamespaceError, UnsupportedOperationError
from lancepart.storage.files import Files
from lancepart.storage.leaf_handle import leaf_dataset, open_leaf
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors

_UUID = r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}"
_MEMBER = re.compile(
    r"^(?P<member>(?:tree/.+?/)?)"
    r"(?P<rest>(?:data|_deletions|_indices|_versions|_transactions|_refs)/.+|\.lance-reserved)$",
    re.DOTALL,
)
_TOP = (1 << 64) - 1
_DETACHED = 1 << 63
_MANAGED = b"lance.blob.managed"


class Kind(StrEnum):
    """What a file beneath a table is for; in the order in which files that nothing needs are removed."""

    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    DATA = "data"
    BLOB = "blob"
    DELETION = "deletion"
    INDEX = "index"
    UNFINISHED = "unfinished"
    REFERENCE = "reference"
    FIXED = "fixed"


_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.FIXED, re.compile(r"_versions/latest_version_hint\.json|\.lance-reserved")),
    (Kind.REFERENCE, re.compile(r"_refs/(tags|branches)/.+\.json")),
    (Kind.UNFINISHED, re.compile(r"(data|_deletions|_versions|_transactions|_indices)/.*(#\d+|(?<=/)\.tmp[^/]*)")),
    (Kind.MANIFEST, re.compile(r"_versions/(?P<key>d?\d+)\.manifest")),
    (Kind.TRANSACTION, re.compile(r"_transactions/(?P<key>[^/]+)\.txn")),
    (Kind.DATA, re.compile(r"data/(?P<key>[^/]+)\.lance")),
    (Kind.BLOB, re.compile(r"data/(?P<key>[^/]+)/[^/]+\.blob")),
    (Kind.DELETION, re.compile(r"_deletions/(?P<key>[^/]+\.(?:arrow|bin))")),
    (Kind.INDEX, re.compile(rf"_indices/(?P<key>{_UUID})/.+")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafFile:
    """A file by its path: its kind, the branch's directory that it is in, and what a version knows it by.

    Files with one ``key`` are needed together or not at all: a data file and its blobs, all files of an index.
    """

    kind: Kind
    member: str
    key: str

    @property
    def version(self) -> int | None:
        """The version that a manifest is of."""
        return int(self.key.rpartition("/")[2]) if self.kind is Kind.MANIFEST else None


def parse(path: str) -> LeafFile | None:
    """What a file is, by its path relative to its table's directory; ``None`` for what Lance is not known to write.

    >>> parse("data/01.lance").key, parse("data/01/10.blob").key, parse("tree/dev/_versions/d9.manifest").member
    ('data/01', 'data/01', 'tree/dev/')
    >>> parse("data/notes.txt") is None
    True
    """
    found = _MEMBER.match(path)
    if found is None:
        return None
    member, rest = found["member"], found["rest"]
    for kind, pattern in _KINDS:
        if match := pattern.fullmatch(rest):
            return LeafFile(kind=kind, member=member, key=_key(kind, rest, match.groupdict().get("key")))
    return None


def _key(kind: Kind, rest: str, found: str | None) -> str:
    if found is None:
        return rest
    if kind is Kind.MANIFEST:
        return manifest_key(_version(found))
    return f"{rest.split('/', maxsplit=1)[0]}/{found}"


def _version(name: str) -> int:
    """The version that the name of a manifest refers to, in either spelling.

    >>> _version("18446744073709551614"), _version("1"), _version("d9223372036854775809")
    (1, 1, 9223372036854775809)
    """
    if name.startswith("d"):
        return int(name[1:])
    number = int(name)
    return _TOP - number if number >= _DETACHED else number


def manifest_key(version: int) -> str:
    """What the manifest of a version is known by."""
    return f"_versions/{version}"


def needed(
    root: Root, location: str, version: int | None, *, complete: bool = False, transactions: bool = True
) -> set[str]:
    """The keys of all files that a version of a table needs, in its own directory or in that of another branch.

    Names of files are random, so that one key never identifies two files of a table and its branches. Whatever a
    fragment's metadata calls a path counts: what a newer Lance puts there is kept too. ``complete`` refuses a version
    whose rows may name more files than its metadata does. ``transactions`` says whether those are read too.
    """
    handle = leaf_dataset(root, location, version)
    if complete and _MANAGED in (handle.schema.metadata or {}):
        raise UnsupportedOperationError("it has managed blobs: which files these need is known from its rows alone")
    with storage_errors(f"look at the files of the leaf at {location!r}", root):
        keys = {manifest_key(int(handle.version))}
        for fragment in handle.get_fragments():
            keys |= {f"data/{path.removesuffix('.lance')}" for path in _paths(fragment.metadata.to_json())}
            deletion = fragment.deletion_file()
            if deletion:
                keys.add(f"_deletions/{os.path.basename(str(deletion))}")
        keys |= {f"_indices/{segment.uuid}" for index in handle.describe_indices() for segment in index.segments}
        done = handle.read_transaction(handle.version) if transactions else None
        if done is not None:
            keys.add(f"_transactions/{done.read_version}-{done.uuid}")
    return keys


def has_all_data(root: Root, location: str) -> bool:
    """Whether all data files of a table's latest version are in its directory."""
    try:
        handle = open_leaf(root, location, None)
        with storage_errors(f"look at the files of the table at {location!r}", root):
            wanted = {path for item in handle.get_fragments() for path in _paths(item.metadata.to_json())}
        there = {info.path for info in Files(root).walk(f"{location}/data")} if wanted else set()
    except (LanceNamespaceError, OSError):
        return False
    return all(f"{location}/data/{path}" in there for path in wanted)


def index_sizes(root: Root, location: str, version: int) -> dict[str, int]:
    """How large the files of each index of a version are at least, by the index's key."""
    handle = open_leaf(root, location, version)
    with storage_errors(f"look at the indices of the leaf at {location!r}", root):
        return {
            f"_indices/{segment.uuid}": int(segment.size_bytes or 0)
            for index in handle.describe_indices()
            for segment in index.segments
        }


def _paths(payload: object) -> Iterator[str]:
    """Everything that metadata calls a path, at any depth."""
    if isinstance(payload, dict):
        if isinstance(payload.get("path"), str):
            yield payload["path"]
        for value in payload.values():
            yield from _paths(value)
    elif isinstance(payload, list) and payload and isinstance(payload[0], dict):
        for value in payload:
            yield from _paths(value)


def tagged(root: Root, location: str) -> list[tuple[str | None, int]]:
    """The versions that tags of a table name, each with its branch, ``None`` for main."""
    with storage_errors(f"read the tags of the leaf at {location!r}", root):
        found = leaf_dataset(root, location, None).tags.list()
    return [(entry.get("branch"), int(entry["version"])) for entry in found.values()]
