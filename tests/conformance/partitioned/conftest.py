"""The example of document 002: as it stands there, and as lancepart writes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lancepart as lp
from tests.conformance.partitioned import appendix
from tests.support.catalogs import Place


@pytest.fixture
def by_hand(local: Place) -> lp.PartitionedTable:
    """The table of Appendix C, written with plain pylance."""
    versions = appendix.write_leaves(local.root)
    appendix.write_manifest(local.root, appendix.appendix_c(versions[appendix.V1_LEAF]))
    return lp.open_table(local.root)


@pytest.fixture
def ours(local: Place) -> lp.PartitionedTable:
    """The same table, written by lancepart."""
    return appendix.written_by_us(local)


@pytest.fixture
def properties(local: Place) -> Callable[..., Place]:
    """An empty table by hand, with some of Appendix A's properties changed or (None) left out."""

    def write(**changed: object) -> Place:
        metadata = {key: value for key, value in {**appendix.METADATA, **changed}.items() if value is not None}
        appendix.write_manifest(local.root, [], metadata)
        return local

    return write
