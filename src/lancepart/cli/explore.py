"""``ui``: the explorer in a browser."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import signal
import sys
import threading
import webbrowser
from types import FrameType
from typing import Annotated
from urllib.parse import quote

import typer

from lancepart.cli.command import command
from lancepart.cli.shell import Answer, Shell
from lancepart.cli.target import Target
from lancepart.errors import InvalidInputError
from lancepart.ui.explorer import Explorer
from lancepart.ui.guard import is_everywhere, is_loopback
from lancepart.ui.server import Server

TOKEN = "LANCEPART_UI_TOKEN"
LOOPBACK = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(ui)


def ui(
    shell: Shell,
    root: Annotated[str, typer.Argument(help="A warehouse, a table's root, or warehouse:namespace.table.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8710,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; others than loopback need a token.")
    ] = LOOPBACK,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> Answer:
    """Show tables in a browser, read-only: partitions, filters, snapshots, search, health. Ctrl-C ends it."""
    token = os.environ.get(TOKEN) or (None if is_loopback(host) else secrets.token_urlsafe(24))
    target = Target.parse(root)
    explorer = Explorer(target.root, namespace=target.path, storage=shell.storage)
    server = _server(explorer, host, port, token)
    address = server.url if token is None else f"{server.url}?token={quote(token, safe='')}"
    _announce(address, root, everywhere=is_everywhere(host), as_json=shell.as_json)
    if browse and sys.stdout.isatty():
        webbrowser.open(address)
    threading.Thread(target=_warm, args=(explorer,), daemon=True).start()
    _serve(server)
    return Answer(payload={"url": server.url, "ended": True}, show=lambda console: console.print("ended"))


def _warm(explorer: Explorer) -> None:
    """Read ahead what the first page needs; if that fails, the page says why."""
    with contextlib.suppress(Exception):
        explorer.warm()


def _server(explorer: Explorer, host: str, port: int, token: str | None) -> Server:
    try:
        return Server(explorer, host=host, port=port, token=token)
    except OSError as error:
        advice = f"leave --host out to listen on {LOOPBACK}"
        if error.errno == errno.EADDRINUSE:
            advice = "give another --port, or --port 0 for a free one"
        elif error.errno == errno.EACCES:
            advice = "give a --port from 1024 up"
        raise InvalidInputError(f"can't listen on {host}, port {port}: {error.strerror}; {advice}") from None


def _announce(address: str, root: str, *, everywhere: bool, as_json: bool) -> None:
    elsewhere = "from other machines with this one's IP address in its place; " if everywhere else ""
    text = json.dumps({"url": address}) if as_json else f"{root} at {address}  ({elsewhere}read-only; Ctrl-C ends it)"
    print(text, flush=True, file=sys.stderr if as_json else sys.stdout)


def _serve(server: Server) -> None:
    """Serve until Ctrl-C, or until the process is terminated."""

    def end(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=server.shutdown).start()

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve_forever(poll_interval=0.1)
    finally:
        server.server_close()
        for each, handler in before.items():
            signal.signal(each, handler)
