from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.model.schema import assign_field_ids
from lancepart.model.spec import PartitionField, PartitionSpec, evolve, unused_id
from lancepart.model.transforms import Bucket, Identity, MultiBucket, Transform, Truncate, Year

SCHEMA = assign_field_ids(
    pa.schema(
        [
            ("id", pa.int64()),
            ("event_date", pa.date32()),
            ("country", pa.string()),
            ("s", pa.struct([("x", pa.int8())])),
        ]
    )
)
APPENDIX_E = (
    '{"id":1,"fields":[{"field_id":"event_date","source_ids":[1],'
    '"transform":{"type":"identity"},"result_type":{"type":"date32"}}]}'
)


def field(name: str = "f", transform: Transform | None = None, *sources: int, **options: Any) -> PartitionField:
    given = {"result_type": pa.int32(), "source_ids": sources or (1,), **options}
    return PartitionField(field_id=name, transform=transform, **given)


EVENT_DATE = field("event_date", Identity(), result_type=pa.date32())
EVENT_YEAR = field("event_year", Year())
COUNTRY = field("country", Identity(), 2, result_type=pa.string())


def test_the_text_is_that_of_the_appendix() -> None:
    spec = PartitionSpec(id=1, fields=(EVENT_DATE,))
    assert spec.dumps() == APPENDIX_E
    assert PartitionSpec.from_json(APPENDIX_E) == spec
    assert PartitionSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    "made",
    [
        EVENT_YEAR,
        COUNTRY,
        field("b", Bucket(16), 0),
        field("m", MultiBucket(16), 0, 2),
        field("t", Truncate(3), 2, result_type=pa.string()),
        field("e", None, 0, 2, expression="murmur3_multi(col0, col1) % 3"),
        field("z", Identity(), result_type=pa.timestamp("ns", "Europe/Berlin")),
        field("d", Identity(), result_type=pa.decimal128(10, 2)),
    ],
    ids=lambda made: made.field_id,
)
def test_every_field_survives_json(made: PartitionField) -> None:
    assert PartitionField.from_json(made.to_json()) == made
    assert PartitionField.from_json(made.to_json().to_dict()) == made


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"field_id": ""}, "non-empty field_id"),
        ({"transform": None}, "'f' needs either a transform or an expression"),
        ({"expression": "col0"}, "'f' needs either a transform or an expression"),
        ({"source_ids": ()}, "'f' needs source_ids"),
        ({"source_ids": (-1,)}, "'f' needs source_ids"),
        ({"source_ids": (1, 2)}, "'f': year takes exactly one source"),
        ({"transform": None, "expression": "now()"}, "'f': expression 'now\\(\\)' may not use now"),
        ({"transform": None, "expression": "col1"}, "'f': expression 'col1' is not SQL over col0"),
    ],
)
def test_a_field_that_is_none_says_why(options: dict[str, Any], reason: str) -> None:
    good = {"field_id": "f", "source_ids": (1,), "transform": Year(), "result_type": pa.int32()}
    with pytest.raises(InvalidInputError, match=reason):
        PartitionField(**{**good, **options})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "an object with an id and fields"),
        ('{"id":1,"fields":[3]}', "a partition field is an object"),
        ('{"id":0,"fields":[]}', "counts from 1"),
        (APPENDIX_E.replace("identity", "lunar"), "'event_date' is not valid: unknown transform"),
        (APPENDIX_E.replace("date32", "day"), "'event_date' is not valid: unknown Arrow type 'day'"),
        (APPENDIX_E.replace('"source_ids":[1],', ""), "'event_date' is not valid"),
        (APPENDIX_E.replace("[1]", '["1"]'), "'event_date' is not valid"),
    ],
)
def test_a_spec_that_is_none_says_which_field_and_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        PartitionSpec.from_json(text)


def test_fields_of_one_spec_differ() -> None:
    with pytest.raises(InvalidInputError, match="'event_year' more than once"):
        PartitionSpec(id=1, fields=(EVENT_YEAR, field("event_year", Bucket(3))))
    with pytest.raises(InvalidInputError, match="'event_year' and 'again' are the same"):
        PartitionSpec(id=1, fields=(EVENT_YEAR, field("again", Year())))


def test_a_spec_fits_its_schema() -> None:
    PartitionSpec(id=1, fields=(EVENT_YEAR, COUNTRY)).check(SCHEMA)
    with pytest.raises(InvalidInputError, match="'y': year is not defined for columns of type string"):
        PartitionSpec(id=1, fields=(field("y", Year(), 2),)).check(SCHEMA)
    with pytest.raises(InvalidInputError, match="'c': identity gives string, which is not the declared int32"):
        PartitionSpec(id=1, fields=(field("c", Identity(), 2),)).check(SCHEMA)
    PartitionSpec(id=1, fields=(field("x", Identity(), 4),)).check(SCHEMA)
    listed = assign_field_ids(pa.schema([("l", pa.list_(pa.int8()))]))
    with pytest.raises(InvalidInputError, match=r"'x': source 1 .* is inside a list or a map"):
        PartitionSpec(id=1, fields=(field("x", Identity(), 1),)).check(listed)
    with pytest.raises(InvalidInputError, match=r"'e': expression .* cannot be evaluated"):
        PartitionSpec(id=1, fields=(field("e", None, 3, expression="col0 % 3"),)).check(SCHEMA)


def test_a_removed_source_is_allowed_and_gives_null() -> None:
    gone = field("gone", Year(), 77)
    PartitionSpec(id=1, fields=(gone,)).check(SCHEMA)
    assert gone.sources(SCHEMA) == (None,)
    assert gone.apply([pa.nulls(2)]).to_pylist() == [None, None]


def test_values_come_in_the_declared_type() -> None:
    wide = field("w", Identity(), 0, result_type=pa.int64())
    assert wide.apply([pa.array([5, None], pa.int32())]) == pa.array([5, None], pa.int64())
    assert field("e", None, expression="col0 % 10").apply([pa.array([17])]) == pa.array([7], pa.int32())
    assert EVENT_YEAR.apply([pa.array([date(1965, 1, 1), None])]) == pa.array([1965, None], pa.int32())
    with pytest.raises(InvalidInputError, match="'n': a value does not fit the declared int8"):
        field("n", Identity(), 0, result_type=pa.int8()).apply([pa.array([1000])])


def test_the_sql_of_a_field_is_the_derived_expression() -> None:
    assert EVENT_YEAR.sql(["d"]) == "date_part('year', d)"
    assert field("t", Truncate(3), result_type=pa.string()).sql(["c"]) == "left(c, 3)"
    assert field("t", Truncate(3), result_type=pa.int64()).sql(["c"]) == "c - (c % 3)"
    assert field("e", None, expression="col0 % 3").sql(["c"]) == "col0 % 3"


def test_the_same_field_keeps_its_id_in_a_later_spec() -> None:
    first = evolve([], [EVENT_DATE])
    second = evolve([first], [field("renamed", Year()), COUNTRY])
    third = evolve([first, second], [field("x", Identity(), result_type=pa.date32()), field("y", Year())])

    assert [spec.id for spec in (first, second, third)] == [1, 2, 3]
    assert [made.field_id for made in third.fields] == ["event_date", "renamed"]


def test_another_field_never_gets_a_used_id() -> None:
    first = evolve([], [field("b", Bucket(8), 0)])
    second = evolve([first], [field("B", Bucket(16), 0)])
    third = evolve([first, second], [field("b", Bucket(32), 0)])

    assert [spec.fields[0].field_id for spec in (first, second, third)] == ["b", "B_2", "b_3"]


def test_a_field_cannot_come_back_as_another_kind_of_value() -> None:
    first = evolve([], [field("e", None, 0, expression="col0 % 3")])
    with pytest.raises(InvalidInputError, match="stands in an older spec with result type int32"):
        evolve([first], [field("e", None, 0, expression="col0 % 3", result_type=pa.string())])


def test_unused_ids_ignore_case() -> None:
    assert unused_id("a", set()) == "a"
    assert unused_id("A", {"a"}) == "A_2"
