"""What is imported when: a worker that reads one table should not wait for what it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("lance_namespace_urllib3_client.api", "lancepart.catalog.namespace", "pyspark", "rich", "urllib3")
TABLE = """
import lancepart as lp, pyarrow as pa
table = lp.create_table({root!r}, pa.schema([("k", pa.int64())]), ["k"])
table.append([{{"k": 1}}])
assert lp.open_table({root!r}).scan().count() == 1
"""
IDENTITY = """
import lancepart, lance_namespace
import lance_namespace_urllib3_client as client
from lancepart import errors
assert lance_namespace.errors.InvalidInputError is errors.InvalidInputError is lance_namespace.InvalidInputError
assert client.models.PartitionSpec is lance_namespace.__dict__.get("PartitionSpec", client.models.PartitionSpec)
assert client.models.PartitionSpec is client.PartitionSpec
from lancepart.model import spec
assert spec.PartitionSpecModel is client.PartitionSpec
catalog = lance_namespace.connect("lancepart.DirectoryNamespace", {{"root": {root!r}}})
assert isinstance(catalog, lance_namespace.LanceNamespace) and isinstance(catalog, lancepart.DirectoryNamespace)
try:
    lance_namespace.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
else:
    raise AssertionError
"""
TOGETHER = """
import threading
import lancepart, lance_namespace
start, found = threading.Barrier(8), []
def ask():
    start.wait()
    found.append((lance_namespace.CreateTableRequest, lancepart.DirectoryNamespace))
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(found) == 8 and len(set(found)) == 1
"""
FIRST = """
import lance_namespace
before = lance_namespace.LanceNamespace
import lancepart
assert lancepart.errors.LanceNamespaceError is lance_namespace.LanceNamespaceError
assert issubclass(lancepart.DirectoryNamespace, before)
"""


def run(code: str) -> set[str]:
    """The modules that a program has imported in the end."""
    program = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_lancepart_imports_no_other_library() -> None:
    found = run("import lancepart")
    heavy = ("datafusion", "lance.", "numpy", "obstore", "pandas", "polars")
    assert not {name for name in found if f"{name}.".startswith((*heavy, "pyarrow", "pydantic", *HEAVY))}
    assert sorted(name for name in found if name.startswith("lancepart.")) == [
        "lancepart.commit",
        "lancepart.commit.frame_writer",
        "lancepart.deferred",
        "lancepart.errors",
        "lancepart.read",
        "lancepart.read.engine",
        "lancepart.spark",
        "lancepart.spark.engine",
    ]


@pytest.mark.slow
def test_public_names_are_found_without_being_imported() -> None:
    run("import lancepart; assert set(lancepart.__all__) <= set(dir(lancepart)); from lancepart import *; open_table")


def test_importing_lancepart_leaves_out_what_a_table_does_not_need(tmp_path: Path) -> None:
    found = run(TABLE.format(root=str(tmp_path / "t")))
    assert not {name for name in found if name.startswith(HEAVY)}
    assert "lancepart.maintain.upgrade" not in found


@pytest.mark.slow
def test_upkeep_leaves_out_the_progress_bar_where_nobody_sees_it(tmp_path: Path) -> None:
    quiet = "import os\nfor name in ('FORCE_COLOR', 'TTY_COMPATIBLE', 'TTY_INTERACTIVE'): os.environ.pop(name, None)"
    upkeep = (
        "from datetime import timedelta\ntable.append([{'k': 2}, {'k': 3}])\n"
        "table.maintenance.remove_orphans(timedelta(days=7), dry_run=True)"
    )
    found = run(f"{quiet}\n{TABLE.format(root=str(tmp_path / 't'))}\n{upkeep}")
    assert "lancepart.maintain.progress" in found
    assert "rich" not in found


@pytest.mark.slow
def test_sparks_workers_leave_out_the_catalog() -> None:
    found = run("import lancepart.spark.source, lancepart.spark.running, lancepart.spark.writing")
    assert not {
        name for name in found if name.startswith(("lance_namespace_urllib3_client.api", "lancepart.catalog.n"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("code", [IDENTITY, TOGETHER, FIRST], ids=["identity", "threads", "imported before"])
def test_what_is_deferred_is_the_same_as_ever(tmp_path: Path, code: str) -> None:
    run(code.format(root=str(tmp_path)) if code is IDENTITY else code)
