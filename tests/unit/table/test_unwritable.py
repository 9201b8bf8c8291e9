"""A table that someone else owns: it is read, and what may not be written or read is said to be so, by its name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import json, os, shutil, sys, tempfile
from datetime import timedelta
from pathlib import Path
import pyarrow as pa
import lancepart as lp

CALLS = {
    "read": lambda at: lp.open_table(at / "t").scan().count(),
    "create": lambda at: lp.create_table(at / "new", SCHEMA, ["k"]),
    "append": lambda at: lp.open_table(at / "t").append([{"id": 1, "k": "a"}]),
    "append to a new partition": lambda at: lp.open_table(at / "t").append([{"id": 1, "k": "z"}]),
    "delete": lambda at: lp.open_table(at / "t").delete("id = 1"),
    "add a column": lambda at: lp.open_table(at / "t").add_column(pa.field("x", pa.int64())),
    "expire": lambda at: lp.open_table(at / "t").maintenance.expire(timedelta(days=1)),
    "build an index": lambda at: lp.open_table(at / "t").maintenance.create_index("id", "BTREE", progress=False),
    "tag": lambda at: lp.open_table(at / "t").tags.create("x", lp.open_table(at / "t").version),
    "make a namespace": lambda at: lp.connect(at / "new").create_namespace("x"),
    "read what is secret": lambda at: lp.open_table(at / "secret").scan().count(),
    "load what is secret": lambda at: lp.load(at / "t", str(at / "secret.csv")),
    "drop": lambda at: lp.drop_table(at / "t"),
}
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])

def said(call, at):
    try:
        return [None, str(call(at))]
    except Exception as error:
        return [type(error).__name__, str(error)]

made = Path(tempfile.mkdtemp())
try:
    for name in ("t", "secret"):
        lp.create_table(made / "own" / name, SCHEMA, ["k"]).append([{"id": 1, "k": "a"}, {"id": 2, "k": "b"}])
    (made / "own" / "secret.csv").write_text("id,k\\n1,a\\n")
    shutil.copytree(made / "own", made / "warm")
    for call in CALLS.values():
        said(call, made / "warm")
    os.chmod(made, 0o755)
    for each in (made / "own" / "secret", made / "own" / "secret.csv"):
        os.chmod(each, 0)
    if os.geteuid() == 0:
        os.setegid(65534), os.seteuid(65534)
    else:
        for folder, _, files in os.walk(made / "own"):
            os.chmod(folder, 0o555)
    print(json.dumps({name: said(call, made / "own") for name, call in CALLS.items()}))
finally:
    if os.getuid() == 0:
        os.seteuid(0), os.setegid(0)
    for folder, inside, _ in os.walk(made):
        for each in (folder, *(os.path.join(folder, name) for name in inside)):
            os.chmod(each, 0o755)
    shutil.rmtree(made)
"""


def test_what_may_not_be_written_is_named(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])

    assert answers.pop("read") == [None, "2"]
    for name, (kind, text) in answers.items():
        assert kind == "PermissionDeniedError", (name, kind, text)
        assert "own/" in text, name
        assert "give a root that you may" in text, name
        assert len(text) < 500
