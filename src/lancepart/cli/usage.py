"""Wrong usage of the command, and how every error is reported: in one line, or as one JSON document."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.model.suggest import near

USAGE = 2
_ABORTED = 1
_CLICK: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises for wrong usage; where it is imported from depends on typer's version."""
_NUMBER = re.compile(r"Input should be a valid (?:integer|number).*")


class UsageError(InvalidInputError):
    """An option or an argument that can't be what is meant, or one that is missing: exit code 2."""


class Commands(TyperGroup):
    """A group of commands that reports wrong usage as the commands report their errors."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code."""
        given = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(given, prog_name, complete_var, False, windows_expand_args, **extra)
        except (typer.Abort, _CLICK, LanceNamespaceError) as error:
            if not standalone_mode or (isinstance(error, LanceNamespaceError) and "--debug" in given):
                raise
            self._report(error, as_json="--json" in given)
            sys.exit(_ABORTED if isinstance(error, typer.Abort) else USAGE)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)

    def _report(self, error: Exception, *, as_json: bool) -> None:
        if isinstance(error, typer.Abort):
            report("stopped: nothing was done", "Abort", None, as_json=as_json)
        elif isinstance(error, LanceNamespaceError):  # of a setting in the environment, read when a command is imported
            report(str(error), type(error).__name__, int(error.code), as_json=as_json)
        elif text := usage_text(error):
            report(text, UsageError.__name__, int(UsageError.code), as_json=as_json)


def usage_text(error: Any) -> str:
    """What is wrong and where it is explained; nothing where the help was shown instead."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    text = _NUMBER.sub("give a number", error.format_message().strip())
    text = re.sub(r" \(Possible options: ([^)]*)\)", r". Did you mean \1?", text)
    ended = text if text.endswith(("?", ".")) else f"{text}."
    return ended if error.ctx is None else f"{ended} See {error.ctx.command_path} -h"


def among(known: Sequence[str]) -> Callable[[str], list[str]]:
    """What completes an option that takes one of a few words."""

    def found(incomplete: str) -> list[str]:
        return [each for each in known if each.startswith(incomplete)]

    return found


def choice(option: str, given: str, known: Sequence[str]) -> None:
    """Refuse a value of an option that is none of those known."""
    if given not in known:
        raise UsageError(f"{option} is {given!r}: use {', '.join(known)}{near(given, known)}")


def report(message: str, kind: str, code: int | None, *, as_json: bool) -> None:
    """Print an error on stderr."""
    line = " ".join(message.split())
    if as_json:
        print(json.dumps({"error": kind, "code": code, "message": line}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"Error: {line}", file=sys.stderr)
