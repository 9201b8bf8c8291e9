"""Partition functions in whole queries: ``year(e.ts)``, ``bucket(16, id)``, each bound to its arguments' types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from datafusion import SessionContext

from lancepart.errors import InvalidInputError, reraise_interrupt
from lancepart.model.functions import expression_type
from lancepart.model.sql_text import tokens
from lancepart.model.terms import bind_terms


def bind_query(context: SessionContext, sql: str, schemas: Mapping[str, pa.Schema]) -> str:
    """The same query with each partition function renamed to one that is registered for its arguments."""
    merged: dict[str, pa.Field] = {}
    for schema in schemas.values():
        for field in schema:
            merged.setdefault(field.name, field)
    whole = pa.schema(list(merged.values()))

    def type_of(argument: str) -> pa.DataType:
        for text in (argument, _unqualified(argument, whole)):
            try:
                return expression_type(context, text, whole)
            except Exception as error:
                reraise_interrupt(error)
        raise InvalidInputError(
            f"the type of {argument!r} is not known where a partition function takes it: give a column, or cast it"
        )

    return bind_terms(context, sql, whole, type_of=type_of)


def _unqualified(argument: str, schema: pa.Schema) -> str:
    """An argument without the names of tables before its columns.

    >>> _unqualified("e.ts + x.n", pa.schema([("ts", pa.int64()), ("n", pa.int64())]))
    'ts + n'
    """
    found = tokens(argument)
    pieces, position = [], 0
    for at, token in enumerate(found[:-2]):
        qualifies = token.name is not None and found[at + 1].text == "." and token.name not in schema.names
        if qualifies:
            pieces.append(argument[position : token.start])
            position = found[at + 2].start
    return "".join([*pieces, argument[position:]])
