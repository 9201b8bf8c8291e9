"""Names of namespaces and tables, and the ids and directories made of them."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence

from lancepart.errors import InvalidInputError

DELIMITER = "$"
MAX_LOCATION_BYTES = 200
NAME_LENGTH = 16

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_FORBIDDEN = re.compile(r"[$/\\\x00-\x1f\x7f]")


def object_id(path: Sequence[str]) -> str:
    """Join a namespace path into its ``__manifest`` key.

    >>> object_id(["v1", "k7m2n9p4q8r5s3t6", "dataset"])
    'v1$k7m2n9p4q8r5s3t6$dataset'
    """
    return DELIMITER.join(path)


def check_path(path: Sequence[str] | None, *, what: str, root_allowed: bool = False) -> tuple[str, ...]:
    """Refuse a path with a part that could not be stored, or that would lead elsewhere.

    >>> check_path(["prod", "50% off 😀"], what="table")
    ('prod', '50% off 😀')
    """
    parts = tuple(path or ())
    if not parts and not root_allowed:
        raise InvalidInputError(f"the {what} id is empty: give at least a name")
    for part in parts:
        reason = _fault(part)
        if reason:
            raise InvalidInputError(f"{what} id {list(parts)!r}: the part {part!r} {reason}")
    return parts


def hashed_location(identifier: str) -> str:
    """A directory name that no other table has or had: random hash first, then as much of the id as fits.

    >>> hashed_location("ns1$users")[8:]
    '_ns1$users'
    """
    suffix = identifier.encode()[:MAX_LOCATION_BYTES].decode(errors="ignore")
    return f"{secrets.token_hex(4)}_{suffix}"


def _fault(part: str) -> str | None:
    if not part.strip():
        return "is empty"
    if part in (".", ".."):
        return "is a relative path"
    found = _FORBIDDEN.search(part)
    if found:
        return f"holds {found.group()!r}, which separates ids or paths, or is a control character"
    if not _is_unicode(part):
        return "is not valid Unicode"
    return None


def _is_unicode(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True


def partition_name(salt: str, spec_id: int, keys: Sequence[str]) -> str:
    """The name of a partition's namespace: sixteen base36 characters that collide when the values' keys do.

    So two writers that create one partition at once meet in ``__manifest`` under one id.

    >>> partition_name("salt", 1, ["i2025"])
    'ys3m67jnoq7fjow4'
    """
    text = "\x1f".join([salt, str(spec_id), *keys])
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    letters = []
    for _ in range(NAME_LENGTH):
        number, digit = divmod(number, 36)
        letters.append(_BASE36[digit])
    return "".join(letters)


def leaf_location(transaction: str, identifier: str) -> str:
    """The directory of a new leaf: no two incarnations share one, and the tasks of one job agree without talking."""
    digest = hashlib.sha256(f"{transaction}\x1f{identifier}".encode()).hexdigest()
    return f"{digest[:8]}_{identifier}"
