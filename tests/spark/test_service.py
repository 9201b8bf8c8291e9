"""The planning service in a Spark session: one process a session, warm, restarted, cancelled, and done without."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancepart as lp
from tests.spark.warehouse import Sql
from tests.support.waiting import until

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32())])


@pytest.fixture
def table(root: str) -> lp.PartitionedTable:
    made = lp.create_table(root, SCHEMA, ["k"])
    made.append([{"id": n, "k": n % 2} for n in range(6)])
    return made


def services(spark: Any) -> set[int]:
    """The planning services that the driver has started."""
    driver, found = spark._jvm.ProcessHandle.current().pid(), set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == driver and b"lancepart.spark.service" in (path / "cmdline").read_bytes():
                found.add(int(path.name))
    return found


def thread_in(spark: Any, *frames: str) -> Any:
    """A thread of the driver that is in these methods."""
    for thread in list(spark._jvm.Thread.getAllStackTraces().keySet()):
        stack = " ".join(str(each) for each in list(thread.getStackTrace()))
        if all(each in stack for each in frames):
            return thread
    return None


def waiting(process: int) -> bool:
    """Whether bytes wait in a pipe of a process."""
    for path in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith("pipe:"):
                with path.open("rb", buffering=0) as pipe:
                    (size,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
                    if size:
                        return True
    return False


@contextlib.contextmanager
def running(action: Callable[[], Any]) -> Iterator[list[BaseException | None]]:
    """An action in a thread; how it ended is there afterwards."""
    ended: list[BaseException | None] = []

    def run() -> None:
        try:
            action()
            ended.append(None)
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield ended
    thread.join(60)
    assert ended


def test_each_session_has_one_service_and_keeps_it(spark: Any, table: lp.PartitionedTable) -> None:
    assert spark.read.format("lancepart").load(table.root).count() == 6
    before = services(spark)
    assert spark.read.format("lancepart").load(table.root).count() == 6
    assert services(spark) == before

    other = spark.newSession()
    assert other.read.format("lancepart").load(table.root).where("k = 1").count() == 3
    assert len(services(spark) - before) == 1


@pytest.mark.slow
def test_clones_of_a_session_use_its_service(spark: Any, table: lp.PartitionedTable) -> None:
    before = services(spark)
    other = spark.newSession()
    frames = [other.read.format("lancepart").load(table.root).where(f"id <> {n}") for n in range(3)]
    own = services(spark) - before
    for frame in frames:
        assert frame.cache().count() == 5
    cloned = SparkSession(spark.sparkContext, other._jsparkSession.cloneSession())
    assert cloned.read.format("lancepart").load(table.root).count() == 6
    again = SparkSession(spark.sparkContext, cloned._jsparkSession.cloneSession())
    assert again.read.format("lancepart").load(table.root).count() == 6

    assert len(own) == 1
    assert services(spark) - before == own
    for frame in frames:
        frame.unpersist()


@pytest.mark.slow
def test_services_that_wait_are_no_more_than_a_setting_allows(spark: Any, table: lp.PartitionedTable) -> None:
    most = int(spark.sparkContext.getConf().get("spark.lancepart.service.maxIdle"))
    sessions = [spark.newSession() for _ in range(most + 3)]
    for session in [*sessions, sessions[0]]:
        assert session.read.format("lancepart").load(table.root).count() == 6
        until(lambda: len(services(spark)) <= most + 1)


@pytest.mark.slow
def test_a_service_that_died_is_started_again_for_a_query(spark: Any, table: lp.PartitionedTable) -> None:
    before = services(spark)
    other = spark.newSession()
    assert other.read.format("lancepart").load(table.root).count() == 6
    (first,) = services(spark) - before
    os.kill(first, signal.SIGKILL)
    until(lambda: first not in services(spark))

    assert other.read.format("lancepart").load(table.root).count() == 6
    assert len(services(spark) - before) == 1


Compacting = tuple[Any, Callable[[], Any], int]


@pytest.fixture
def compacting(spark: Any, sql: Sql) -> Iterator[Compacting]:
    """A session, a CALL in it of a procedure that is known already (one request is sent), and its planning service."""
    before = services(spark)
    other = spark.newSession()
    for key in ("", ".warehouse"):
        other.conf.set(f"spark.sql.catalog.own{key}", sql.root if key else "io.lancepart.spark.LanceCatalog")
    other.sql("CREATE TABLE own.t (id BIGINT, k INT) PARTITIONED BY (k)")
    other.sql("INSERT INTO own.t VALUES (1, 1), (2, 2)")
    call = "CALL own.system.compact(table => 't')"
    other.sql(call)
    (process,) = services(spark) - before
    yield other, lambda: other.sql(call), process
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGCONT)


@pytest.mark.slow
def test_a_statement_whose_outcome_is_not_known_says_so(compacting: Compacting) -> None:
    _, call, process = compacting
    os.kill(process, signal.SIGSTOP)
    with running(call) as ended:
        until(lambda: waiting(process))
        os.kill(process, signal.SIGKILL)
    (error,) = ended

    assert "it is not known whether that took effect" in str(error)
    call()


@pytest.mark.slow
def test_an_interrupted_statement_cancels_its_request(spark: Any, compacting: Compacting) -> None:
    _, call, process = compacting

    os.kill(process, signal.SIGSTOP)
    with running(call) as ended:
        until(lambda: thread_in(spark, "ServiceProcess.request")).interrupt()
        until(lambda: thread_in(spark, "ServiceProcess.cancelled", "CompletableFuture"))
        os.kill(process, signal.SIGCONT)
    (error,) = ended

    assert "'call' was cancelled" in str(error)
    call()


def test_statements_are_cancelled_by_job_group_by_tag_and_by_an_interrupt_of_the_driver(
    spark: Any, compacting: Compacting
) -> None:
    _, call, process = compacting

    def interrupt() -> bool:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return True

    def cancelled_by(mark: Callable[[], Any], cancel: Callable[[], Any]) -> str:
        os.kill(process, signal.SIGSTOP)
        with running(lambda: (mark(), call())) as ended:
            until(lambda: waiting(process))
            assert lp.spark.cancel(spark, group="other") == lp.spark.cancel(spark, tag="b") == 0
            assert cancel()
            until(lambda: thread_in(spark, "ServiceProcess.cancelled", "CompletableFuture"))
            os.kill(process, signal.SIGCONT)
        return str(ended[0])

    context = spark.sparkContext
    errors = [
        cancelled_by(lambda: context.setJobGroup("own", ""), lambda: lp.spark.cancel(spark, group="own") == 1),
        cancelled_by(lambda: context.addJobTag("upkeep"), lambda: lp.spark.cancel(spark, tag="upkeep") == 1),
        cancelled_by(lambda: None, interrupt),
    ]

    assert [each for each in errors if "'call' was cancelled" not in each] == []
    call()


@pytest.mark.slow
def test_without_a_service_the_same_messages_go_through_sparks_workers(
    spark: Any, table: lp.PartitionedTable, sql: Sql
) -> None:
    before = services(spark)
    other = spark.newSession()
    other.conf.set("spark.lancepart.service", "false")
    for key in ("", ".warehouse"):
        other.conf.set(f"spark.sql.catalog.own{key}", sql.root if key else "io.lancepart.spark.LanceCatalog")

    assert other.read.format("lancepart").load(table.root).where("k = 1").count() == 3
    other.createDataFrame([(9, 1)], "id long, k int").write.format("lancepart").mode("append").save(table.root)
    assert table.scan().count() == 7
    other.sql("CREATE TABLE own.t (id BIGINT, k INT) PARTITIONED BY (k)")
    other.sql("INSERT INTO own.t VALUES (1, 1), (2, 2)")
    other.sql("UPDATE own.t SET k = 3 WHERE id * 2 = 4")
    other.sql("CALL own.system.compact(table => 't')")
    assert [tuple(row) for row in other.sql("SELECT * FROM own.t ORDER BY id").collect()] == [(1, 1), (2, 3)]
    with pytest.raises(Exception, match="no partitioned table"):
        other.read.format("lancepart").load(table.root + "/none")
    assert services(spark) == before


ROWS = """
import sys
import lancepart as lp

options = "-Dlancepart.columnar.runner=" + sys.argv[2]
conf = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": options}
spark = lp.spark.session("local[1]", **conf)
found = spark.read.format("lancepart").load(sys.argv[1]).where("id > 2")
plan = found._jdf.queryExecution().executedPlan().toString()
print(sorted(tuple(row) for row in found.collect()), "ColumnarToRow" in plan)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["no.such.Runner", "java.lang.String"])
def test_a_spark_with_other_insides_reads_rows(table: lp.PartitionedTable, runner: str) -> None:
    done = subprocess.run([sys.executable, "-c", ROWS, table.root, runner], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[(3, 1), (4, 0), (5, 1)] False"
