"""Properties: which are the caller's, and which are lancepart's own."""

from __future__ import annotations

import pytest

from lancepart.catalog import properties
from lancepart.errors import InvalidInputError
from lancepart.format.names import IDENTITY, MOVED_ROOT, NAMESPACE, OWN_ROOT
from lancepart.format.rows import Row


@pytest.mark.parametrize("key", [OWN_ROOT, MOVED_ROOT, IDENTITY, "lancepart.anything"])
def test_names_of_lanceparts_own_are_refused_from_callers(key: str) -> None:
    with pytest.raises(InvalidInputError, match=key):
        properties.refuse_own({"color": "red", key: "x"})

    assert properties.refuse_own({"color": "red"}) == {"color": "red"}


def test_properties_of_other_clients_are_shown_as_text_and_ours_are_not() -> None:
    assert properties.as_properties({"a": "x", "n": 1, "l": [1, 2], OWN_ROOT: "t"}) == {
        "a": "x",
        "n": "1",
        "l": "[1,2]",
    }
    assert properties.as_properties(None) == {}


def test_all_directories_that_a_row_names_are_found() -> None:
    row = Row(object_id="t", object_type=NAMESPACE, location="a", metadata={OWN_ROOT: "b", MOVED_ROOT: "", "x": "c"})

    assert properties.locations(row) == ("a", "b")


@pytest.mark.parametrize("given", [None, {}, {IDENTITY: ""}, {IDENTITY: 7}])
def test_what_is_no_identity_is_none(given: dict[str, object] | None) -> None:
    assert properties.identity(given) is None
