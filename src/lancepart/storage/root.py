"""The root of a catalog, and which names may be used beneath it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from lancepart.errors import InvalidInputError

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_FILE = re.compile(r"^file:(?://(?P<host>[^/]*)(?=/|$))?", re.IGNORECASE)
_SAME_STORE = {"s3a://": "s3://", "s3n://": "s3://"}
_ALMOST = re.compile(r"^(s3a?|gs|az|abfss?)(?::/(?!/)|//)", re.IGNORECASE)
_HOME = re.compile(r"^~(?![^/\\]*\.lance$)")
_PLAIN = re.compile(r"[A-Za-z0-9_$-][A-Za-z0-9_.$-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Root:
    """A root directory: an absolute local path, or a URI of an object store, without a slash at its end.

    >>> Root.parse("s3://bucket/tables/").uri_of("a1b2c3d4_ns$50% off")
    's3://bucket/tables/a1b2c3d4_ns$50%25%20off'
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, root: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Root:
        """Parse a path or URI given by a user; different spellings of one location give the same root.

        >>> Root.parse("file:/data/t/").uri, Root.parse("file://localhost/data/t").uri, Root.parse("s3a://b/t/").uri
        ('/data/t', '/data/t', 's3://b/t')
        """
        text: object = os.fspath(root) if isinstance(root, os.PathLike) else root
        if not isinstance(text, str):
            raise InvalidInputError(f"root is {root!r}: give a local path or a URI, as a string or a path")
        if storage_options is not None and not isinstance(storage_options, Mapping):
            raise InvalidInputError(f"storage_options is a {type(storage_options).__name__}: give a dict of strings")
        for key, value in (storage_options or {}).items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidInputError(f"storage_options {key!r} is of type {type(value).__name__}: give a text")
        return cls(_spelled(text), dict(storage_options or {}))

    @property
    def is_local(self) -> bool:
        """Whether the root is a directory of this machine."""
        return not _SCHEME.match(self.uri)

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What caches are keyed by: the root and the options, among them credentials, that it is reached with."""
        return self.uri, tuple(sorted(self.storage_options.items()))

    @property
    def lance_options(self) -> dict[str, str] | None:
        """The storage options as Lance takes them."""
        return dict(self.storage_options) or None

    def uri_of(self, location: str) -> str:
        """What Lance opens for a location beneath the root: a path as it is, a URI percent-encoded."""
        check_location(location)
        if not self.is_local:
            return f"{self.uri}/{quote(location, safe='/$-_.~')}"
        self.refuse_escape(location)
        return os.path.join(self.uri, location)

    def table_uri_of(self, location: str) -> str:
        """A complete URI for a location, also of a local one."""
        path = self.uri_of(location)
        return "file://" + quote(path, safe="/$-_.~") if self.is_local else path

    def leads_outside(self, location: str) -> bool:
        """Whether a symbolic link takes a location of a local root somewhere else."""
        if not self.is_local or not _may_leave(self.uri, location):
            return False
        real_root = os.path.realpath(self.uri)
        real = os.path.realpath(os.path.join(self.uri, location))
        return real != real_root and not real.startswith(real_root.rstrip(os.sep) + os.sep)

    def refuse_escape(self, location: str) -> None:
        """Refuse a location that its own parts or a symbolic link take outside the root."""
        if self.leads_outside(location):
            if ".." in location.split("/"):
                check_location(location)
            raise InvalidInputError(f"location {location!r} leads outside the root through a symbolic link")

    def refuse_links(self, location: str) -> None:
        """Refuse a location of a local root that has a symbolic link on the way to it, or is one."""
        if not self.is_local:
            return
        parts = location.split("/")
        for depth in range(1, len(parts) + 1):
            step = "/".join(parts[:depth])
            if os.path.islink(os.path.join(self.uri, step)):
                raise InvalidInputError(
                    f"location {location!r} is not removed: {step!r} is a symbolic link; remove the link by hand"
                )


def _may_leave(root: str, location: str) -> bool:
    """Whether a location can be elsewhere than it says; what has no link, no '..' and no root of its own can't."""
    parts = location.split("/")
    if os.sep != "/" or not parts[0] or ".." in parts:
        return True
    path = root
    for part in parts:
        path = os.path.join(path, part)
        if os.path.islink(path):
            return True
    return False


def _spelled(text: str) -> str:
    if not text.strip():
        raise InvalidInputError("root is empty: give a local path or a URI such as s3://bucket/prefix")
    if found := _FILE.match(text):
        if found["host"] not in (None, "", "localhost"):
            raise InvalidInputError(f"root {text!r} is on another machine: a file URI has no host, as in file:///data")
        text = unquote(text[found.end() :])
    elif found := _SCHEME.match(text):
        scheme = found[0].lower()
        if scheme == "memory://":
            raise InvalidInputError(
                f"root {text!r}: Lance gives every handle a memory of its own, where no table lasts; "
                "use a temporary directory"
            )
        rest = text[found.end() :].rstrip("/")
        if not rest or rest.startswith("/"):
            raise InvalidInputError(
                f"root {text!r} names no bucket: write one after the slashes, as in {scheme}bucket/prefix"
            )
        return _SAME_STORE.get(scheme, scheme) + rest
    if found := _ALMOST.match(text):
        raise InvalidInputError(f"root {text!r}: a URI has two slashes, as in {found[1]}://{text[found.end() :]}")
    if text == "~" or text.startswith("~/"):
        raise InvalidInputError(f"root {text!r}: ~ is not expanded; write the path out, or use os.path.expanduser")
    path = os.path.abspath(text)
    return path[1:] if path.startswith("//") else path


def check_location(location: str) -> str:
    """Refuse a location that is not a plain relative path beneath the root.

    >>> check_location("a1b2c3d4_ns$users")
    'a1b2c3d4_ns$users'
    """
    if _PLAIN.fullmatch(location) and "__manifest" not in location:
        return location
    reason = _fault(location)
    if reason:
        raise InvalidInputError(f"location {location!r} {reason}; give a relative path beneath the root")
    return location


def _fault(location: str) -> str | None:
    if not location:
        return "is empty"
    if _SCHEME.match(location) or location.startswith(("file:", "//")):
        return "is a URI, not a relative path"
    if location.startswith(("/", "\\")) or _HOME.match(location) or re.match(r"^[A-Za-z]:[\\/]", location):
        return "is an absolute path"
    if _CONTROL.search(location):
        return "holds a control character"
    parts = location.replace("\\", "/").split("/")
    if any(part in ("..", ".") for part in [*parts, *unquote(location).replace("\\", "/").split("/")]):
        return "holds a '.' or '..' part"
    if any(not part.strip() for part in parts):
        return "holds an empty part"
    if "__manifest" in parts:
        return "is a catalog's own manifest table"
    return None
