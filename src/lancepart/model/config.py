"""Settings of this process: ``lancepart.config``, with first values from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral

from lancepart.errors import InvalidInputError
from lancepart.model.public import public

THREADS, CACHE_BYTES = "LANCEPART_THREADS", "LANCEPART_CACHE_BYTES"
RETRIES, PROGRESS = "LANCEPART_RETRIES", "LANCEPART_PROGRESS"
_LEAST_CACHE, _MOST_CACHE, _CACHE_SHARE = 1 << 30, 6 << 30, 8
_MOST_THREADS = 1024
_WORDS = {"1": True, "on": True, "true": True, "yes": True, "0": False, "off": False, "false": False, "no": False}


def _default_cache() -> int:
    """An eighth of the machine's memory within bounds: parts of an index that does not fit are read by every search."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _LEAST_CACHE
    return min(_MOST_CACHE, max(_LEAST_CACHE, memory // _CACHE_SHARE))


@public("cache_bytes", "progress", "retries", "threads")
class Config:
    """Settings of this process; each can also be given by an environment variable before the first use.

    ``threads`` bounds the work on partitions at one time, ``cache_bytes`` what searches keep in memory between calls,
    ``retries`` how often a commit is tried again after another one came first, ``progress`` shows bars on a terminal.
    """

    __slots__ = ("_cache_bytes", "_progress", "_resize", "_retries", "_threads")

    def __init__(self) -> None:
        self._resize: Callable[[int], None] | None = None
        self._threads = _whole(THREADS, os.environ.get(THREADS), max(2, os.cpu_count() or 2), least=1)
        self._cache_bytes = _whole(CACHE_BYTES, os.environ.get(CACHE_BYTES), _default_cache())
        given = os.environ.get(RETRIES)
        self._retries = None if not given else _whole(RETRIES, given, 0)
        self._progress = _switch(PROGRESS, os.environ.get(PROGRESS, ""))

    @property
    def threads(self) -> int:
        """How many partitions are read at one time; the number of cores unless set."""
        return self._threads

    @threads.setter
    def threads(self, value: object) -> None:
        self._threads = _number("threads", value, least=1)

    @property
    def cache_bytes(self) -> int:
        """The most bytes that are kept; 0 keeps nothing.

        Half of it is for open tables and what was read of them, half for Lance's own caches of indices and metadata.
        """
        return self._cache_bytes

    @cache_bytes.setter
    def cache_bytes(self, value: object) -> None:
        self._cache_bytes = _number("cache_bytes", value, unit=" of bytes")
        if self._resize is not None:
            self._resize(self._cache_bytes)

    @property
    def retries(self) -> int | None:
        """How often a commit that lost against another one is tried again; None tries for a minute."""
        return self._retries

    @retries.setter
    def retries(self, value: object) -> None:
        self._retries = None if value is None else _number("retries", value)

    @property
    def progress(self) -> bool:
        """Whether long work shows a bar on stderr if that is a terminal."""
        return self._progress

    @progress.setter
    def progress(self, value: object) -> None:
        if not isinstance(value, bool):
            raise InvalidInputError(f"progress is {value!r}: give True or False")
        self._progress = value

    def follow(self, resize: Callable[[int], None]) -> None:
        """Let the cache know its size whenever that is set."""
        self._resize = resize

    def __setattr__(self, name: str, value: object) -> None:
        if name not in dir(type(self)):
            known = "threads, cache_bytes, retries and progress"
            raise InvalidInputError(f"there is no setting {name!r}: lancepart.config has {known}")
        object.__setattr__(self, name, value)

    def _values(self) -> dict[str, object]:
        names = ("threads", "cache_bytes", "retries", "progress")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self._values().items())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in self._values().items())
        return f"<table><tr><th>setting</th><th>value</th></tr>{rows}</table>"


def _number(name: str, value: object, *, least: int = 0, unit: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidInputError(f"{name} is {value!r}: give a number{unit} from {least} up")
    return min(int(value), _MOST_THREADS) if name == "threads" else int(value)


def _whole(name: str, text: str | None, default: int, *, least: int = 0) -> int:
    if not text:
        return default
    if not (text.strip().isascii() and text.strip().isdigit()) or int(text) < least:
        raise InvalidInputError(f"the environment variable {name} is {text!r}: give a whole number from {least} up")
    return int(text)


def _switch(name: str, text: str) -> bool:
    found = _WORDS.get(text.strip().lower() or "on")
    if found is None:
        raise InvalidInputError(f"the environment variable {name} is {text!r}: use on or off")
    return found


config = Config()
