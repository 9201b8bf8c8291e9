"""JSON arrays as JSON lines, wherever the file is cut into pieces."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancepart.errors import InvalidInputError
from lancepart.storage.json_arrays import ArrayLines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Pieces(io.BytesIO):
    """Bytes that come few at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self.size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.size)


def _lines(data: bytes, size: int = 1 << 20) -> list[object]:
    found = io.BufferedReader(ArrayLines(Pieces(data, size), "a.json")).read().decode()
    return [json.loads(line) for line in found.split("\n") if line.strip()]


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=4)), st.sampled_from([None, 1]), st.integers(1, 40))
def test_every_array_gives_its_elements(rows: list[object], indent: int | None, size: int) -> None:
    for ascii_only in (True, False):
        data = json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        assert _lines(data, size) == rows


def test_space_and_a_mark_of_the_encoding_around_an_array_are_left_out() -> None:
    assert _lines(b'\xef\xbb\xbf \r\n[ {"a": 1} ,\r\n{"a": "\\\\"}]\r\n\t ') == [{"a": 1}, {"a": "\\"}]
    assert _lines(b"[]") == []


@pytest.mark.parametrize("data", [b'[{"a": 1}', b'[{"a": 1},', b'[{"a": "]', b'[{"a": "\\', b"", b" "])
def test_an_array_that_is_cut_short_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"a\.json.*does not end"):
        _lines(data, 3)


@pytest.mark.parametrize("data", [b"[] x", b"[]]", b"[][]", b'[{"a": 1}] {"a": 2}', b'[{"a": 1}],'])
def test_what_stands_after_an_array_is_refused(data: bytes) -> None:
    for size in (1, 3, 100):
        with pytest.raises(InvalidInputError, match=r"a\.json.*something after its end"):
            _lines(data, size)
