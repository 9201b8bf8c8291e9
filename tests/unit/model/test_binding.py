from __future__ import annotations

import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.model.binding import bound, renamed
from lancepart.model.parse import parse

SCHEMA = pa.schema([("n", pa.int32()), ("name", pa.string()), ("ok", pa.bool_()), ("ts", pa.timestamp("us"))])
SQL = "n > 3 AND (name LIKE 'a%' OR year(ts) = 2020 OR n % 2 = 1) AND ok AND name IN ('x', 'y') AND NOT (ts IS NULL)"


def test_columns_get_other_names_everywhere() -> None:
    names = {name: f"{name} {{0}}" for name in SCHEMA.names}
    other = pa.schema([(names[field.name], field.type) for field in SCHEMA])

    found = renamed(parse(SQL, SCHEMA), names)

    assert found.columns() == set(other.names)
    assert found == parse(parse(SQL, SCHEMA).to_sql(names), other)


def test_a_filter_stays_as_it_is_while_its_columns_do() -> None:
    predicate = parse(SQL, SCHEMA)

    assert bound(predicate, SCHEMA.append(pa.field("more", pa.int8()))) is predicate


def test_a_filter_is_read_again_when_its_columns_have_changed() -> None:
    wider = SCHEMA.set(0, pa.field("n", pa.int64()))

    assert bound(parse("n > 3", SCHEMA), wider) == parse("n > 3", wider)
    with pytest.raises(InvalidInputError, match="n"):
        bound(parse("n > 3", SCHEMA), SCHEMA.remove(0))
