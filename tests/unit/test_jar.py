"""Which compiler builds the jar for Spark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", Path(__file__).parents[2] / "jvm" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def compiler(home: Path) -> Path:
    (home / "bin").mkdir(parents=True)
    made = home / "bin" / "javac"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def test_the_compiler_of_java_home_comes_before_that_of_the_path(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = compiler(tmp_path / "jdk"), compiler(tmp_path / "old")
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setenv("JAVA_HOME", str(own.parents[1]))
    assert build.find_javac() == str(own)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a runtime only"))
    assert build.find_javac() == str(other)
    monkeypatch.delenv("JAVA_HOME")
    assert build.find_javac() == str(other)


def test_without_a_compiler_it_is_said_what_to_install(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SystemExit, match=r"JDK 17 or newer.*LANCEPART_JAR=0"):
        build.compile_java([], tmp_path)
