"""What commands run with and what they answer: the same data as JSON for programs and as text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import typer
from rich.console import Console

from lancepart.cli.output import show_record
from lancepart.cli.target import Target
from lancepart.cli.usage import UsageError
from lancepart.commit.result import CommitResult
from lancepart.model.snapshot_text import is_number
from lancepart.report.values import plain
from lancepart.table import PartitionedTable

_PIPE_WIDTH = 160
VERSIONS = (
    "A version is the number of a snapshot: it grows with every commit, not always by one. --version N reads one again."
)


class _Console(Console):
    """A console whose reader may leave, as ``head`` does, without that being a failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a command; ``show`` prints it for people, with a ``note`` beneath, ``code`` is the exit code."""

    payload: object
    show: Callable[[Console], None] | None = None
    note: str | None = None
    code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The options that all commands have."""

    as_json: bool = False
    yes: bool = False
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def table(self, target: str, version: str | None = None) -> PartitionedTable:
        """The table that a user names, perhaps at an older snapshot."""
        return Target.parse(target).open(self.storage, None if version is None else snapshot_of(version))

    def most(self, limit: int | None, usual: int) -> int | None:
        """How many rows are shown: as many as requested, else some for people and all for programs."""
        return limit if limit is not None else None if self.as_json else usual

    def confirm(self, what: str) -> None:
        """Confirm before data is destroyed; without a terminal, ``--yes`` is required."""
        if self.yes:
            return
        if not sys.stdin.isatty() or self.as_json:
            raise UsageError(f"{what}: give --yes to do it")
        typer.confirm(f"{what}. Go on?", abort=True, err=True)

    def print(self, answer: Answer) -> None:
        """Print an answer on stdout: one JSON document, or text."""
        if self.as_json:
            print(json.dumps(plain(answer.payload), ensure_ascii=False))
            return
        console = _Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
        if answer.show is not None:
            answer.show(console)
        elif isinstance(answer.payload, Mapping):
            show_record(console, answer.payload)
        else:
            console.print(answer.payload)
        if answer.note is not None:
            console.print(f"\n{answer.note}", markup=False)


def committed(version: int | None) -> dict[str, object]:
    """What a commit did; a table without snapshots does not say."""
    changed = vars(version) if isinstance(version, CommitResult) else {}
    return {"version": version, **changed}


def snapshot_of(text: str) -> int | str | datetime:
    """A snapshot as users write it: a number, a moment or a tag.

    >>> snapshot_of("12"), snapshot_of("release"), snapshot_of("2026-01-31").isoformat()
    (12, 'release', '2026-01-31T00:00:00')
    """
    if is_number(text):
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def key_values(texts: list[str], what: str, form: str = "key=value") -> dict[str, str]:
    """Options of the form key=value.

    >>> key_values(["aws_region=eu-west-1", "endpoint=http://x?a=b"], "--storage")
    {'aws_region': 'eu-west-1', 'endpoint': 'http://x?a=b'}
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{what} {text!r}: write it as {form}")
        if key.strip() in found:
            raise UsageError(f"{what} {key.strip()!r} is given twice: give it once")
        found[key.strip()] = value
    return found
