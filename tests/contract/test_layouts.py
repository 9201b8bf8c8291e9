"""The contract, layout by layout, on the local disk and in part on the S3 protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.reads import Reads
from tests.support.catalogs import Place


class Strong:
    layout, snapshots, atomic, current, upkeep = "strong", True, True, True, True


class Weak:
    layout, current = "weak", True


class Draft:
    layout, snapshots, atomic = "draft", True, True


class Hive:
    layout = "hive"


class OnS3:
    @pytest.fixture
    def store(self, s3_server: Any) -> Place:
        return s3_server.place()


class TestReadsStrong(Strong, Reads):
    pass


class TestReadsWeak(Weak, Reads):
    pass


class TestReadsDraft(Draft, Reads):
    pass


class TestReadsHive(Hive, Reads):
    pass
