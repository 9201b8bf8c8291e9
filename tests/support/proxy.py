"""A proxy on loopback that loses answers: the server has done its work, and the client never hears of it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Proxy:
    """Counts the writes that pass through it, and loses the answer to one of them."""

    def __init__(self, endpoint: str, upstream: str) -> None:
        self.endpoint = endpoint
        self.upstream = upstream
        self.writes = 0
        self._lost: int | None = None
        self._lock = threading.Lock()

    def lose(self, write: int | None) -> None:
        """From now on count writes from 0, and lose the answer to this one."""
        with self._lock:
            self.writes, self._lost = 0, write

    def is_lost(self, method: str) -> bool:
        """Whether the answer to the request that was just served is to be lost."""
        if method not in ("PUT", "POST", "DELETE"):
            return False
        with self._lock:
            self.writes += 1
            return self._lost == self.writes - 1


@contextmanager
def losing(upstream: str) -> Iterator[Proxy]:
    """Run a proxy before a server."""
    target = urlparse(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            connection = http.client.HTTPConnection(target, timeout=30)
            try:
                headers = {key: value for key, value in self.headers.items() if key.lower() != "connection"}
                connection.request(self.command, self.path, body=body or None, headers=headers)
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
            if proxy.is_lost(self.command):
                self.close_connection = True
                return
            self.send_response(answer.status, answer.reason)
            for key, value in answer.getheaders():
                if key.lower() not in _HOP_BY_HOP:
                    self.send_header(key, value)
            length = answer.getheader("content-length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = Proxy(f"http://127.0.0.1:{server.server_port}", upstream)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
