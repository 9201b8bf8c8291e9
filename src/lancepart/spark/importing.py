"""Importing other tables part by part, so that an import that was killed can resume."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lancepart.commit import distributed_write
from lancepart.commit.actions import RecordKey
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.perform import perform
from lancepart.errors import InternalError, InvalidInputError, TableNotFoundError
from lancepart.maintain.progress import track
from lancepart.model.aliases import JsonObject
from lancepart.spark import frames, origins
from lancepart.spark.origins import Origin
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.table import Partitioning, create_table, open_table

FILES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import: its parts, how many of them were imported before, and the rows imported now."""

    source: str
    root: str
    source_version: int | None
    parts: int
    parts_before: int
    rows: int
    version: int | None

    def to_json(self) -> JsonObject:
        """For a summary."""
        return asdict(self)


def import_table(
    spark: Any,
    source: Any,
    root: str | os.PathLike[str],
    partition_by: Partitioning = (),
    *,
    format: str | None = None,
    name: str | None = None,
    version: int | None = None,
    files_per_commit: int = FILES,
    storage_options: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Imported:
    """Import Parquet, Delta, Iceberg or anything that Spark reads; run again, it continues with what is left.

    Each commit imports some of the source's files, and records them; the rows of each are counted and compared.
    """
    if files_per_commit < 1:
        raise InvalidInputError(f"files_per_commit is {files_per_commit}: give a whole number from 1 up")
    place = Root.parse(root, storage_options)
    if isinstance(source, str | os.PathLike):
        source = origins.spelled(os.fspath(source))
    begun = _begun(place, name or str(source), version)
    origin = origins.find(spark, source, kind=format, name=name, version=begun if begun is not None else version)
    manifest = _target(place, origin, partition_by)
    if origin.version is not None and begun is None:
        idempotency = IdempotencyKey(key=_key(origin.name), sequence=origin.version)
        perform(manifest, RecordKey(name="import"), idempotency=idempotency)
    parts = origin.parts
    left = _left(manifest, origin.name, parts)
    rows, last = 0, None
    groups = [left[at : at + files_per_commit] for at in range(0, len(left), files_per_commit)]
    for group in track(groups, "importing", show=progress):
        count, last = _bring(spark, manifest, origin, group)
        rows += count
    return Imported(
        source=origin.name,
        root=place.uri,
        source_version=origin.version,
        parts=len(parts),
        parts_before=len(parts) - len(left),
        rows=rows,
        version=last,
    )


def _left(manifest: Manifest, source: str, parts: Sequence[str]) -> list[str]:
    """The parts of a source that no commit has imported yet."""
    keys = {part: IdempotencyKey(key=_key(source, part)) for part in parts}
    snapshot = manifest.snapshot()
    snapshot.rows(key.object_id for key in keys.values())
    return [part for part, key in keys.items() if not key.is_done(snapshot)]


def _bring(spark: Any, manifest: Manifest, origin: Origin, parts: Sequence[str]) -> tuple[int, int | None]:
    """Import some parts in one commit, if as many rows were written as the source has."""
    first, *others = (_key(origin.name, part) for part in parts)
    job = distributed_write.plan(manifest, idempotency=IdempotencyKey(key=first, additional_keys=tuple(others)))
    frame = origin.frame(spark, parts)
    table = open_table(manifest.root.uri, storage_options=manifest.root.storage_options)
    reports = frames.stage(job, frame, table.schema)
    rows, expected = sum(report.rows for report in reports), origin.count(spark, parts)
    if rows != expected:
        raise InternalError(
            f"{rows} rows were read from {origin.name!r} where it has {expected}: none of them is committed"
        )
    return rows, distributed_write.commit(manifest, job, reports)


def _target(place: Root, origin: Origin, partition_by: Partitioning) -> Manifest:
    try:
        open_table(place.uri, storage_options=place.storage_options)
    except TableNotFoundError:
        if not partition_by:
            raise InvalidInputError(
                f"there is no table at {place.uri!r}: say how to partition it with partition_by"
            ) from None
        nullable = pa.schema([field.with_nullable(True) for field in origin.schema])
        create_table(place.uri, nullable, partition_by, storage_options=place.storage_options)
    return Manifest(place)


def _begun(place: Root, name: str, version: int | None) -> int | None:
    """The version of the source at which an import of it began, which must be the one that is wanted now."""
    try:
        open_table(place.uri, storage_options=place.storage_options)
    except TableNotFoundError:
        return None
    begun = IdempotencyKey(key=_key(name)).recorded(Manifest(place).snapshot())
    if version is not None and begun is not None and begun != version:
        raise InvalidInputError(
            f"the import was begun at version {begun} of the source, and can't continue at version {version}"
        )
    return begun


def _key(source: str, part: str | None = None) -> str:
    return f"import {source}" if part is None else f"import {source}: {part}"
