"""A standalone cluster of real processes, with tables on an object store, of which some are killed with SIGKILL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark import programs
from tests.spark.clustered import ROWS
from tests.spark.standalone import cluster
from tests.support import s3


@pytest.mark.slow
def test_a_cluster_of_processes_loses_and_doubles_no_row(s3_server: s3.Server, tmp_path: Path) -> None:
    place = s3_server.place()
    with cluster(tmp_path) as found:
        (tmp_path / "marks").mkdir()
        arguments = found.url, place.root, str(tmp_path / "marks"), str(found.workers[1].pid)
        program = programs.start("clustered", *arguments, given=json.dumps(dict(place.storage_options)))
        try:
            output, _ = program.communicate(timeout=programs.PATIENCE)
        finally:
            programs.end_group(program)

    assert program.returncode == 0, output[-6000:]
    seen = json.loads(output.strip().splitlines()[-1])
    assert seen["written"] == [ROWS // 20, ROWS // 2, False]
    assert seen["changed"] == [[1, 1], [2, 7], [4, 0], [5, 8], [6, 9]]
    assert seen["executor"] == seen["writer"] == [ROWS, ROWS, 1]
    assert seen["reader"] == ROWS
    assert seen["marks"] == ["executor", "reader", "writer"]
    assert seen["streamed"] == [ROWS + 1, ROWS + 1]
    assert seen["after"] == ROWS // 2 + 2
    assert "testing-secret" not in output
    for mark in ("reader", "writer"):
        assert int((tmp_path / "marks" / mark).read_text()) >= 1
