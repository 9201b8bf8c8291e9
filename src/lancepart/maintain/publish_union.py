"""Unions that a table publishes: where they are, the snapshot that each of them reads, and who keeps its files.

A published union keeps its snapshot by a reserved tag of the manifest, one per path and snapshot, that collectors
respect. It is set before anything of the union is written, and removed when a union of a newer snapshot has replaced
it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    UnsupportedOperationError,
)
from lancepart.format.names import UNION, UNION_COLUMNS, UNION_INDICES, UNION_OF, UNION_ROOT, UNION_SNAPSHOT
from lancepart.layout import create
from lancepart.layout.declared_indices import Index, declared
from lancepart.layout.layouts import refuse_past
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.layout.table_manifest import TableManifest, catalog_of, has_commits
from lancepart.maintain import sweep
from lancepart.maintain.kept import leaves_at
from lancepart.maintain.sweep import Looking, Member, Removing
from lancepart.maintain.tags import hold
from lancepart.model.schema import field_ids
from lancepart.plan import planner
from lancepart.read.published_union import Publishing
from lancepart.storage import history, leaf_files, published
from lancepart.storage.dataset import Dataset
from lancepart.storage.files import Files
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.removal import LEAF_DIRECTORY, UNION_DIRECTORY
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError, ExistsError, MissingError

READABLE = timedelta(days=1)

_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionPlace:
    """The directory of a published union; the manifest knows it by its path, from the root on if it is beneath it."""

    parent: Root
    name: str
    shown: str

    @classmethod
    def of(cls, root: Root, path: str | os.PathLike[str] | None) -> UnionPlace:
        """The place that a user names, by default one beneath the table's root."""
        if path is None:
            return cls(parent=root, name=UNION_DIRECTORY, shown=UNION_DIRECTORY)
        uri = Root.parse(path, root.storage_options).uri
        if f"{root.uri}/".startswith(f"{uri}/"):
            raise InvalidInputError(
                f"path {uri!r} is the table's own, or one above it: publish to a directory of its own"
            )
        if Root(uri).is_local != root.is_local:
            raise UnsupportedOperationError(
                f"path {uri!r} is not in the store of the table, {root.uri!r}: one set of storage options reads all "
                "files of a dataset; publish beneath the table's root, or in the same store"
            )
        above, _, name = uri.rpartition("/")
        shown = uri[len(root.uri) + 1 :] if uri.startswith(f"{root.uri}/") else uri
        top = shown.partition("/")[0]
        if shown != uri and (top == NAME or LEAF_DIRECTORY.match(top)):
            raise InvalidInputError(
                f"path {uri!r} is inside the table's own files: publish to a directory outside of them"
            )
        return cls(parent=Root(above, root.storage_options), name=name, shown=shown)

    @property
    def uri(self) -> str:
        """What Lance opens."""
        return self.parent.uri_of(self.name)

    @property
    def key(self) -> str:
        """The property of the manifest that records it."""
        return f"{UNION}{hashlib.sha256(self.shown.encode()).hexdigest()[:16]}"

    def pins(self, manifest: Manifest) -> dict[int, str]:
        """The tags by which it holds on to snapshots."""
        found = history.tags(manifest)
        return {version: name for name, version in found.items() if name.rpartition(".")[0] == self.key}


def publish(manifest: TableManifest, path: str | os.PathLike[str] | None) -> Dataset:
    """Publish the latest snapshot as one Lance dataset at a path, or update the one there."""
    place = UnionPlace.of(manifest.root, path)
    own = catalog_of(manifest)
    if not has_commits(manifest):
        if place.shown != place.uri:
            raise UnsupportedOperationError(
                "a Hive-style table's root holds nothing but partitions: give a path elsewhere"
            )
    elif place.key not in own.snapshot().properties:
        own.set_properties({place.key: json.dumps({"path": place.shown})})
    for _ in range(_TRIES):
        try:
            done = _published(manifest, place)
            break
        except (ConflictError, ExistsError):
            continue
    else:
        done = _published(manifest, place)
    _sweep(place)
    return done


def _published(manifest: TableManifest, place: UnionPlace) -> Dataset:
    handle = published.find(manifest.root, place.uri)
    own, snapshot = catalog_of(manifest), manifest.snapshot()
    metadata = create.load(snapshot)
    if handle is None and not Files(place.parent).is_empty(place.name):
        if published.find(manifest.root, place.uri) is not None:
            raise ConflictError(f"another publisher has just made the dataset at {place.uri!r}")
        raise InvalidInputError(
            f"{place.uri!r} holds files that this table did not publish: choose another path, or remove them"
        )
    marks = {} if handle is None else _own_marks(handle, metadata, manifest.root, place)
    columns = ",".join(map(str, field_ids(metadata.schema)))
    same_columns = marks.get(UNION_COLUMNS) == columns
    pinned = metadata.transactions == STRONG
    if pinned:
        refuse_past(snapshot)
    held = place.pins(own) if pinned else {}
    there = pinned and same_columns and marks.get(UNION_SNAPSHOT) == str(snapshot.version) and snapshot.version in held
    if pinned and not there:
        _pin(own, place, snapshot.version)
    leaves = planner.plan(snapshot, metadata, None).leaves
    indices = declared(snapshot) if pinned else ()
    work = Publishing(
        root=manifest.root,
        uri=place.uri,
        metadata=metadata,
        leaves=leaves,
        known=_known(own, place, marks, leaves) if pinned else frozenset(),
        snapshot=snapshot,
        same_columns=same_columns,
        indices=indices,
        settled=len(held) == 1 and marks.get(UNION_INDICES) == _digest(indices),
    )
    if there and handle is not None:
        done = work.indexed(handle, work.known if work.settled else frozenset())
    else:
        kept = {UNION_SNAPSHOT: str(snapshot.version), **({UNION_INDICES: _digest(indices)} if indices else {})}
        done = work.publish(handle, {**_identity(metadata, manifest.root), UNION_COLUMNS: columns, **kept})
    if pinned:
        _unpin_before(own, place, snapshot.version)
    return done


def _digest(indices: Sequence[Index]) -> str:
    """What distinguishes definitions of indices of leaves."""
    spelled = json.dumps([{**index.to_json(), "segments": None} for index in indices], sort_keys=True)
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]


def _identity(metadata: TableMetadata, root: Root) -> dict[str, str]:
    return {UNION_OF: metadata.salt or root.uri, UNION_ROOT: root.uri}


def _own_marks(handle: Dataset, metadata: TableMetadata, root: Root, place: UnionPlace) -> dict[str, str]:
    """The metadata of the dataset at a path, if this table published it."""
    marks = published.marks_of(handle)
    if marks.get(UNION_OF) != _identity(metadata, root)[UNION_OF]:
        raise InvalidInputError(
            f"the dataset at {place.uri!r} was not published by this table: choose another path, or remove it"
        )
    return marks


def _pin(manifest: Manifest, place: UnionPlace, version: int) -> None:
    try:
        hold(manifest, f"{place.key}.{version}", version)
    except TableTagAlreadyExistsError:
        return


def _unpin_before(manifest: Manifest, place: UnionPlace, version: int) -> None:
    """Remove the tags of older snapshots, unless the path was unpublished meanwhile.

    Who has published a newer snapshot since has removed the tag of this one, and may be removing the others too.
    """
    pins = place.pins(manifest)
    if place.key not in manifest.snapshot().properties or max(pins, default=0) < version:
        raise ConcurrentModificationError(f"the union at {place.uri!r} was unpublished meanwhile: publish it again")
    for older, name in pins.items():
        if older < version:
            _release(manifest, name)


def _release(manifest: Manifest, name: str) -> None:
    """Remove a tag, if nobody else has."""
    with contextlib.suppress(TableTagNotFoundError, MissingError):
        history.delete_tag(manifest, name)


def _known(manifest: Manifest, place: UnionPlace, marks: dict[str, str], leaves: tuple[Leaf, ...]) -> frozenset[str]:
    """The leaves that the dataset shows already at the versions that they have."""
    version = int(marks.get(UNION_SNAPSHOT, "0"))
    if marks.get(UNION_ROOT) != manifest.root.uri or version not in place.pins(manifest):
        return frozenset()
    then = {leaf.object_id: (leaf.location, leaf.read_version) for leaf in leaves_at(manifest, version)}
    return frozenset(
        leaf.object_id for leaf in leaves if then.get(leaf.object_id) == (leaf.location, leaf.read_version)
    )


def _sweep(place: UnionPlace) -> None:
    """Remove what older versions of the dataset needed of its own files, when they have been old for a while."""
    store = Files(place.parent)
    kept = store.clock(f"{place.name}/_transactions") - READABLE
    if all(info.modified >= kept for info in store.children(f"{place.name}/_versions")[1]):
        return
    member = Member(location=place.name, versions=frozenset())
    found = sweep.look(Looking(root=place.parent, top=place.name, members=(member,), cutoff=kept))
    sweep.remove(Removing(root=place.parent, top=place.name, garbage=found.garbage, newer=(member,)))


def unpublish(manifest: TableManifest, path: str | os.PathLike[str] | None) -> None:
    """Remove the dataset at a path, and the tags that kept its files."""
    place = UnionPlace.of(manifest.root, path)
    handle = published.find(manifest.root, place.uri)
    own = catalog_of(manifest)
    registered = has_commits(manifest) and place.key in own.snapshot().properties
    if handle is None and not registered:
        raise InvalidInputError(f"nothing is published at {place.uri!r}: inspect.unions() lists what is")
    if handle is not None:
        snapshot = manifest.snapshot()
        _own_marks(handle, create.load(snapshot), manifest.root, place)
    if registered:
        own.set_properties({place.key: None})
    if handle is not None:
        _remove(place, int(handle.version))
    if registered:
        for name in place.pins(own).values():
            _release(own, name)


def _remove(place: UnionPlace, latest: int) -> None:
    """Remove a dataset, the manifest of its latest version last, so that no older one is taken for it."""
    store = Files(place.parent)
    names = [info.path[len(place.name) + 1 :] for info in store.children(f"{place.name}/_versions")[1]]
    found = [name for name in names if (file := leaf_files.parse(name)) is not None and file.version == latest]
    store.delete_directory(place.name, last=found[0] if found else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A place at which a union is published, the snapshots that it holds on to, and whether a dataset is there."""

    uri: str
    snapshot: int | None
    version: int | None
    fragments: int | None
    pinned: tuple[int, ...]


def registered(manifest: Manifest) -> list[Registered]:
    """The unions that are recorded in the manifest."""
    return [_seen(manifest, place) for place in recorded_places(manifest)]


def recorded_places(manifest: Manifest) -> list[UnionPlace]:
    """The directories of the unions that are recorded in the manifest."""
    found = []
    for key, text in manifest.snapshot().properties.items():
        if key.startswith(UNION):
            path, root = _recorded_path(key, text), manifest.root
            outside = os.path.isabs(path) or not Root(path).is_local
            found.append(UnionPlace.of(root, path if outside else f"{root.uri}/{path}"))
    return found


def _recorded_path(key: str, text: str) -> str:
    """The path that a property names; other clients may have written anything there."""
    try:
        path = json.loads(text)["path"]
    except (ValueError, KeyError, TypeError, RecursionError):
        path = None
    if not isinstance(path, str):
        raise InvalidTableStateError(f"the property {key} of __manifest names no path of a union: {text!r}")
    return path


def _seen(manifest: Manifest, place: UnionPlace) -> Registered:
    handle = published.find(manifest.root, place.uri)
    marked = None if handle is None else published.marks_of(handle).get(UNION_SNAPSHOT)
    return Registered(
        uri=place.uri,
        snapshot=None if marked is None else int(marked),
        version=None if handle is None else int(handle.version),
        fragments=None if handle is None else len(handle.get_fragments()),
        pinned=tuple(sorted(place.pins(manifest))),
    )
