"""Options of Spark readers and writers, of jobs and of tables: unknown ones are refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.model.suggest import like, near

_READING = ("version", "timestamp", "versionAsOf", "timestampAsOf")
_STREAMING = (
    "startingVersion",
    "startingTimestamp",
    "maxVersionsPerTrigger",
    "maxRowsPerTrigger",
    "readChangeFeed",
    "ignoreDeletes",
    "ignoreChanges",
)
_WRITING = (
    "partition_by",
    "transactions",
    "distribution",
    "idempotency_key",
    "replaceWhere",
    "partitionOverwriteMode",
    "cyclic_partitions",
    "order_by",
    "target_file_size",
    "mergeSchema",
)
_KNOWN = {name.lower(): name for name in (*_READING, *_STREAMING, *_WRITING, "path", "warehouse")}
_PREFIXES = ("storage.", "lancepart.")
_OF_SPARK = frozenset(
    {"paths", "checkpointlocation", "queryname", "outputmode", "triggerinterval", "__partition_columns", "provider"}
)
_OF_FILES = frozenset(
    {
        *("header", "inferschema", "compression", "multiline", "encoding", "sep", "delimiter"),
        *("quote", "escape", "comment", "nullvalue", "nanvalue", "dateformat", "timestampformat"),
        *("timestampntzformat", "mode", "columnnameofcorruptrecord", "recursivefilelookup", "basepath"),
        *("pathglobfilter", "modifiedbefore", "modifiedafter", "ignorecorruptfiles", "ignoremissingfiles"),
        *("datetimerebasemode", "int96rebasemode", "locale", "linesep", "maxrecordsperfile", "overwriteschema"),
        "latestfirst",
    }
)
"""Options of file formats, which mean nothing here and change no rows."""

_OF_OTHERS = {
    "snapshot-id": "version",
    "snapshot_id": "version",
    "snapshotid": "version",
    "as-of-timestamp": "timestamp",
    "tag": "version",
    "branch": "version",
    "start-snapshot-id": "startingVersion",
    "start-timestamp": "startingTimestamp",
    "stream-from-timestamp": "startingTimestamp",
    "maxfilespertrigger": "maxVersionsPerTrigger",
    "maxbytespertrigger": "maxRowsPerTrigger",
    "skipchangecommits": "ignoreChanges",
    "overwrite-mode": "partitionOverwriteMode",
}
"""What other formats call it; passed over, it would change which rows are read or written."""

_PROPERTIES = ("transactions", "cyclic_partitions", "comment", "provider", "location", "owner", "external")
ORDER_BY = "write.order-by"
_WRITES = ("write.distribution-mode", ORDER_BY, "write.target-file-size")
_DISTRIBUTIONS = ("none", "hash", "range")
_SIZE = re.compile(r"\d+\s*(b|k|kb|m|mb|g|gb|t|tb)?", re.IGNORECASE)
_PARTS = re.compile(r"(?:`(?:[^`]|``)*`|[^`,])+")
_ORDER = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|([^\s`,]+))(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?\s*", re.IGNORECASE
)
_FOREIGN_PROPERTIES = ("write.", "read.", "delta.", "commit.", "history.", "format-version")


def check(options: Iterable[str]) -> None:
    """Refuse options that are nearly ours, or another format's for something that we have; warn of the rest."""
    for key in options:
        folded = key.lower()
        if folded in _KNOWN or folded in _OF_SPARK or folded.startswith(_PREFIXES):
            continue
        if folded in _OF_OTHERS:
            raise InvalidInputError(f"lancepart has no option {key!r}: use {_OF_OTHERS[folded]!r}")
        if folded in _OF_FILES:
            _warn(f"the option {key!r} has no effect on a table of lancepart")
            continue
        prefix, dot, _ = folded.partition(".")
        meant = like(folded, _KNOWN.values()) or ([f"{_PREFIXES[0]}…"] if dot and like(prefix, ["storage"]) else [])
        if meant:
            raise InvalidInputError(f"lancepart has no option {key!r}; did you mean {meant[0]!r}?")
        _warn(f"lancepart does not know the option {key!r}: it has no effect")


def check_batch(options: Iterable[str]) -> None:
    """Refuse options of streams where a batch is read: passed over, all rows of now would be read."""
    streaming = {name.lower(): name for name in _STREAMING}
    for key in options:
        if key.lower() in streaming:
            raise UnsupportedOperationError(
                f"{streaming[key.lower()]} is for streams: read it with spark.readStream, or use table.changes"
            )


def check_properties(properties: Mapping[str, str | None]) -> None:
    """Refuse table properties that are nearly ours; warn of those that mean something elsewhere and nothing here."""
    for key in properties:
        folded = key.lower()
        if key in _WRITES:
            _check_write(key, properties[key] or "")
        if key in _PROPERTIES or key in _WRITES:
            continue
        if meant := like(folded, (*_PROPERTIES[:2], *_WRITES)):
            raise InvalidInputError(f"there is no table property {key!r}; did you mean {meant[0]!r}?")
        if folded.startswith(_FOREIGN_PROPERTIES):
            _warn(f"the table property {key!r} is kept and has no effect")


def _check_write(key: str, value: str) -> None:
    """Refuse what no write could obey."""
    if key == _WRITES[0] and value.lower() not in _DISTRIBUTIONS:
        raise InvalidInputError(f"{key} is {value!r}: use one of {', '.join(_DISTRIBUTIONS)}")
    if key == _WRITES[2] and not _SIZE.fullmatch(value):
        raise InvalidInputError(f"{key} is {value!r}: write bytes, or a text such as 256m")


def check_order(properties: Mapping[str, str | None], columns: Iterable[str]) -> None:
    """Refuse an order of rows by columns that the table lacks: every write to it would fail."""
    text, names = properties.get(ORDER_BY) or "", set(columns)
    if any(name not in names for name in order_columns(text)):
        raise InvalidInputError(
            f"{ORDER_BY}: {text!r} is no order of rows: write columns of the table, as in ts DESC, `a b` NULLS LAST"
        )


def order_columns(text: str) -> list[str | None]:
    """The columns that an order of rows names, and None for what names none.

    >>> order_columns("ts DESC, `a b` NULLS LAST, +")
    ['ts', 'a b', '+']
    """
    found = (_ORDER.fullmatch(part) for part in _PARTS.findall(text))
    return [None if each is None else each[1].replace("``", "`") if each[1] else each[2] for each in found]


def check_keys(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse keys of a job's file that no job has."""
    names = sorted(set(known))
    for key in keys:
        if key not in names:
            raise InvalidInputError(f"{where} has no key {key!r}{near(key, names)}; the keys are {', '.join(names)}")


@lru_cache(maxsize=256)
def _warn(message: str) -> None:
    """Warn once in a process: Spark plans one scan several times."""
    warnings.warn(message, stacklevel=3)
