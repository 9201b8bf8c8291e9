"""Ctrl-C waits for a step that must come to its end."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from lancepart.storage.uninterrupted import uninterrupted


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Take interrupts as a terminal's process does; one that was started in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_after_the_step_with_its_outcome() -> None:
    done = []

    def step() -> str:
        signal.raise_signal(signal.SIGINT)
        done.append(True)
        return "published"

    with pytest.raises(KeyboardInterrupt, match="published"):
        uninterrupted(step, "commit", lambda result: result)

    assert done == [True]


def test_without_an_interrupt_the_result_comes_back_and_the_handler_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)

    assert uninterrupted(lambda: 7, "commit", str) == 7
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_step_is_not_hidden() -> None:
    def step() -> None:
        raise ValueError("disk")

    with pytest.raises(ValueError, match="disk"):
        uninterrupted(step, "commit", str)
