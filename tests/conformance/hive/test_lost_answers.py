"""A Hive-style table on an object store whose answers get lost: rows that were written once stand there once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import lancepart as lp
from tests.support import proxy, s3
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


@pytest.fixture(scope="module")
def losing(s3_server: s3.Server) -> Iterator[proxy.Proxy]:
    with proxy.losing(s3_server.endpoint) as running:
        yield running


def write(place: Place, endpoint: str, country: str) -> None:
    options = {**place.storage_options, "aws_endpoint": endpoint}
    lp.open_table(place.root, storage_options=options).append([{"id": 2, "country": country}])


@pytest.mark.slow
@pytest.mark.parametrize("country", ["US", "FR"])
def test_rows_of_an_answer_that_was_lost_are_not_doubled(
    s3_server: s3.Server, losing: proxy.Proxy, country: str
) -> None:
    """US has a leaf already, FR gets its first."""
    number, writes = 0, 1
    while number < writes:
        place = s3_server.place()
        made = lp.create_table(place.root, SCHEMA, ["country"], layout="hive", storage_options=place.storage_options)
        made.append([{"id": 1, "country": "US"}])
        losing.lose(number)
        write(place, losing.endpoint, country)
        writes = losing.writes
        found = lp.open_table(place.root, storage_options=place.storage_options).scan().to_arrow()
        assert sorted(found.column("id").to_pylist()) == [1, 2], number
        number += 1
