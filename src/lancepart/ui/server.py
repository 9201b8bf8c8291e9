"""The explorer's server: HTTP on loopback, GET only, nothing from or to anywhere else."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from urllib.parse import parse_qs, urlsplit

from lancepart.errors import LanceNamespaceError
from lancepart.ui import rows
from lancepart.ui.api import IMAGE, ROUTES, message_of, params_of, status_of
from lancepart.ui.explorer import Explorer
from lancepart.ui.guard import Guard

_log = logging.getLogger(__name__)
_AT_ONCE = 8
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SECONDS = 30
_UNKNOWN_NAME = (
    "this server does not answer under that name: open the address that `lancepart ui` printed; a proxy in front of it "
    "has to send the header Host: 127.0.0.1"
)
_MEDIA = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_SCRIPT = "text/javascript; charset=utf-8"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _pages() -> dict[str, tuple[bytes, str]]:
    """The files of the page, by the path under which they are served."""
    folder = resources.files("lancepart.ui") / "static"
    found = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    served = {f"/{name}": (data, _MEDIA.get(name, _SCRIPT)) for name, data in found.items()}
    return served | {"/": served["/index.html"]}


class Server(ThreadingHTTPServer):
    """Answers requests about one explorer, some at a time."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, explorer: Explorer, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        self.guard = Guard(host=host, token=token)
        self.explorer = explorer
        self.pages = _pages()
        self.turns = threading.BoundedSemaphore(_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        self.guard = replace(self.guard, port=self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what went wrong; a browser that went away before it had its answer is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            _log.exception("a request failed")

    @property
    def url(self) -> str:
        """Where the page is; one of the addresses if there are several."""
        host, port = self.server_address[:2]
        name = _ANY.get(text := host.decode() if isinstance(host, bytes | bytearray) else host, text)
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version = "lancepart"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer with a file of the page, with JSON, or with an image."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer with the headers alone."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        guard = self.server.guard
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # what follows is the body of this request, and no other request
        headers: Mapping[str, str] = {name.title(): value for name, value in self.headers.items()}
        try:
            url = urlsplit(self.path)
            query = parse_qs(url.query, keep_blank_values=True, max_num_fields=32)
        except ValueError:
            return self._fail(HTTPStatus.BAD_REQUEST, "the URL is malformed or has too many parameters", body=body)
        token = query.pop("token", [""])[-1] or None
        if not guard.knows(self.headers.get("Host")):
            return self._fail(HTTPStatus.FORBIDDEN, _UNKNOWN_NAME, body=body)
        if not guard.admits(headers, token):
            return self._fail(HTTPStatus.UNAUTHORIZED, "open the address that `lancepart ui` printed", body=body)
        if token is not None and url.path == "/" and guard.token is not None:
            return self._enter(guard.cookie)
        if url.path in self.server.pages:
            data, media = self.server.pages[url.path]
            return self._send(HTTPStatus.OK, data, media, body=body)
        name = url.path.removeprefix("/api/") if url.path.startswith("/api/") else ""
        if not guard.is_own(headers):
            return self._fail(HTTPStatus.FORBIDDEN, "another site can't ask this server", body=body)
        if name != IMAGE and name not in ROUTES:
            return self._fail(HTTPStatus.NOT_FOUND, "there is no such page", body=body)
        return self._call(name, query, body=body)

    def _call(self, name: str, query: Mapping[str, list[str]], *, body: bool) -> None:
        try:
            with self.server.turns:
                params = params_of(query)
                if name == IMAGE:
                    data, media = rows.image(self.server.explorer, params)
                else:
                    answer = ROUTES[name](self.server.explorer, params)
                    data, media = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode(), "application/json"
        except Exception as error:
            if not isinstance(error, LanceNamespaceError):
                _log.exception("the explorer could not answer %s", name)
            return self._fail(status_of(error), message_of(error), body=body)
        return self._send(HTTPStatus.OK, data, media, body=body)

    def _enter(self, cookie: str) -> None:
        """Keep the token in a cookie, and out of the address."""
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", "/")
        self.send_header("Set-Cookie", cookie)
        self._end(0)

    def _fail(self, status: int, message: str, *, body: bool) -> None:
        data = json.dumps({"error": message}, ensure_ascii=False).encode()
        self._send(status, data, "application/json", body=body)

    def _send(self, status: int, data: bytes, media: str, *, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self._end(len(data))
        if body:
            self.wfile.write(data)

    def _end(self, length: int) -> None:
        self.send_header("Content-Length", str(length))
        for key, value in _HEADERS.items():
            self.send_header(key, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is not GET or that can't be read, in the same form as all others."""
        self.close_connection = True
        self._fail(code, message or explain or "refused", body=self.command != "HEAD")

    def log_message(self, format: str, *args: object) -> None:
        """Log the path without the query, which may hold a filter with names of people, or the token."""
        _log.debug("%s %s", self.command or "-", getattr(self, "path", "").partition("?")[0])
