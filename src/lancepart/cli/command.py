"""How a command is declared: the options that all commands have, errors in one line, exit codes."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from lancepart import errors
from lancepart.cli.shell import Answer, Shell, key_values
from lancepart.cli.usage import USAGE, UsageError, report
from lancepart.cli.wording import in_commands
from lancepart.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)

FAILED, NOT_FOUND, CONFLICT, FINDINGS, INTERRUPTED = 1, 3, 4, 5, 130

_MISSING = (NamespaceNotFoundError, TableNotFoundError, TableTagNotFoundError, TableVersionNotFoundError)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.", show_default=False)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", show_default=False)]
Storage = Annotated[
    list[str], typer.Option("--storage", help="An option of the object store, key=value.", metavar="KEY=VALUE")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is destroyed.", show_default=False)]

Root = Annotated[str, typer.Argument(help="A table: its root, or warehouse:namespace.table.", metavar="TABLE")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="Which rows: SQL in DataFusion's dialect.")]
Columns = Annotated[list[str], typer.Option("--column", "-c", help="A column to show; all unless given.")]
Limit = Annotated[int, typer.Option("-n", "--limit", min=0, help="How many rows at most.")]
MayLimit = Annotated[
    int | None, typer.Option("-n", "--limit", min=0, help="How many rows at most; with --json all unless given.")
]
AtVersion = Annotated[str | None, typer.Option("--version", help="An older snapshot: its number, a tag or a moment.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.", show_default=False)]


def command(
    app: typer.Typer, name: str | None = None, *, destroys: bool = False
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Declare a command: a function whose first parameter is the ``Shell`` and that returns an ``Answer``."""

    def register(run: Callable[..., Answer]) -> Callable[..., Answer]:
        own = inspect.signature(run, eval_str=True).parameters.values()
        common = [("as_json", AsJson, False), ("debug", Debug, False), ("storage", Storage, [])]
        common += [("yes", Yes, False)] if destroys else []
        kind = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(key, kind, default=value, annotation=what) for key, what, value in common]
        shown = [each.replace(kind=kind) for each in list(own)[1:]]

        @functools.wraps(run)
        def wrapper(*, as_json: bool, debug: bool, storage: list[str], yes: bool = False, **given: object) -> None:
            _run(run, given, as_json=as_json, debug=debug, storage=storage, yes=yes)

        wrapper.__annotations__ = {}
        wrapper.__signature__ = inspect.Signature([*shown, *added])  # type: ignore[attr-defined]
        app.command(name)(wrapper)
        return run

    return register


def _run(
    run: Callable[..., Answer],
    given: dict[str, object],
    *,
    as_json: bool,
    debug: bool,
    storage: list[str],
    yes: bool,
) -> None:
    try:
        shell = Shell(as_json=as_json, yes=yes, storage=key_values(storage, "--storage"))
        answer = run(shell, **given)
        shell.print(answer)
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        report("interrupted", "KeyboardInterrupt", None, as_json=as_json)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except Exception as error:
        if debug:
            raise
        raise typer.Exit(_failed(error, as_json=as_json)) from None
    if answer.code:
        raise typer.Exit(answer.code)


def _public_name(error: LanceNamespaceError) -> str:
    """The name of an error's class; of one that only the package knows, the name of what it is a kind of."""
    known = (
        each.__name__ for each in type(error).__mro__ if each is UsageError or vars(errors).get(each.__name__) is each
    )
    return next(known, type(error).__name__)


def _failed(error: Exception, *, as_json: bool) -> int:
    """Report an error in one line; what its exit code is."""
    if isinstance(error, LanceNamespaceError):
        report(in_commands(str(error)), _public_name(error), int(error.code), as_json=as_json)
        if isinstance(error, UsageError):
            return USAGE
        if isinstance(error, ConcurrentModificationError):
            return CONFLICT
        return NOT_FOUND if isinstance(error, _MISSING) else FAILED
    text = f"{type(error).__name__}: {error}" if not isinstance(error, OSError) else str(error)
    report(f"{text}; --debug shows where", type(error).__name__, None, as_json=as_json)
    return FAILED
