"""Searches, unions and look-ups in several processes, beside writers, index building, compaction and expiry."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

import lancepart as lp
from tests.support.catalogs import Place
from tests.support.dying import forking
from tests.transactions import generations


@pytest.mark.slow
def test_each_search_beside_processes_that_write_and_keep_up_is_of_one_snapshot(local: Place) -> None:
    made = lp.create_table(local.root, generations.SCHEMA, ["k"])
    made.append(generations.rows(0, generations.FIRST, 0))
    jobs = [(generations.write, 0), (generations.keep_up, 1), (generations.keep_up, 2)]
    jobs += [(generations.read, 0), (generations.read, 1)]

    with ProcessPoolExecutor(len(jobs), mp_context=forking()) as pool:
        running = [pool.submit(act, local, number) for act, number in jobs]
        tallies = [future.result() for future in running]

    assert tallies[0] == generations.LAST
    assert min(tallies) > 0
    generations.check_published(local)
