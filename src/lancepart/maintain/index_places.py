"""Which leaves declared indices are for, also after columns were renamed or dropped."""

from __future__ import annotations

import pyarrow as pa

from lancepart.commit import verbs
from lancepart.commit.transaction import Transaction
from lancepart.errors import InvalidInputError
from lancepart.layout.declared_indices import Index, declared
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.binding import renamed
from lancepart.model.predicate import Predicate


def living(opening: Transaction) -> tuple[Index, ...]:
    """The declared indices whose column is still there: others stay as they are until they are dropped."""
    return tuple(index for index in declared(opening.snapshot) if index.column in opening.metadata.columns)


def leaves_of(opening: Transaction, index: Index) -> tuple[Leaf, ...]:
    """The leaves that an index is declared for; none where its filter names a column that was dropped since."""
    if index.where is None:
        return opening.plan(None).leaves
    predicate = _filter(opening.metadata, index.where)
    return () if predicate is None else opening.plan(predicate).leaves


def _filter(metadata: TableMetadata, where: str) -> Predicate | None:
    """The filter of an index, in which columns may have the names that they had when it was written down."""
    now = {
        name: metadata.columns[number].name
        for number, names in metadata.past
        for name in names
        if number in metadata.columns and name not in metadata.schema.names
    }
    plain = metadata.plain_schema
    schema = pa.schema([*plain, *(plain.field(name).with_name(before) for before, name in now.items())])
    try:
        return renamed(verbs.written_filter(where, schema), now)
    except InvalidInputError:
        return None
