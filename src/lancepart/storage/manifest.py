"""The ``__manifest`` table: every change is a compare-and-swap on the rows that it names."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import lance
import pyarrow as pa

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    LanceNamespaceError,
    TableNotFoundError,
)
from lancepart.format.names import REQUIRED_COLUMNS, SPEC_PREFIX, TABLE_VERSION
from lancepart.model.config import config
from lancepart.storage import manifest_maintenance
from lancepart.storage.files import Files
from lancepart.storage.manifest_rows import Change
from lancepart.storage.manifest_table import create, make_ready, merge, refuse_doubles
from lancepart.storage.root import Root
from lancepart.storage.root_contents import refuse_file
from lancepart.storage.snapshot import SEALED, Snapshot
from lancepart.storage.translate import (
    BlindCommitError,
    ConflictError,
    DamagedError,
    KeyExistsError,
    MissingError,
    SealedError,
    storage_errors,
)
from lancepart.storage.turns import Turn
from lancepart.storage.uninterrupted import uninterrupted

NAME = "__manifest"
RETRY_SECONDS = 60.0
FRESH_SECONDS = 300.0
_LONG_AGO = float("-inf")
_VERSIONS = "_versions"
_LAST = (1 << 64) - 1
_RESCUE = (
    "is damaged: bring it back from a backup; if there is none, moving the file of the newest version away makes the "
    "version before it the latest"
)

Result = TypeVar("Result")


class Manifest:
    """Reads and changes the manifest table beneath a root."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.uri = f"{root.uri}/{NAME}"
        self._session = lance.Session()
        self._latest: Snapshot | None = None
        self._held: Snapshot | None = None
        self._indexed = False

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The latest version, or a given one; an empty one while nothing was written."""
        if self._held is not None and self._held.version == version:
            return self._held
        try:
            with storage_errors("open __manifest", self.root):
                return self._remembered(self._open(version), latest=version is None)
        except MissingError:
            if version is not None:
                raise
            return Snapshot(None, self.root)
        except DamagedError as error:
            raise DamagedError(f"{error}; {self._damaged_file(version)} {_RESCUE}") from None

    def hold(self, version: int | None) -> int:
        """Keep a version open for a reader, who names it and does not open it again; ``None`` is the one read last."""
        latest = self._latest if version is None else None
        self._held = self.snapshot(version) if latest is None else latest
        return self._held.version

    def refuse_remains(self) -> None:
        """Refuse to take a manifest for one that was never written whose versions are gone while its rows are not."""
        data, versions = f"{NAME}/data", f"{NAME}/{_VERSIONS}"
        if self.snapshot().handle is not None or Files(self.root).is_empty(data):
            return
        if self.snapshot().handle is None:  # looked up again: another process may have written it meanwhile
            raise InvalidTableStateError(
                f"there is data of a table at {self.root.uri!r}, and {versions!r} is gone: bring it back from a backup"
            )

    def _damaged_file(self, version: int | None) -> str:
        """The file that could not be read: that of a version, or the newest; their names count down."""
        names = sorted(info.path for info in Files(self.root).children(f"{NAME}/{_VERSIONS}")[1])
        known = [name for name in names if name.endswith(".manifest")]
        own = [name for name in known if version is not None and str(_LAST - version) in name]
        return repr((own or known or [f"{NAME}/{_VERSIONS}"])[0])

    def _remembered(self, handle: lance.LanceDataset, *, latest: bool) -> Snapshot:
        """The latest snapshot as last opened, with all that was read of it, if it is the requested one.

        A version that a caller names is not published from: a tag may keep it while later versions, and with them
        conflicts, are cleaned up. Another table that took the place of the first may have the same number by now.
        """
        known = self._latest
        if known is None or not known.is_of(handle) or known.age > FRESH_SECONDS / 2:
            known = Snapshot(handle, self.root)
            self._latest = known if latest else self._latest
            if not latest:
                known.opened = _LONG_AGO
        return known

    def transact(self, plan: Callable[[Snapshot, bool], tuple[Change, Result]]) -> Result:
        """Commit a change, and give back what its plan answered."""
        return self.commit(plan)[0]

    def commit(
        self, plan: Callable[[Snapshot, bool], tuple[Change, Result]], *, start: Snapshot | None = None
    ) -> tuple[Result, int]:
        """Plan a change on the latest snapshot and publish it, repeated until it succeeds or is refused.

        A change that depends only on the rows that it names can ``start`` from the snapshot that it was made on: if one
        of them was changed since, it is planned again on the latest. Returns the plan's result, and a version of the
        manifest that has the change. ``plan`` gets the snapshot and whether it is called again because another commit
        came first; what it raises is the caller's error. A commit whose outcome is unknown is looked up before it is
        retried.
        """
        with Turn(self) as turn:
            return self._commit(plan, start, turn)

    def _commit(
        self, plan: Callable[[Snapshot, bool], tuple[Change, Result]], start: Snapshot | None, turn: Turn
    ) -> tuple[Result, int]:
        deadline = time.monotonic() + RETRY_SECONDS
        attempt = 0
        while True:
            begun = time.monotonic()
            first = start if start is not None and not attempt and self._is_fresh(start) else self.snapshot()
            snapshot = turn.awaited(first)
            change, result = plan(snapshot, attempt > 0)
            if change.is_empty:
                return result, snapshot.version
            try:
                return result, self.publish(snapshot, change)
            except BlindCommitError:
                raise
            except (ConflictError, KeyExistsError) as error:
                landed = self._landed(change)
                if landed:
                    return result, landed
                spent = config.retries is not None and attempt >= config.retries
                if spent or time.monotonic() > deadline:
                    raise ConcurrentModificationError(
                        f"gave up after {attempt + 1} tries, other writers kept coming first: {error}"
                    ) from None
                attempt += 1
                turn.lose(time.monotonic() - begun)
                time.sleep(random.uniform(0, min(0.25, 0.002 * 2 ** min(attempt, 7))))
            except LanceNamespaceError:
                landed = self._landed(change)
                if landed:
                    return result, landed
                raise

    def publish(self, snapshot: Snapshot, change: Change) -> int:
        """Commit a change that was planned on a snapshot; ConflictError if what it names changed since."""
        if not self._is_fresh(snapshot):
            raise ConflictError("the snapshot is too old to publish from")
        handle = self._writable(snapshot)
        refuse_doubles(change)
        written = uninterrupted(
            lambda: self._merged(handle, change, snapshot),
            "commit",
            lambda _: f"the commit was done before the interrupt: it is snapshot {handle.version}",
        )
        version = int(handle.version)
        self._refuse_blind(snapshot, version)
        if written is not None and version == snapshot.version + 1:
            self._latest = snapshot.followed(handle, change, written)
        manifest_maintenance.after_commit(self, version, written=len(change.inserts))
        if not self._indexed:
            self._indexed = True
            manifest_maintenance.index_others(copy.copy(handle), self.root)
        return version

    def _refuse_blind(self, snapshot: Snapshot, version: int) -> None:
        """Report a commit that took so long that others' commits, with which it may conflict, were cleaned away.

        That takes a machine that sleeps in the middle of a commit, for longer than cleaning keeps versions.
        """
        if version == snapshot.version + 1 or self._is_fresh(snapshot):
            return
        try:
            self.snapshot(snapshot.version + 1)
        except MissingError:
            raise BlindCommitError(
                f"this commit, snapshot {version}, was held up for {snapshot.age:.0f} seconds, and what others did "
                f"after snapshot {snapshot.version} has been cleaned away meanwhile, so that it may have undone that: "
                "compare it with the snapshot before it, and roll back if rows are missing or doubled"
            ) from None

    def _merged(self, handle: lance.LanceDataset, change: Change, snapshot: Snapshot) -> pa.Table | None:
        with storage_errors("commit to __manifest", self.root):
            return merge(handle, change, snapshot)

    def rearranged(self, snapshot: Snapshot, handle: lance.LanceDataset) -> None:
        """Carry cached values of a snapshot over to a later version that has the same rows in other files."""
        self._latest = snapshot.rearranged(handle)

    @staticmethod
    def _is_fresh(snapshot: Snapshot) -> bool:
        return snapshot.age <= FRESH_SECONDS

    def set_properties(self, values: Mapping[str, str | None]) -> None:
        """Set or (with ``None``) remove root properties."""

        def attempt(handle: lance.LanceDataset) -> None:
            handle.update_metadata(dict(values))

        self._retry("set properties of __manifest", attempt)

    def claim_properties(self, values: Mapping[str, str]) -> bool:
        """Set root properties none of which may be there yet; say whether they were set."""
        claimed = False

        def attempt(handle: lance.LanceDataset) -> None:
            nonlocal claimed
            if not any(key in handle.metadata for key in values):
                handle.update_metadata(dict(values))
                claimed = True
            elif all(handle.metadata.get(key) == value for key, value in values.items()):
                claimed = True

        self._retry("set properties of __manifest", attempt)
        return claimed

    def swap_properties(self, snapshot: Snapshot, values: Mapping[str, str]) -> int:
        """Set root properties as planned on a snapshot; ConflictError if one of them was set since.

        The version that has them.
        """
        handle = self._writable(snapshot)

        def swap() -> None:
            with storage_errors("set properties of __manifest", self.root):
                handle.update_metadata(dict(values))

        uninterrupted(
            swap, "change the table's definition", lambda _: "the definition was changed before the interrupt"
        )
        return int(handle.version)

    def is_sealed(self) -> bool:
        """Whether the manifest was made unusable in order to remove it, or is removed already."""
        try:
            return self.snapshot().handle is None
        except SealedError:
            return True

    def seal(self, snapshot: Snapshot) -> str:
        """Make a manifest unusable before it is removed; ConflictError if anything was committed since the snapshot.

        A client that has an older version open can't commit any more, so removing the files loses nothing. Returns the
        file, in the manifest's directory, that is to be removed last: no older version is then taken for the newest.
        """
        with storage_errors("seal __manifest", self.root):
            lance.LanceDataset.commit(
                self.uri,
                lance.LanceOperation.Overwrite(SEALED, []),
                read_version=snapshot.version,
                max_retries=0,
                storage_options=self.root.lance_options,
            )
        return f"{_VERSIONS}/{_LAST - snapshot.version - 1:020d}.manifest"

    def widen_columns(self, types: Mapping[str, pa.DataType]) -> None:
        """Give extension columns wider types; their values stay."""

        def attempt(handle: lance.LanceDataset) -> None:
            changes = [
                {"path": name, "data_type": wanted}
                for name, wanted in types.items()
                if handle.schema.field(name).type != wanted
            ]
            if changes:
                manifest_maintenance.drop_indices(handle, [change["path"] for change in changes])
                handle.alter_columns(*changes)  # type: ignore[arg-type]
                manifest_maintenance.create_indices(handle)

        self._retry("widen columns of __manifest", attempt)

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Add nullable extension columns, recorded as required so that their loss is noticed."""

        def attempt(handle: lance.LanceDataset) -> None:
            missing = [field for field in fields if field.name not in handle.schema.names]
            recorded = json.loads(handle.metadata.get(REQUIRED_COLUMNS, "[]"))
            wanted = [*recorded, *(field.name for field in fields if field.name not in recorded)]
            if missing:
                handle.add_columns([field.with_nullable(True) for field in missing])
            if wanted != recorded:
                handle.update_metadata({REQUIRED_COLUMNS: json.dumps(wanted)})

        self._retry("add columns to __manifest", attempt)

    def _retry(self, action: str, attempt: Callable[[lance.LanceDataset], None]) -> None:
        """Run a change of the table itself on its latest version until it meets no other."""
        deadline, pause = time.monotonic() + RETRY_SECONDS, 0.0
        while True:
            try:
                handle = self._writable(self.snapshot())
                with storage_errors(action, self.root):
                    return attempt(handle)
            except ConflictError as error:
                if time.monotonic() > deadline:
                    raise ConcurrentModificationError(f"other writers kept coming first: {error}") from None
                time.sleep(random.uniform(0, pause))
                pause = 0.02

    def _open(self, version: int | None = None) -> lance.LanceDataset:
        if self._latest is None:
            refuse_file(self.root)
        return lance.dataset(self.uri, version=version, session=self._session, storage_options=self.root.lance_options)

    def _writable(self, snapshot: Snapshot) -> lance.LanceDataset:
        """A handle at the snapshot's version; ConflictError if the table had to be made ready for commits first."""
        handle = snapshot.own_handle()
        if handle is None:
            self._refuse_dropped()
            create(self.root, NAME, self.uri)
            raise ConflictError("the manifest was written for the first time")
        make_ready(handle, self.root)
        return handle

    def _refuse_dropped(self) -> None:
        """Refuse to write the manifest again of a table that was dropped since it was read."""
        known = {} if self._latest is None else self._latest.properties
        if any(key.startswith(SPEC_PREFIX) for key in known):
            raise TableNotFoundError(f"the table at {self.root.uri!r} was dropped meanwhile; nothing was changed")

    def _landed(self, change: Change) -> int:
        """A version that contains a change which was reported as failed, or 0.

        A retried request can find its own success. If the change records versions, one of them is enough to check,
        since all rows are written at once and others do not change them; the fence may have been changed since.
        """
        recorded = [row for row in change.inserts if row.object_type == TABLE_VERSION]
        decisive = recorded[:1] or change.inserts
        if not decisive:
            return 0
        snapshot = self.snapshot()
        found = snapshot.rows(row.object_id for row in decisive)
        return snapshot.version if all(row.is_same(found.get(row.object_id)) for row in decisive) else 0
