"""The step of hatchling's build that puts the jar for Spark into wheels and source distributions.

A source distribution carries the built jar, so that a wheel made of it needs neither a JDK nor Spark.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SWITCH = "LANCEPART_JAR"
_OFF = ("0", "no", "off", "false")


class JarHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the jar, unless the environment says LANCEPART_JAR=0; an editable install finds it in the checkout."""

    def dependencies(self) -> list[str]:
        """Spark's jars, where they are needed and not at hand; the command line says whether the wheel is editable."""
        build = _build()
        editable = any("editable" in word for word in sys.argv[1:2])
        needed = not editable and is_wanted() and not build.is_current() and build.spark_jars() is None
        return [build.OLDEST] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the jar and add it."""
        if version == "editable" or not is_wanted():
            return
        build = _build()
        build.main()
        build_data["artifacts"].append(f"/{build.JAR.relative_to(Path(self.root).resolve()).as_posix()}")


def is_wanted() -> bool:
    """Whether the jar is to be built."""
    return os.environ.get(SWITCH, "").lower() not in _OFF


def _build() -> ModuleType:
    """``build.py``, by its path: this directory is no package, and another module is called so."""
    spec = importlib.util.spec_from_file_location("lancepart_jar", Path(__file__).with_name("build.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
