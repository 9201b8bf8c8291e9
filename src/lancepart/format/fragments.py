"""What the row of a leaf's version says of its fragments, so that a union names their files without opening the leaf.

It is compact: ranges of numbers are spelled as such, and of the leaf's columns only a fingerprint is kept. Leaves with
the same fingerprint have the same columns, so that one of them is opened for all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from lancepart.model.aliases import JsonObject, Value

DeletionKind: TypeAlias = Literal["array", "bitmap"]

MOST_BYTES = 2_048
"""How large a record may be as JSON; leaves with more fragments are opened."""

_PATH = re.compile(r"[0-9A-Za-z_-]+\.lance")
_SHAPE = re.compile(r"[0-9a-f]{32}")
_DELETIONS: dict[object, DeletionKind] = {"array": "array", "bitmap": "bitmap"}
_TOP, _DETACHED = 1 << 32, 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """A data file: its name, the leaf's columns that it holds and where, its format and its size if that is known."""

    path: str
    fields: tuple[int, ...]
    columns: tuple[int, ...]
    major: int
    minor: int
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionRecord:
    """A deletion file: how it is written, what its name is made of, and how many rows it deletes."""

    kind: DeletionKind
    version: int
    id: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentRecord:
    """A fragment by its number in the leaf."""

    id: int
    rows: int
    files: tuple[FileRecord, ...]
    deletion: DeletionRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafFiles:
    """The fragments of a leaf's version, and the fingerprint of its columns."""

    version: int
    shape: str
    fragments: tuple[FragmentRecord, ...]

    def to_json(self) -> JsonObject | None:
        """What is written down; None if it is too large for that."""
        kinds = list(dict.fromkeys(_layout(file) for item in self.fragments for file in item.files))
        spelled = [
            [
                item.id,
                item.rows,
                [[file.path, file.size, kinds.index(_layout(file))] for file in item.files],
                *([] if item.deletion is None else [_deletion(item.deletion)]),
            ]
            for item in self.fragments
        ]
        made: JsonObject = {
            "version": self.version,
            "shape": self.shape,
            "kinds": [list(kind) for kind in kinds],
            "fragments": spelled,
        }
        return made if len(json.dumps(made, separators=(",", ":"))) <= MOST_BYTES else None

    @classmethod
    def from_json(cls, spelled: Value) -> LeafFiles | None:
        """The recorded value; None for anything else, since any client may have written it."""
        try:
            kinds = [_kind(*each) for each in spelled["kinds"]]
            found = tuple(_fragment(kinds, *each) for each in spelled["fragments"])
            version, shape = _count(spelled["version"], _DETACHED), spelled["shape"]
        except (TypeError, ValueError, KeyError, IndexError):
            return None
        if not isinstance(shape, str) or not _SHAPE.fullmatch(shape) or len({item.id for item in found}) < len(found):
            return None
        return cls(version=version, shape=shape, fragments=found)


_Layout = tuple[int, int, str, str]
_Kind = tuple[int, int, tuple[int, ...], tuple[int, ...]]


def _layout(file: FileRecord) -> _Layout:
    return _spelled_layout(file.major, file.minor, file.fields, file.columns)


@lru_cache(maxsize=1024)
def _spelled_layout(major: int, minor: int, fields: tuple[int, ...], columns: tuple[int, ...]) -> _Layout:
    """The same for nearly all files of a table."""
    return major, minor, ranges(fields), ranges(columns)


def _deletion(found: DeletionRecord) -> list[str | int]:
    return [found.kind, found.version, found.id, found.rows]


def _kind(major: Value, minor: Value, fields: Value, columns: Value) -> _Kind:
    numbers = unranged(fields), unranged(columns)
    if len(numbers[0]) != len(numbers[1]):
        raise ValueError
    return _count(major), _count(minor), *numbers


def _fragment(
    kinds: Sequence[_Kind],
    number: Value,
    rows: Value,
    files: Value,
    deletion: Value = None,
) -> FragmentRecord:
    made = []
    for path, size, kind in files:
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise ValueError
        major, minor, fields, columns = kinds[_count(kind)]
        counted = None if size is None else _count(size)
        made.append(FileRecord(path=path, fields=fields, columns=columns, major=major, minor=minor, size=counted))
    if not made:
        raise ValueError
    gone = None if deletion is None else _deleted(*deletion)
    return FragmentRecord(id=_count(number, _TOP), rows=_count(rows), files=tuple(made), deletion=gone)


def _deleted(kind: Value, version: Value, number: Value, rows: Value) -> DeletionRecord:
    if kind not in _DELETIONS:
        raise ValueError
    return DeletionRecord(
        kind=_DELETIONS[kind], version=_count(version, _DETACHED), id=_count(number, _DETACHED), rows=_count(rows)
    )


def _count(value: Value, below: int = 1 << 63) -> int:
    if type(value) is not int or not 0 <= value < below:
        raise ValueError
    return value


def ranges(numbers: Sequence[int]) -> str:
    """Numbers in their order, those that follow each other as a range.

    >>> ranges([0, 1, 2, 7, -1, 8, 9]), ranges([])
    ('0:2,7,-1,8:9', '')
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}:{last}" for first, last in spans)


def unranged(text: Value) -> tuple[int, ...]:
    """The numbers that ``ranges`` spelled; a ValueError if it is not that.

    >>> unranged('0:2,7,-1,8:9'), unranged('')
    ((0, 1, 2, 7, -1, 8, 9), ())
    """
    if not isinstance(text, str) or len(text) > MOST_BYTES:
        raise ValueError
    found: list[int] = []
    for span in text.split(",") if text else ():
        first, _, last = span.partition(":")
        start, end = int(first), int(last or first)
        if not 0 <= end - start <= 1 << 16:
            raise ValueError
        found += range(start, end + 1)
    return tuple(found)
