"""The messages of the planning service: the same in Python and in Java, and checked field by field."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lancepart.errors import InvalidInputError
from lancepart.spark import protocol
from lancepart.spark.operations import OPERATIONS
from lancepart.spark.protocol import Reply, Request, dump, from_json, parse
from lancepart.spark.table_messages import ScanRequest

HOME = Path(__file__).parents[3]
GOLDEN = sorted((HOME / "tests" / "golden" / "protocol").glob("*.json"))


def again(path: Path) -> Any:
    """A golden message, read into its classes and written again."""
    message = parse(json.loads(path.read_text()))
    if isinstance(message, Request):
        body = from_json(OPERATIONS[message.op].request, message.body, path.name)
    elif isinstance(message, Reply):
        body = from_json(OPERATIONS[path.stem.removeprefix("reply-")].reply, message.body, path.name)
    else:
        return dump(message)
    return {**dump(message), "body": body.to_json()}


def test_there_is_a_golden_message_of_every_kind() -> None:
    names = {path.stem for path in GOLDEN}
    expected = {f"{kind}-{op}" for kind in ("request", "reply") for op in OPERATIONS}
    assert names == expected | set(protocol.KINDS) - {"request", "reply"}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_message_is_written_as_it_was_read(path: Path) -> None:
    assert again(path) == json.loads(path.read_text())


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK")
def test_java_reads_and_writes_the_golden_messages_alike(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("build", HOME / "jvm" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    jars = build.spark_jars()
    names = ("jackson-*.jar", "spark-*.jar", "scala-library-*.jar", "slf4j-api-*.jar")
    path = ":".join([str(build.JAR), *(str(jar) for name in names for jar in jars.glob(name))])
    source = str(HOME / "jvm" / "test" / "ProtocolCheck.java")
    subprocess.run(["javac", "-proc:none", "-nowarn", "-cp", path, "-d", str(tmp_path), source], check=True)
    command = ["java", "-cp", f"{tmp_path}:{path}", "io.lancepart.spark.ProtocolCheck", *map(str, GOLDEN)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    *written, changing, version = done.stdout.splitlines()
    for file, text in zip(GOLDEN, written, strict=True):
        assert json.loads(text) == json.loads(file.read_text()), file.name
    assert json.loads(changing) == {op: each.changes for op, each in OPERATIONS.items()}
    assert int(version) == protocol.VERSION


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"version": 1}, "lacks the field 'columns'"),
        ({"version": "1", "columns": []}, "scan.version"),
        ({"version": True, "columns": []}, "scan.version"),
        ({"version": 1, "columns": [1]}, r"scan.columns\[0\]"),
        ({"version": 1, "columns": [], "code": "x"}, "has no field 'code'"),
        ([], "is not an object"),
    ],
)
def test_a_body_that_is_not_what_it_should_be_is_refused(body: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        from_json(ScanRequest, body, "scan")


def test_a_message_of_no_known_kind_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no message 'greeting'"):
        parse({"kind": "greeting"})


def test_the_options_of_a_request_are_not_shown() -> None:
    assert "hush" not in repr(Request(id=1, op="table", options={"storage.account_key": "hush"}))
