from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import lancepart as lp
from lancepart.errors import UnsupportedOperationError
from lancepart.spark import jar
from lancepart.spark.session_builder import CATALOG


class Builder:
    """What ``configure`` asks of a session's builder."""

    def __init__(self, **options: Any) -> None:
        self._options = {key.replace("__", "."): value for key, value in options.items()}

    def config(self, key: str, value: Any) -> Builder:
        self._options[key] = value
        return self


def test_a_builder_gets_the_jar_and_the_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)

    options = lp.spark.configure(Builder())._options

    assert options["spark.jars"] == jar()
    assert options["spark.pyspark.python"] == sys.executable
    assert options[CATALOG] == "io.lancepart.spark.PathCatalog"


def test_other_jars_and_extensions_stay() -> None:
    builder = Builder(spark__sql__extensions="org.other.Extensions", spark__jars="other.jar")

    lp.spark.configure(lp.spark.configure(builder))

    assert builder._options["spark.jars"] == f"other.jar,{jar()}"
    assert builder._options["spark.sql.extensions"] == "org.other.Extensions,io.lancepart.spark.Extensions"


def test_a_client_of_a_running_server_gets_only_what_it_may_set() -> None:
    options = lp.spark.configure(Builder(spark__remote="sc://host:15002"))._options

    assert "spark.jars" not in options
    assert options["spark.sql.sources.v2.bucketing.enabled"] == "true"


def test_a_warehouse_becomes_the_catalog_lance() -> None:
    options = lp.spark.configure(Builder(), warehouse="s3://bucket/data/")._options

    assert options["spark.sql.catalog.lance"] == "io.lancepart.spark.LanceCatalog"
    assert options["spark.sql.catalog.lance.warehouse"] == "s3://bucket/data"


def test_without_pyspark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)

    with pytest.raises(UnsupportedOperationError, match=r"pip install 'pyspark>=4\.1"):
        lp.spark.session()


def test_importing_lancepart_imports_no_pyspark() -> None:
    code = "import sys, lancepart as lp; lp.spark; sys.exit('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_workers_are_forked_from_a_daemon_that_imported_what_they_need() -> None:
    module = "spark.python.daemon.module"
    code = "import sys; from pyspark_lancepart.daemon import prepare; prepare(sys.argv[1]); sys.exit(%s)"
    needed = code % "'lancepart.spark.running' not in sys.modules"
    unneeded = code % "'lancepart' in sys.modules"

    assert lp.spark.configure(Builder())._options[module] == "pyspark_lancepart.daemon"
    assert lp.spark.configure(Builder(spark__python__daemon__module="own"))._options[module] == "own"
    for text, worker in ((needed, "pyspark.worker"), (unneeded, "pyspark.sql.worker.plan_data_source_read")):
        assert subprocess.run([sys.executable, "-W", "ignore", "-c", text, worker], check=False).returncode == 0
