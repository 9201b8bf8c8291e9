"""Entries of long writes, refreshed by a thread: a writer that waits, or writes one large file, can't do so itself."""

from __future__ import annotations

import logging
import os
import threading
import weakref

from lancepart.commit import writers
from lancepart.errors import LanceNamespaceError
from lancepart.format.records import Signature
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import awake

INTERVAL_SECONDS = 60.0

_log = logging.getLogger(__name__)


class WriterEntry:
    """A write's entry in the manifest: made when it has taken long, renewed, and taken away at its end.

    Collectors wait for it, a day at the most after it was last renewed; so a failure here costs no more than a write
    that has to be done again.
    """

    def __init__(self, root: Root, signature: Signature, *, since: int, began: float) -> None:
        self._over = threading.Event()
        self._root, self._signature, self._since, self._began = root, signature, since, began
        self._renewed: float | None = None
        _WATCH.add(self)

    @property
    def is_over(self) -> bool:
        """Whether collectors need no longer wait for the write."""
        return self._over.is_set()

    def keep(self) -> None:
        """Enter the write if it has taken long, or again if that was long ago."""
        lately = self._renewed is not None and awake() - self._renewed < writers.RENEWED_SECONDS / 2
        if self._over.is_set() or lately or not writers.is_long(self._began):
            return
        try:
            writers.enter(Manifest(self._root), self._signature, self._since, self._began)
        except Exception as error:
            _log.debug("a long write could not be entered: %s", error)
        self._renewed = awake()
        if self._over.is_set():
            self._leave()

    def end(self) -> None:
        """Take the entry away, unless the commit did."""
        self._over.set()
        self._leave()

    def _leave(self) -> None:
        renewed, self._renewed = self._renewed, None
        if renewed is not None:
            try:
                writers.leave(Manifest(self._root), self._signature.transaction)
            except (LanceNamespaceError, OSError) as error:
                _log.debug("the entry of a long write is left to collectors: %s", error)


class _Watch:
    """The writes of a process that are not over; its thread runs only while there are some."""

    def __init__(self) -> None:
        self._entries: weakref.WeakSet[WriterEntry] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, entry: WriterEntry) -> None:
        """Look after a write until it is over or forgotten."""
        with self._lock:
            self._entries.add(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lancepart-watch", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        wait = threading.Event()
        while not wait.wait(INTERVAL_SECONDS):
            with self._lock:
                found = [entry for entry in self._entries if not entry.is_over]
                if not found:
                    self._thread = None
                    return
            for entry in found:
                entry.keep()

    def reset(self) -> None:
        """Forget the thread and the writes of the process that this one was forked from."""
        self._entries, self._lock, self._thread = weakref.WeakSet(), threading.Lock(), None


_WATCH = _Watch()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WATCH.reset)
