"""Operations run where they are called, or on a thread of ours when pylance calls."""

from __future__ import annotations

import threading

import pytest

from lancepart.catalog.threads import run


def test_an_operation_of_the_caller_runs_on_its_own_thread() -> None:
    assert run(threading.get_ident) == threading.get_ident()


def test_arguments_results_and_errors_pass_through() -> None:
    assert run(lambda a, *, b: (a, b), 1, b=2) == (1, 2)
    with pytest.raises(ValueError, match="bad"):
        run(int, "bad")
