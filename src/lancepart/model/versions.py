"""Names of version manifests in a table's ``_versions`` directory."""

from __future__ import annotations

import re
from enum import Enum

from lancepart.errors import InvalidInputError

DIRECTORY = "_versions"
_MAX = 2**64 - 1
_V1 = re.compile(r"^(\d{1,19})\.manifest$")
_V2 = re.compile(r"^(\d{20})\.manifest$")


class NamingScheme(Enum):
    """How a version's number is written in its manifest's name."""

    V1 = "V1"
    V2 = "V2"

    def file_name(self, version: int) -> str:
        """The name of a version's manifest.

        >>> NamingScheme.V1.file_name(3), NamingScheme.V2.file_name(3)
        ('3.manifest', '18446744073709551612.manifest')
        """
        return f"{version}.manifest" if self is NamingScheme.V1 else f"{_MAX - version:020d}.manifest"

    @classmethod
    def parse(cls, name: str) -> NamingScheme:
        """Read a scheme's name, in any case."""
        try:
            return cls(name.upper())
        except ValueError:
            raise InvalidInputError(f"naming scheme {name!r} is unknown: use V1 or V2") from None

    @classmethod
    def of_file(cls, name: str) -> NamingScheme | None:
        """The scheme that a file's name follows; a staged manifest has more behind ``.manifest``.

        >>> NamingScheme.of_file("18446744073709551612.manifest-5229eabf")
        <NamingScheme.V2: 'V2'>
        """
        stem = name.split(".manifest", maxsplit=1)[0] + ".manifest"
        return cls.V2 if _V2.match(stem) else cls.V1 if _V1.match(stem) else None


def version_of(name: str) -> int | None:
    """The version that a finished manifest's name refers to; nothing for staged and detached ones.

    >>> version_of("7.manifest"), version_of("18446744073709551608.manifest"), version_of("d123.manifest")
    (7, 7, None)
    """
    if match := _V2.match(name):
        return _MAX - int(match.group(1))
    if match := _V1.match(name):
        return int(match.group(1))
    return None
