"""Requests as models or mappings, modes and pages."""

from __future__ import annotations

import pytest
from lance_namespace import ListTablesRequest

from lancepart.catalog import requests
from lancepart.errors import InvalidInputError


def test_a_mapping_is_read_as_its_model_and_unknown_keys_are_left_out() -> None:
    found = requests.read(ListTablesRequest, {"id": ["a"], "limit": 3, "of_tomorrow": True})

    assert (found.id, found.limit, found.page_token) == (["a"], 3, None)
    assert requests.read(ListTablesRequest, found) is found


@pytest.mark.parametrize("spelled", ["exist_ok", "ExistOk", "EXIST_OK", "existok"])
def test_modes_are_alike_in_every_spelling(spelled: str) -> None:
    assert requests.mode(spelled, ("create", "exist_ok"), what="mode") == "exist_ok"


def test_the_first_mode_is_the_default_and_an_unknown_one_is_refused_by_name() -> None:
    assert requests.mode(None, ("create", "exist_ok"), what="mode") == "create"
    with pytest.raises(InvalidInputError, match="sideways"):
        requests.mode("sideways", ("create", "exist_ok"), what="mode")


def test_pages_join_to_the_whole_whatever_their_size() -> None:
    names = [f"t{number:02}" for number in range(17)]
    for limit in (1, 5, 16, 17, 18):
        found: list[str] = []
        token: str | None = None
        while True:
            page, token = requests.page(names, token, limit)
            assert len(page) <= limit
            found += page
            if token is None:
                break
        assert found == names


def test_a_page_goes_on_after_its_token_also_if_that_name_went() -> None:
    assert requests.page(["a", "c"], "b", None)[0] == ["c"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_of_no_rows_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInputError):
        requests.page(["a"], None, limit)


def test_branches_are_refused_but_for_main() -> None:
    requests.refuse_branch(None)
    with pytest.raises(Exception, match="branch"):
        requests.refuse_branch("side")
