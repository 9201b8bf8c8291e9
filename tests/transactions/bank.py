"""What the processes of the torture test do: move money, add it up, compact."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from lancepart.errors import CommitConflictError
from tests.support.catalogs import Place
from tests.transactions.tables import Row, data, opened

ACCOUNTS, BANKS, EACH = 24, "ABCD", 100
RECEIPT = 1_000_000


@dataclass(frozen=True)
class Tally:
    """How often a process did what it does, and lost."""

    done: int
    lost: int = 0


def accounts() -> list[Row]:
    return [(number, BANKS[number % len(BANKS)], EACH) for number in range(ACCOUNTS)]


def write(place: Place, who: int, seconds: float, least: int) -> Tally:
    """Move money between two accounts, sometimes an account to another bank, and leave a receipt, all in one commit."""
    table, draw = opened(place), random.Random(who)
    done = lost = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or done < least:
        giver, taker = draw.sample(range(ACCOUNTS), 2)
        amount = draw.randint(1, 9)
        try:
            with table.transaction() as tx:
                tx.update({"x": f"x - {amount}"}, f"id = {giver}")
                if draw.random() < 0.3:
                    (row,) = tx.scan(f"id = {taker}").to_arrow().to_pylist()
                    tx.upsert(data([(taker, draw.choice(BANKS), row["x"] + amount)]), ["id"])
                else:
                    tx.update({"x": f"x + {amount}"}, f"id = {taker}")
                tx.append(data([(RECEIPT * (who + 1) + done, f"receipts of {who % 3}", 0)]))
            done += 1
        except CommitConflictError:
            lost += 1
    return Tally(done, lost)


def read(place: Place, who: int, seconds: float, least: int) -> Tally:
    """Add up all money, now and at some snapshot that a commit made; it is always the same."""
    table, draw = opened(place), random.Random(who)
    done = 0
    seen = [table.version]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or done < least:
        seen.append(table.version)
        source = table if done % 3 else opened(place, draw.choice(seen))
        found = source.scan(columns=["id", "x"]).to_arrow()
        own = sorted(number for number in found["id"].to_pylist() if number < ACCOUNTS)
        assert own == list(range(ACCOUNTS)), own
        assert sum(found["x"].to_pylist()) == ACCOUNTS * EACH
        done += 1
    return Tally(done)


def compact(place: Place, who: int, seconds: float, least: int) -> Tally:
    """Put fragments together beside the others."""
    table = opened(place)
    done = lost = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or done + lost < least:
        report = table.maintenance.compact(progress=False)
        done, lost = done + report.changed, lost + len(report.skipped)
    return Tally(done, lost)
