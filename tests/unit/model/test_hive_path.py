"""Names of the Hive-style layout."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancepart.errors import InvalidTableStateError
from lancepart.model import hive_path
from lancepart.model.ids import check_path
from lancepart.model.values import canonical
from lancepart.storage.root import check_location
from tests.property import strategies as some

KINDS = [*some.INTEGERS, *some.FLOATS, *some.DECIMALS, *some.DATES, *some.TIMESTAMPS, *some.CLOCKS, pa.bool_()]


@given(key=st.text(min_size=1), value=st.none() | st.text() | st.just(hive_path.NULL))
def test_any_text_is_a_name_that_says_it_and_nothing_else(key: str, value: str | None) -> None:
    name = hive_path.segment(key, value)

    assert hive_path.split(name) == (key, value)
    assert check_path([name], what="table") == (name,)
    assert check_location(f"{name}.lance")
    assert not name.endswith(".lance")


@given(kind=st.sampled_from(KINDS), data=st.data())
def test_every_value_comes_back_from_its_text(kind: Any, data: Any) -> None:
    items = data.draw(st.lists(st.none() | some.values(kind), max_size=5))
    values = canonical(some.array(kind, items))

    again = hive_path.parse(hive_path.texts(values, "identity"), kind, key="k")

    assert again.type == kind
    assert str(again) == str(values)


@pytest.mark.parametrize(
    "text",
    ["2025-12-10 10:00:00", "2025-12-10T10:00:00Z", "2025-12-10T12:00:00+02:00", "2025-12-10 10:00:00.000000"],
)
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_moments_as_others_spell_them(text: str, zone: str | None) -> None:
    kind = pa.timestamp("us", zone)

    assert hive_path.parse([text], kind, key="ts").cast(pa.int64()).to_pylist() == [1765360800000000]


def test_a_day_is_its_first_moment() -> None:
    assert hive_path.parse(["1970-01-02"], pa.timestamp("s"), key="ts").cast(pa.int64()).to_pylist() == [86400]


@pytest.mark.parametrize(("text", "kind"), [("x", pa.int8()), ("300", pa.int8()), ("soon", pa.date32())])
def test_a_text_of_another_type_is_an_invalid_state(text: str, kind: Any) -> None:
    with pytest.raises(InvalidTableStateError, match="'k'"):
        hive_path.parse([text], kind, key="k")
