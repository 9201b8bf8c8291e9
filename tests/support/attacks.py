"""Values that do harm if they are unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECRET = "hush-hush"


class Touch:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return open, (self.path, "w")
