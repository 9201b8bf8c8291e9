"""Packages that are installed beside the others, in a directory of their own: versions that nothing else here wants."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parent.parent / "build"


def installed(name: str, *packages: str) -> Path | None:
    """The directory of packages, installed if need be; None if they can't be had."""
    folder, made = BUILD / name, BUILD / f"{name}-{os.getpid()}"
    if folder.exists():
        return folder
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), *packages],
        check=False,
        capture_output=True,
    )
    if done.returncode:
        shutil.rmtree(made, ignore_errors=True)
        return None
    try:
        made.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(made)
    return folder
