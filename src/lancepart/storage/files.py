"""Plain files beneath a root: markers, staged manifests, whole table directories."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore import store as stores

from lancepart.errors import InternalError, InvalidInputError, InvalidTableStateError
from lancepart.storage.root import Root, check_location
from lancepart.storage.translate import ExistsError, storage_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore


_CLIENT_OPTIONS = {"allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "proxy_url", "user_agent"}
_PARALLEL = 16
_UNFINISHED = re.compile(r"#\d+$")

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a listing says of one file; ``path`` is relative to the root."""

    path: str
    size: int
    modified: datetime
    e_tag: str | None


class Files:
    """Reads and writes small files beneath a root, alike on a local disk and on an object store."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._store: ObjectStore | None = None

    def read(self, path: str) -> bytes:
        """The content of a file; FileNotFoundError if there is none."""
        with storage_errors(f"read {path!r}", self._root):
            return bytes(obstore.get(self._opened(path), path).bytes())

    def exists(self, path: str) -> bool:
        """Whether a file is at exactly this path."""
        try:
            with storage_errors(f"look at {path!r}", self._root):
                obstore.head(self._opened(path), path)
        except FileNotFoundError:
            return False
        return True

    def put(self, path: str, content: bytes = b"") -> None:
        """Write a file, replacing an existing one."""
        with storage_errors(f"write {path!r}", self._root):
            obstore.put(self._opened(path, create=True), path, content)

    def put_new(self, path: str, content: bytes = b"") -> bool:
        """Write a file only if there is none, in one atomic step; say whether it was written."""
        try:
            with storage_errors(f"write {path!r}", self._root):
                obstore.put(self._opened(path, create=True), path, content, mode="create")
        except (ExistsError, FileExistsError):
            return False
        return True

    def claim(self, path: str) -> bytes | None:
        """Write a file of one's own only if there is none, and return its content; None if there was one.

        A repeated request that meets its own success has won.
        """
        token = uuid.uuid4().hex.encode()
        return token if self.put_new(path, token) or self.read(path) == token else None

    def delete(self, path: str) -> bool:
        """Remove a file; returns whether it existed, as far as the store reports it."""
        try:
            with storage_errors(f"delete {path!r}", self._root):
                if self._root.is_local and is_unfinished(path):
                    self._root.refuse_escape(path)
                    os.unlink(os.path.join(self._root.uri, path))
                else:
                    obstore.delete(self._opened(path), path)
        except FileNotFoundError:
            return False
        return True

    def clock(self, directory: str) -> datetime:
        """The time by the store's clock, which is one for all: just after that of a file written now."""
        path = f"{directory}/{uuid.uuid4().hex}.clock"
        self.put(path)
        try:
            with storage_errors("ask the store for the time", self._root):
                return _info(obstore.head(self._opened(path), path)).modified + timedelta(microseconds=1)
        finally:
            self.delete(path)

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """All files at any depth beneath a directory, unfinished ones among them."""
        try:
            with storage_errors(f"list {prefix!r}", self._root):
                for chunk in obstore.list(self._opened(prefix), prefix):
                    yield from (_info(item) for item in chunk)
        except FileNotFoundError:
            return
        if self._root.is_local:
            yield from self._unfinished(prefix)

    def _unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """Temporary files of local writers that were not renamed; the store does not list them."""
        for folder, _, names in os.walk(os.path.join(self._root.uri, prefix)):
            for name in filter(is_unfinished, names):
                path = os.path.join(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    found = os.stat(path)
                    modified = datetime.fromtimestamp(found.st_mtime, UTC)
                    shown = os.path.relpath(path, self._root.uri).replace(os.sep, "/")
                    yield FileInfo(path=shown, size=found.st_size, modified=modified, e_tag=None)

    def children(self, directory: str = "") -> tuple[tuple[str, ...], tuple[FileInfo, ...]]:
        """The names of the directories, and the files, directly beneath a directory."""
        try:
            with storage_errors(f"list {directory or 'the root'!r}", self._root):
                found = obstore.list_with_delimiter(self._opened(directory), directory or None)
        except FileNotFoundError:
            return (), ()
        names = tuple(prefix.rstrip("/").rsplit("/", 1)[-1] for prefix in found["common_prefixes"])
        return names, tuple(_info(item) for item in found["objects"])

    def is_empty(self, directory: str) -> bool:
        """Whether there is no file at any depth beneath a directory."""
        return next(self.walk(directory), None) is None

    def refuse_removal(self, directory: str, *, with_tables: bool = False) -> None:
        """Refuse a directory that is not to be removed: not strictly beneath the root, or reached by a link.

        One that holds tables of its own is refused too, unless they are meant to go with it.
        """
        check_location(directory)
        self._root.refuse_links(directory)
        if not with_tables and (inner := self.inner_table(directory)) is not None:
            raise InvalidTableStateError(
                f"location {directory!r} is not removed: it holds another table, at {inner!r}, and is no Lance table"
            )

    def inner_table(self, directory: str) -> str | None:
        """A table or catalog inside a directory, where no Lance table keeps anything."""
        for path in self._paths(directory):
            above = path[len(directory) + 1 :].split("/")[:-1]
            if "__manifest" in above or ("_versions" in above[1:] and not _is_of_lance(above[0])):
                return os.path.dirname(path)
        return None

    def _paths(self, directory: str) -> Iterator[str]:
        """All files beneath a directory, through no symbolic link."""
        if not self._root.is_local:
            yield from (info.path for info in self.walk(directory))
            return
        for folder, _, names in os.walk(os.path.join(self._root.uri, directory)):
            inside = os.path.relpath(folder, self._root.uri).replace(os.sep, "/")
            yield from (f"{inside}/{name}" for name in names)

    def delete_directory(
        self,
        directory: str,
        *,
        last: str | None = None,
        with_tables: bool = False,
        only: Callable[[str], bool] | None = None,
    ) -> None:
        """Remove all files beneath a directory that may be removed; ``last`` is removed after all others.

        ``only`` decides, by its path from the directory on, whether a file goes. Nothing else in lancepart removes a
        directory, so these checks hold everywhere.
        """
        self.refuse_removal(directory, with_tables=with_tables)
        self._delete_files(directory, last, only)

    def delete_manifest(self, name: str, *, last: str) -> None:
        """Remove the manifest of the root itself, which no location names; ``last`` is removed after all others."""
        self._root.refuse_links(name)
        self._delete_files(name, last)

    def _delete_files(self, directory: str, last: str | None, only: Callable[[str], bool] | None = None) -> None:
        self._refuse_links_inside(directory)
        inside = len(directory) + 1
        paths = [info.path for info in self.walk(directory) if only is None or only(info.path[inside:])]
        final = f"{directory}/{last}" if last else None
        self._in_parallel(self.delete, [path for path in paths if path != final])
        if final in paths:
            self.delete(final)
        self.prune(directory)
        if only is not None and not self.is_empty(directory):
            for folder in sorted({os.path.dirname(path) for path in paths} - {directory}):
                self.prune(f"{directory}/{folder[inside:].partition('/')[0]}")

    def _refuse_links_inside(self, directory: str) -> None:
        """Refuse a directory with a symbolic link in it, which a walk would follow to files of others."""
        link = next(self._links(directory), None)
        if link is not None:
            raise InternalError(f"could not delete {directory!r}: {link!r} is a symbolic link; remove the link by hand")

    def has_links_on_the_way(self, directory: str) -> bool:
        """Whether a directory, or one above it beneath the root, is a symbolic link."""
        try:
            self._root.refuse_links(directory)
        except InvalidInputError:
            return True
        return False

    def has_links(self, directory: str) -> bool:
        """Whether a directory is a symbolic link, or has one in it."""
        own = self._root.is_local and os.path.islink(os.path.join(self._root.uri, directory))
        return own or next(self._links(directory), None) is not None

    def _links(self, directory: str) -> Iterator[str]:
        if not self._root.is_local:
            return
        for folder, folders, names in os.walk(os.path.join(self._root.uri, directory)):
            paths = (os.path.join(folder, name) for name in (*folders, *names))
            yield from (path for path in paths if os.path.islink(path))

    def prune(self, directory: str, *, before: datetime | None = None) -> None:
        """Remove a directory that holds no file at any depth; only a local disk keeps such.

        With ``before`` it stays if anything in it changed since then: a writer may be about to fill it.
        """
        path = os.path.join(self._root.uri, directory)
        if not self._root.is_local or not self.is_empty(directory):
            return
        if before is None or _last_change(path) < before:
            _remove_empty(path)

    def clone_directory(self, source: str, target: str, *, skip: Iterable[str] = ()) -> None:
        """Make the files of one directory available in another: linked on a local disk, copied by an object store."""
        skipped = {f"{source}/{name}" for name in skip}
        present = {info.path for info in self.walk(target)}
        pairs = [
            (info.path, target + info.path[len(source) :])
            for info in self.walk(source)
            if info.path not in skipped and not is_unfinished(info.path)
        ]
        self._in_parallel(lambda pair: self._clone(*pair), [pair for pair in pairs if pair[1] not in present])

    def _clone(self, source: str, target: str) -> None:
        """Clone one file; one that was removed since it was listed is left out."""
        with contextlib.suppress(FileNotFoundError):
            if self._root.is_local:
                self._root.refuse_escape(target)
                _link(os.path.join(self._root.uri, source), os.path.join(self._root.uri, target))
                return
            with storage_errors(f"copy {source!r}", self._root):
                obstore.copy(self._opened(), source, target)

    def _in_parallel(self, action: Callable[[Item], object], items: list[Item]) -> None:
        if len(items) <= 1 or self._root.is_local:
            for item in items:
                action(item)
            return
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(action, items))

    def _opened(self, path: str = "", *, create: bool = False) -> ObjectStore:
        """The store to reach a path with; one that a symbolic link takes outside the root is refused."""
        self._root.refuse_escape(path)
        if self._store is None:
            if self._root.is_local:
                if create:
                    os.makedirs(self._root.uri, exist_ok=True)
                elif not os.path.isdir(self._root.uri):
                    raise FileNotFoundError(self._root.uri)
                self._store = stores.LocalStore(self._root.uri)
            else:
                self._store = _remote_store(self._root)
        return self._store


def is_unfinished(path: str) -> bool:
    """Whether a file is a temporary file that the object store has not yet renamed.

    >>> is_unfinished("leaf/data/a.lance#1"), is_unfinished("leaf/data/a.lance")
    (True, False)
    """
    return _UNFINISHED.search(path) is not None


def _is_of_lance(name: str) -> bool:
    """Whether Lance itself keeps tables in a directory of a table: branches, and what its own names mark."""
    return name in ("data", "tree") or name.startswith("_")


_from_url: Callable[..., ObjectStore] = stores.from_url


def _remote_store(root: Root) -> ObjectStore:
    client = {key: value for key, value in root.storage_options.items() if key in _CLIENT_OPTIONS}
    config = {key: value for key, value in root.storage_options.items() if key not in _CLIENT_OPTIONS}
    known = {key: value for key, value in config.items() if _is_known(root.uri, key, value)}
    return _from_url(root.uri, config=known or None, client_options=client or None)


def _is_known(uri: str, key: str, value: str) -> bool:
    try:
        _from_url(uri, config={key: value})
    except obstore.exceptions.UnknownConfigurationKeyError:
        return False
    except obstore.exceptions.BaseError:
        return True
    return True


def _info(item: obstore.ObjectMeta) -> FileInfo:
    return FileInfo(path=item["path"], size=item["size"], modified=item["last_modified"], e_tag=item.get("e_tag"))


def _link(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.basename(source).endswith((".json", ".lance-reserved")):
        shutil.copyfile(source, target)
        return
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        shutil.copyfile(source, target)


def _last_change(directory: str) -> datetime:
    """When an entry was last added to a directory, or to one inside it, or removed."""
    times = [os.stat(path).st_mtime for path, _, _ in os.walk(directory)]
    return datetime.fromtimestamp(max(times, default=0.0), UTC)


def _remove_empty(directory: str) -> None:
    """Remove directories that hold no file; what another writer put there meanwhile stays."""
    for path, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)
