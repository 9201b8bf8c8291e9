"""The allow-list that Lance takes: its encoding is pinned here, for scans, vectors and text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancepart.storage.row_mask import allow_list

ROWS = 70_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    vectors = np.random.default_rng(5).normal(size=(ROWS, 2)).astype(np.float32)
    rows = pa.table(
        {
            "id": pa.array(range(ROWS)),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 2),
            "t": [f"word{at % 3}" for at in range(ROWS)],
        }
    )
    path: Path = tmp_path_factory.mktemp("mask") / "t"
    made = lance.write_dataset(rows, path, max_rows_per_file=68_000)
    made.create_scalar_index("t", "INVERTED")
    return made


def _addresses(chosen: str, dataset: Any) -> Any:
    held = dataset.scanner(columns=[], with_row_address=True).to_table().column("_rowaddr").to_numpy()
    return {
        "none": held[:0],
        "few": held[[3, 1, 65_535, 65_536, 69_999]],
        "many": held[::3],
        "all": held,
        "one fragment": held[held < (1 << 32)],
    }[chosen]


@pytest.mark.parametrize("chosen", ["none", "few", "many", "all", "one fragment"])
@pytest.mark.parametrize("kind", ["scan", "filter", "nearest", "text"])
def test_only_rows_of_the_list_are_found(dataset: Any, chosen: str, kind: str) -> None:
    wanted = _addresses(chosen, dataset)
    asked: dict[str, Any] = {
        "scan": {"columns": []},
        "filter": {"columns": [], "filter": "id % 2 = 0"},
        "nearest": {
            "columns": ["_distance"],
            "nearest": {"column": "v", "q": np.zeros(2, np.float32), "k": ROWS, "use_index": False},
        },
        "text": {"columns": ["_score"], "full_text_query": "word1"},
    }[kind]
    everything = dataset.scanner(with_row_address=True, **asked).to_table().column("_rowaddr").to_numpy()

    listed = dataset.scanner(with_row_address=True, row_addr_allowlist=allow_list(wanted), **asked).to_table()

    assert sorted(listed.column("_rowaddr").to_pylist()) == sorted(np.intersect1d(everything, wanted).tolist())
