"""Plain Lance tables, as queries read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

import lance
import pyarrow as pa

from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors


def is_lance(data: object) -> TypeGuard[lance.LanceDataset]:
    """Whether data is an open Lance table."""
    return isinstance(data, lance.LanceDataset)


def opened(
    uri: str, storage_options: Mapping[str, str] | None = None, version: int | str | None = None
) -> lance.LanceDataset:
    """Open a Lance table."""
    root = Root.parse(uri, storage_options)
    with storage_errors(f"open the Lance table at {uri!r}", root):
        return lance.dataset(uri, version=version, storage_options=root.lance_options)


def schema_of(dataset: object) -> pa.Schema:
    """The columns of an open Lance table."""
    assert isinstance(dataset, lance.LanceDataset)
    return dataset.schema


def table_provider(dataset: object) -> object:
    """An open Lance table as what DataFusion's ``register_table`` takes and reads natively."""
    return lance.FFILanceTableProvider(dataset, with_row_id=False, with_row_addr=False)


def table_capsule(dataset: object, session: object) -> object:
    """The same for DataFusion's C interface."""
    made = lance.FFILanceTableProvider(dataset, with_row_id=False, with_row_addr=False)
    return made.__datafusion_table_provider__(*([] if session is None else [session]))


def read_whole(dataset: object, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of an open Lance table, or some columns of them."""
    assert isinstance(dataset, lance.LanceDataset)
    return dataset.to_table(columns=None if columns is None else list(columns))


def sample(dataset: object, columns: Sequence[str], rows: int = 1_024) -> pa.Table:
    """Some columns of about so many rows, spread evenly over an open Lance table."""
    assert isinstance(dataset, lance.LanceDataset)
    total = dataset.count_rows()
    return dataset.take(list(range(0, total, max(1, total // rows))), columns=list(columns))
