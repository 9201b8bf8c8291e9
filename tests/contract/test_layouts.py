"""The contract, layout by layout, on the local disk and in part on the S3 protocol."""

from __future__ import annotations

from typing import Any

import pytest

import lancepart as lp
from tests.contract.changes import Changes
from tests.contract.reads import Reads
from tests.contract.table import START, Contract, dicts
from tests.contract.writes import Writes
from tests.support.catalogs import Place


class Strong:
    layout, snapshots, atomic, current, upkeep = "strong", True, True, True, True


class Weak:
    layout, current = "weak", True


class Draft:
    layout, snapshots, atomic = "draft", True, True


class Hive:
    layout = "hive"


class Some(Contract):
    """One way through most verbs, for stores where each costs."""

    def test_a_table_is_written_changed_and_read(self, table: lp.PartitionedTable) -> None:
        table.upsert([{"id": 1, "n": 11}, {"id": 6, "country": "US"}], on=["id"])
        table.update({"country": "'JP'"}, "id = 3")
        table.delete("id = 2")
        table.overwrite(dicts([(9, None, 9, None)]))
        self.check(table, [(1, "US", 11, "a"), (6, "US", None, None), (3, "JP", 30, "c"), START[4], (9, None, 9, None)])
        assert table.join(table, on=["country"]).to_arrow().num_rows == 6


class OnS3:
    @pytest.fixture
    def store(self, s3_server: Any) -> Place:
        return s3_server.place()


class TestReadsStrong(Strong, Reads):
    pass


@pytest.mark.slow
class TestReadsWeak(Weak, Reads):
    pass


@pytest.mark.slow
class TestReadsDraft(Draft, Reads):
    pass


class TestReadsHive(Hive, Reads):
    pass


class TestWritesStrong(Strong, Writes):
    pass


@pytest.mark.slow
class TestWritesWeak(Weak, Writes):
    pass


@pytest.mark.slow
class TestWritesDraft(Draft, Writes):
    pass


class TestWritesHive(Hive, Writes):
    pass


class TestChangesStrong(Strong, Changes):
    pass


@pytest.mark.slow
class TestChangesWeak(Weak, Changes):
    pass


@pytest.mark.slow
class TestChangesDraft(Draft, Changes):
    pass


class TestChangesHive(Hive, Changes):
    pass


class TestS3Strong(OnS3, Strong, Some):
    pass


@pytest.mark.slow
class TestS3Weak(OnS3, Weak, Some):
    pass


@pytest.mark.slow
class TestS3Draft(OnS3, Draft, Some):
    pass


class TestS3Hive(OnS3, Hive, Some):
    pass
