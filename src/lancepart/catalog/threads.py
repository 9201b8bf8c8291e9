"""Run operations on threads of our own: calling pylance from one of its own threads aborts the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def run(operation: Callable[Arguments, Result], /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
    """Call an operation here, or on a thread of ours if pylance is the caller.

    pylance calls a namespace for versions from a thread of its runtime, and can't be called from there: the interpreter
    aborts. Such a thread is one that Python did not start.
    """
    if not isinstance(threading.current_thread(), threading._DummyThread):
        return operation(*arguments, **options)
    return _workers().submit(operation, *arguments, **options).result()


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=32, thread_name_prefix="lancepart-catalog")
