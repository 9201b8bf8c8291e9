"""A writer that keeps losing asks the others to wait, and never for long."""

from __future__ import annotations

import pyarrow as pa

import lancepart as lp
from lancepart.storage import turns
from lancepart.storage.manifest import Manifest
from lancepart.storage.turns import Turn
from tests.support.catalogs import Place


def made(place: Place) -> Manifest:
    """The manifest of a partitioned table."""
    return lp.create_table(place.root, pa.schema([("id", pa.int64())]), ["id"])._manifest


def test_a_writer_that_loses_a_few_times_asks_for_its_turn_and_withdraws_it(local: Place) -> None:
    manifest = made(local)

    with Turn(manifest) as turn:
        assert turns._waiting(manifest.snapshot()) is None
        for _ in range(10):
            turn.lose(0.5)
        waiting = turns._waiting(manifest.snapshot())
        assert waiting is not None
        assert waiting[1] <= turns.LONGEST_WAIT

    assert turns._waiting(manifest.snapshot()) is None


def test_the_waiting_writer_does_not_wait_for_itself(local: Place) -> None:
    manifest = made(local)

    with Turn(manifest) as turn:
        for _ in range(10):
            turn.lose(0.5)
        snapshot = manifest.snapshot()
        assert turn.awaited(snapshot) is snapshot
