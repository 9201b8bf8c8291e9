"""The planning service: ``python -m lancepart.spark.service``, started by the jar beside Spark's driver.

It is spoken to over its stdin and stdout in messages of ``protocol``, each after its length in four bytes, and listens
nowhere; the end of its stdin ends it. One service belongs to one Spark session. Requests run at the same time, each in
a thread of its own: a query is planned also while many long statements run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import BinaryIO, TextIO

from lancepart.errors import ErrorCode, InvalidInputError, LanceNamespaceError
from lancepart.maintain.progress import Watcher, watching
from lancepart.model.config import config
from lancepart.spark import protocol
from lancepart.spark.handing import Hand, handing
from lancepart.spark.protocol import Cancel, Envelope, Failure, Hello, Progress, Reply, Request, Warned, Work, Worked

_LENGTH = struct.Struct(">I")
_KEPT_TABLES = 64


class CancelledError(LanceNamespaceError):
    """The statement was cancelled; what it committed before stays."""

    code = ErrorCode.INTERNAL


class WorkFailedError(LanceNamespaceError):
    """Spark's tasks failed or were cancelled; what they did is not committed."""

    code = ErrorCode.INTERNAL


def execute(request: Request) -> Reply | Failure:
    """Execute a request; errors are part of the reply."""
    from lancepart.spark.answers import answer

    try:
        return Reply(id=request.id, body=answer(request).to_json())
    except LanceNamespaceError as error:
        return Failure(id=request.id, error=type(error).__name__, code=int(error.code), message=str(error))
    except Exception as error:
        traceback.print_exc()
        return Failure(id=request.id, error=type(error).__name__, code=int(ErrorCode.INTERNAL), message=str(error))


def respond(text: str) -> str:
    """One request and its reply as texts, where messages travel in another way than through pipes."""
    request = protocol.parse(json.loads(text))
    if not isinstance(request, Request):
        raise InvalidInputError(f"a message {request.kind!r} is not a request")
    return json.dumps(protocol.dump(execute(request)))


class Service:
    """Requests read from one stream and answered on another, each in a thread of its own."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target
        self._lock = threading.Lock()
        self._running: dict[int, threading.Event] = {}
        self._worked: dict[int, SimpleQueue[Worked]] = {}

    def warn(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Pass a warning of Python's on to Spark's log."""
        self._send(Warned(message=str(message)))

    def serve(self) -> None:
        """Answer until the stream of requests ends."""
        self._send(Hello(protocol=protocol.VERSION, lancepart=_version()))
        while (message := self._read()) is not None:
            if isinstance(message, Request):
                self._running[message.id] = threading.Event()
                threading.Thread(target=self._answer, args=(message,), name=message.op, daemon=True).start()
            elif isinstance(message, Cancel):
                if event := self._running.get(message.id):
                    event.set()
            elif isinstance(message, Worked):
                if queue := self._worked.get(message.id):
                    queue.put(message)
            else:
                raise InvalidInputError(f"a message {message.kind!r} is for the jar")

    def _answer(self, request: Request) -> None:
        """Answer a request in any case: the jar waits for its reply, also after a panic inside Lance."""
        try:
            body = _encoded(self._performed(request))
        except BaseException as error:
            traceback.print_exc()
            body = _encoded(_unexpected(request, error))
        finally:
            self._running.pop(request.id, None)
        self._write(body)

    def _performed(self, request: Request) -> Reply | Failure:
        cancelled = self._running[request.id]
        if cancelled.is_set():
            message = f"{request.op} was cancelled before it began; nothing was changed"
            return Failure(id=request.id, error=CancelledError.__name__, code=int(CancelledError.code), message=message)
        with watching(self._watcher(request.id, cancelled)), handing(self._hand(request.id, cancelled)):
            return execute(request)

    def _hand(self, id: int, cancelled: threading.Event) -> Hand:
        """Let Spark's tasks do the work of a request; the jar answers in any case, also when the work is cancelled."""

        def hand(what: str, function: bytes, tasks: Sequence[bytes]) -> Sequence[bytes]:
            if cancelled.is_set():
                raise CancelledError(f"{what} was cancelled; what was committed before stays")
            queue = self._worked[id] = SimpleQueue()
            try:
                self._send(Work(id=id, what=what, function=function, tasks=tuple(tasks)))
                done = queue.get()
            finally:
                del self._worked[id]
            if done.error is not None:
                raise WorkFailedError(f"{what}: {done.error}; what was committed before stays")
            return done.results

        return hand

    def _watcher(self, id: int, cancelled: threading.Event) -> Watcher:
        def watch(what: str, done: int, total: int) -> None:
            if cancelled.is_set():
                raise CancelledError(f"{what} was cancelled after {done} of {total} steps; what they committed stays")
            if total > 1:
                self._send(Progress(id=id, what=what, done=done, total=total))

        return watch

    def _read(self) -> Envelope | None:
        head = self._source.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack(head)
        body = self._source.read(size)
        return protocol.parse(json.loads(body)) if len(body) == size else None

    def _send(self, message: Envelope) -> None:
        self._write(_encoded(message))

    def _write(self, body: bytes) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._target.write(_LENGTH.pack(len(body)) + body)
            self._target.flush()


def _encoded(message: Envelope) -> bytes:
    return json.dumps(protocol.dump(message), allow_nan=False).encode()


def _unexpected(request: Request, error: BaseException) -> Failure:
    """The error for a request whose outcome is unknown."""
    message = f"{type(error).__name__}: {error}; it is not known whether {request.op!r} took effect"
    return Failure(id=request.id, error=type(error).__name__, code=int(ErrorCode.INTERNAL), message=message)


def _version() -> str:
    from importlib.metadata import version

    return version("lancepart")


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes of this process, reserved for the protocol: printed text goes to stderr.

    Ctrl-C in a terminal reaches the driver, which cancels its statements or closes the pipe.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, target


def main(streams: Callable[[], tuple[BinaryIO, BinaryIO]] = own_streams) -> None:
    """Serve until the jar closes the pipe, and end at once then: what was not committed is garbage, as after a kill."""
    from lancepart.spark import warm

    source, target = streams()
    config.progress = False
    warm.keep(_KEPT_TABLES)
    threading.Thread(target=_preload, daemon=True).start()
    code = 1
    service = Service(source, target)
    warnings.showwarning = service.warn
    try:
        service.serve()
        code = 0
    except Exception:
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _preload() -> None:
    """Import what every query needs while the jar prepares its first request."""
    import lancepart.spark.answers  # noqa: F401


if __name__ == "__main__":
    main()
