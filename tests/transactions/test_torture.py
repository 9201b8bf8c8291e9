"""Real processes that move money between partitions, others that add it up, and one that compacts."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.support.catalogs import Place
from tests.support.dying import forking
from tests.support.processes import TORTURE
from tests.transactions import bank
from tests.transactions.tables import assert_whole, content, make, opened

pytestmark = pytest.mark.torture

WRITERS, READERS, SECONDS = (8, 4, 60.0) if TORTURE else (2, 1, 2.0)
LEAST = 3


def torture(place: Place, seconds: float) -> str:
    make(place, bank.accounts())
    jobs = [(bank.write, n) for n in range(WRITERS)] + [(bank.read, n) for n in range(READERS)] + [(bank.compact, 0)]
    with ProcessPoolExecutor(len(jobs), mp_context=forking()) as pool:
        running = [pool.submit(act, place, who, seconds, LEAST) for act, who in jobs]
        tallies = [future.result() for future in running]
    table = opened(place)
    transfers = sum(tally.done for tally in tallies[:WRITERS])
    rows = content(table)
    assert table.scan().count() == bank.ACCOUNTS + transfers
    assert max(rows.values()) == 1
    assert sum(x for _, _, x in rows) == bank.ACCOUNTS * bank.EACH
    assert sorted(number for number, _, _ in rows if number < bank.ACCOUNTS) == list(range(bank.ACCOUNTS))
    receipts = {number for number, _, _ in rows if number >= bank.RECEIPT}
    assert receipts == {bank.RECEIPT * (n + 1) + i for n in range(WRITERS) for i in range(tallies[n].done)}
    assert_whole(table)
    return f"{tallies}"


@pytest.mark.parametrize("store", ["local", "s3"] if TORTURE else ["local"])
def test_money_is_neither_made_nor_lost_while_processes_move_it_between_partitions(
    request: pytest.FixtureRequest, store: str
) -> None:
    place = request.getfixturevalue("local") if store == "local" else request.getfixturevalue("s3_server").place()
    print(torture(place, SECONDS))
