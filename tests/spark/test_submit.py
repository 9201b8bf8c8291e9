"""``spark-submit``, which starts the JVM before any line of Python runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import submitted

pytestmark = pytest.mark.slow


def test_spark_submit_and_a_session_that_runs_already_get_the_jar(tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[1]", "--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"),
        *("--conf", "spark.sql.extensions=org.example.Absent"),
        *(str(submitted.__file__), str(tmp_path)),
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "master local[1]"
