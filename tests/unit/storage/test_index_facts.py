"""What is recorded of an index: enough for another dataset to use it, and checked when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.storage import index_facts
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError


def built(path: Path) -> tuple[lance.LanceDataset, dict[str, Any]]:
    dataset = lance.write_dataset(pa.table({"a": range(100)}), path / "table.lance")
    made = dataset.create_index_uncommitted("a", "BTREE", name="by_a", replace=True, fragment_ids=[0])
    return dataset, index_facts.of(made)


def test_an_index_that_was_built_is_used_by_what_is_recorded_of_it(tmp_path: Path) -> None:
    dataset, facts = built(tmp_path)
    entry = index_facts.entry(dataset, "mine", 0, index_facts.checked(facts), [0], None)

    found = index_facts.with_entries(Root(str(tmp_path)), dataset, [entry], [])

    assert "@mine(BTree)" in found.scanner(filter="a = 7").explain_plan()
    assert found.to_table(filter="a = 7")["a"].to_pylist() == [7]
    with pytest.raises(ConflictError):
        index_facts.with_entries(Root(str(tmp_path)), lance.dataset(dataset.uri, version=1), [entry], [])


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "../../elsewhere"},
        {"uuid": 7},
        {"index_version": "1"},
        {"details": ["url", "no base 64!"]},
        {"details": None},
        {"files": [["../../secret", 1]]},
        {"files": [["page_data.lance", "large"]]},
    ],
)
def test_what_was_recorded_wrongly_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    _, facts = built(tmp_path)
    with pytest.raises((ValueError, TypeError, KeyError, InvalidInputError)):
        index_facts.checked({**facts, **change})
