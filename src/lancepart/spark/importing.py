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
    """What an import did: its parts, how many of them had been there before, and the rows that came now."""

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
    """Import Parquet, Delta, Iceberg or anything that Spark reads; run again it does only what is left to do.

    Each commit takes in some of the source's files, and records them; the rows of each are counted on both sides.
    """
    if files_per_commit < 1:
        raise InvalidInputError(f"files_per_commit is {files_per_commit}: give a whole number from 1 up")
    place = Root.parse(root, storage_options)
    if isinstance(source, str | os.PathLike):
        source = origins.spelled(os.fspath(source))
    begun = _begun(place, name or str(source))
    if version is not None and begun is not None and begun != version:
        raise InvalidInputError(f"the import was begun at version {begun} of the source, and can't go on at {version}")
    origin = origins.find(spark, source, kind=format, name=name, version=begun if begun is not None else version)
    manifest = _target(place, origin, partition_by)
    if origin.version is not None and begun is None:
        once = IdempotencyKey(key=_key(origin.name), sequence=origin.version)
        perform(manifest, RecordKey(name="import"), once=once)
    keys = {part: _key(origin.name, part) for part in origin.parts}
    snapshot = manifest.snapshot()
    snapshot.rows(IdempotencyKey(key=key).object_id for key in keys.values())
    left = [part for part, key in keys.items() if not IdempotencyKey(key=key).is_done(snapshot)]
    rows, last = 0, None
    groups = [left[at : at + files_per_commit] for at in range(0, len(left), files_per_commit)]
    for group in track(groups, "importing", show=progress):
        count, last = _bring(spark, manifest, origin, group, [keys[part] for part in group])
        rows += count
    return Imported(
        source=origin.name,
        root=place.uri,
        source_version=origin.version,
        parts=len(keys),
        parts_before=len(keys) - len(left),
        rows=rows,
        version=last,
    )


def _bring(
    spark: Any, manifest: Manifest, origin: Origin, parts: Sequence[str], keys: Sequence[str]
) -> tuple[int, int | None]:
    """Some parts in one commit, if as many rows were written as the source has."""
    job = distributed_write.plan(manifest, once=IdempotencyKey(key=keys[0], additional_keys=tuple(keys[1:])))
    frame = origin.frame(spark, parts)
    table = open_table(manifest.root.uri, storage_options=manifest.root.storage_options)
    reports = frames.stage(job, frame, table.schema)
    rows, expected = sum(report.rows for report in reports), origin.count(spark, parts)
    if rows != expected:
        raise InternalError(
            f"{rows} rows were read from {origin.name!r} where it has {expected}: nothing of them is kept"
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


def _begun(place: Root, name: str) -> int | None:
    """The version of the source at which an import of it began."""
    try:
        open_table(place.uri, storage_options=place.storage_options)
    except TableNotFoundError:
        return None
    return IdempotencyKey(key=_key(name)).recorded(Manifest(place).snapshot())


def _key(source: str, part: str | None = None) -> str:
    return f"import {source}" if part is None else f"import {source}: {part}"
