"""A standalone cluster on loopback: a master and workers as processes of their own, which can be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.support.waiting import until

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = "Successfully registered with master"
_HERE = "127.0.0.1"


@dataclass(frozen=True)
class Cluster:
    """The URL of a master, and its workers."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master with workers of one core each; all of it ends with the context."""
    with ExitStack() as stack:
        log = folder / "master.log"
        place = ["--host", _HERE, "--port", "0", "--webui-port", "0"]
        stack.enter_context(_running(log, "org.apache.spark.deploy.master.Master", *place))
        url = until(lambda: _MASTER.search(log.read_text()))[1]
        found = []
        for number in range(workers):
            own = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            arguments = ("org.apache.spark.deploy.worker.Worker", *place, *own, url)
            found.append(stack.enter_context(_running(folder / f"worker{number}.log", *arguments)))
        until(lambda: all(_JOINED in (folder / f"worker{number}.log").read_text() for number in range(workers)))
        yield Cluster(url=url, workers=tuple(found))


@contextmanager
def _running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of Spark's, whose last end is a SIGKILL to its whole process group, executors included."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HERE,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
