"""What the reports of tasks say of sizes."""

from __future__ import annotations

import numpy as np

from lancepart.commit.write_job import WriteResult
from lancepart.spark.results import dumps
from lancepart.spark.written import Written, measured
from lancepart.storage.leaf_data import Fragments


def test_reports_are_summed_up_and_others_count_nothing() -> None:
    gone = {7: np.array([1, 2, 3], np.uint64)}
    reports = [dumps(WriteResult(gone=gone)), dumps((None, gone)), dumps(Fragments(location="x", items=()))]
    assert measured([*reports, b"_lancepart/aside"]) == Written(removed=6)
    assert measured([]) == Written()
