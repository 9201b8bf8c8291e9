"""Fragments that are written and not yet committed, as text and back."""

from __future__ import annotations

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from lancepart.storage.fragment_json import fragments_from_json, fragments_to_json, version_with
from lancepart.storage.root import Root
from tests.support.catalogs import Place

ROWS = pa.table({"id": [1, 2, 3]})


def test_fragments_come_back_from_their_text(local: Place) -> None:
    root = Root.parse(local.root)
    written = write_fragments(ROWS, root.uri_of("t"))

    again = fragments_from_json(fragments_to_json(written))

    assert [each.to_json() for each in again] == [each.to_json() for each in written]


def test_a_version_is_recognised_by_the_files_of_its_fragments(local: Place) -> None:
    root = Root.parse(local.root)
    lance.write_dataset(ROWS, root.uri_of("t"))
    first = [each.metadata for each in lance.dataset(root.uri_of("t")).get_fragments()]
    lance.write_dataset(ROWS, root.uri_of("t"), mode="append")
    both = [each.metadata for each in lance.dataset(root.uri_of("t")).get_fragments()]

    assert version_with(root, "t", both) == 2
    assert version_with(root, "t", first) is None
