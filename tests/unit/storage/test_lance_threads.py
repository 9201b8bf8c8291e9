"""Lance encodes on all cores of a small machine, and as it likes on a large one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lancepart.storage import lance_threads


@pytest.mark.parametrize(
    ("found", "given", "expected"), [(2, None, "2"), (3, None, "3"), (1, None, None), (8, None, None), (2, "1", "1")]
)
def test_a_machine_with_few_cores_uses_all_of_them(
    monkeypatch: pytest.MonkeyPatch, found: int, given: str | None, expected: str | None
) -> None:
    monkeypatch.delenv(lance_threads.VARIABLE, raising=False)
    if given is not None:
        monkeypatch.setenv(lance_threads.VARIABLE, given)
    monkeypatch.setattr(lance_threads, "cores", lambda: found)
    lance_threads.use_all_cores()
    assert os.environ.get(lance_threads.VARIABLE) == expected


def test_the_variable_is_set_before_lance_is_imported() -> None:
    seen = """
import importlib.abc, os, sys
class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "lance":
            print("variable", os.environ.get("LANCE_CPU_THREADS"))
sys.meta_path.insert(0, Watch())
os.sched_getaffinity = lambda _: {0, 1}
import lancepart.storage.leaf_data
"""
    environment = {key: value for key, value in os.environ.items() if key != lance_threads.VARIABLE}
    done = subprocess.run([sys.executable, "-c", seen], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["variable", "2"]
