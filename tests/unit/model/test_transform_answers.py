"""Every transform answers all that pruning, joins, SQL and Spark ask of one, and its answers agree with its values."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import date, datetime

import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.model.domain import Domain
from lancepart.model.ordering import ordering
from lancepart.model.transforms import TRANSFORMS, Transform, transform_from_json
from lancepart.model.transforms.hive import FloorBucket, FloorTruncate, Hash, Unknown

DATES = pa.array([date(1969, 12, 31), date(2024, 2, 29), date(2024, 3, 1), None])
SAMPLES = {
    "identity": pa.array([3, 5, 5, None]),
    "year": DATES,
    "month": DATES,
    "day": DATES,
    "hour": pa.array([datetime(1969, 12, 31, 23), datetime(2024, 2, 29, 1), None]),
    "bucket": pa.array([34, 5, None]),
    "multi_bucket": pa.array([34, 5, None]),
    "truncate": pa.array([-17, 5, 17, None]),
    "hash": pa.array(["a", "b", None]),
}
"""A column for each kind of transform: a new kind needs one here."""

EVERY: list[Transform] = [kind(12) if kind.takes_number() else kind() for kind in TRANSFORMS.values()]  # type: ignore[call-arg]
EVERY += [FloorBucket(12), FloorTruncate(12), Hash()]
every = pytest.mark.parametrize("transform", EVERY, ids=repr)


def test_all_kinds_are_asked() -> None:
    assert {type(each) for each in EVERY} | {Unknown} == set(concrete(Transform))


def concrete(kind: type[Transform]) -> Iterator[type[Transform]]:
    """The classes that a partition field can have; ``slots=True`` leaves a twin of each class behind."""
    for each in kind.__subclasses__():
        if "__dataclass_fields__" in vars(each) and getattr(inspect.getmodule(each), each.__name__) is each:
            yield each
        yield from concrete(each)


@every
def test_its_image_of_a_range_holds_the_values_of_the_range(transform: Transform) -> None:
    column = SAMPLES[transform.name]
    values = transform.apply([column])
    source, target = ordering(column.type), ordering(transform.result_type([column.type]))
    assert source is not None
    assert target is not None
    keys = [source.key(value) for value in column if value.is_valid]
    span = Domain.spanning(source, [(min(keys), source.next(max(keys)))])

    found = transform.image(span, target) if transform.maps_ranges else transform.any_image([span], target)

    assert found is not None or not transform.maps_ranges
    assert found is None or all(found.contains(target.key(value)) for value in values if value.is_valid)


@every
def test_its_preimage_of_a_value_holds_the_source(transform: Transform) -> None:
    column = SAMPLES[transform.name]
    source, target = ordering(column.type), ordering(transform.result_type([column.type]))
    assert source is not None
    assert target is not None
    for before, after in zip(column, transform.apply([column]), strict=True):
        found = None if not after.is_valid else transform.preimage(Domain.of(target, [target.key(after)]), source)
        assert found is None or found.contains(source.key(before))


@every
def test_it_is_coarser_than_itself_and_its_values_reduce_to_their_own(transform: Transform) -> None:
    column = SAMPLES[transform.name]
    values = transform.apply([column])

    assert transform.coarser(transform, column.type) == transform
    reduced = transform.reduced(values, transform)
    assert reduced is not None
    assert reduced.to_pylist() == values.to_pylist()
    assert transform.agrees(column.type, column.type)


@pytest.mark.parametrize(("one", "other"), [(12, 18), (18, 12), (5, 10)])
@pytest.mark.parametrize("name", [name for name, kind in TRANSFORMS.items() if kind.takes_number()])
def test_what_is_coarser_than_two_follows_from_each(name: str, one: int, other: int) -> None:
    column = pa.array([*range(-50, 200, 7), None])
    finer = [transform_from_json({"type": name, next(iter(parameters(name))): each}) for each in (one, other)]

    common = finer[0].coarser(finer[1], column.type)

    assert common is not None
    for each in finer:
        reduced = each.reduced(each.apply([column]), common)
        assert reduced is not None
        assert reduced.to_pylist() == common.apply([column]).to_pylist()


def parameters(name: str) -> dict[str, int]:
    model = TRANSFORMS[name](2).to_json().to_dict()  # type: ignore[call-arg]
    return {key: value for key, value in model.items() if key != "type"}


@every
def test_sql_filters_and_spark_have_a_spelling_for_it(transform: Transform) -> None:
    column = SAMPLES[transform.name]

    assert "col0" in transform.sql(["col0"], column.type)
    assert "col0" in transform.call(["col0"])
    assert "col0" in transform.spelled(["col0"])
    assert (transform.spark_function is not None) == (TRANSFORMS.get(transform.name) is type(transform))
    assert isinstance(transform.suffix, str)
    assert transform.accepts(column.type)
    assert not transform.is_inexact(column.type)
    transform.check([column.type])
    transform.check([pa.null()])
    assert isinstance(transform.null_type, pa.DataType)


@every
def test_spark_groups_leaves_by_its_value_or_by_one_that_follows_from_it(transform: Transform) -> None:
    values = {transform: transform.apply([SAMPLES[transform.name]])[0].as_py()}

    key = transform.spark_key(values)

    assert (key is None) == (transform.spark_function is None)
    if key is not None:
        assert key.transform == transform
        assert key.finest(key) == key
        assert key.common(key) == key
        assert key.yields(key.function, key.number)
        assert not key.yields("another", key.number)
        assert key.value(key.function, key.number, values) == values[transform]
        assert key.value(key.function, key.number, {transform: None}) is None


@every
def test_only_a_transform_that_keeps_values_is_its_column(transform: Transform) -> None:
    column = SAMPLES[transform.name]

    assert transform.keeps_value == (transform.call(["col0"]) == "col0")
    assert not transform.keeps_value or transform.apply([column]).to_pylist() == column.to_pylist()
    assert transform.repeated_name is None or transform.repeated_name in TRANSFORMS
    if transform.joins_floats:
        assert len(set(transform.apply([pa.array([0.0, -0.0])]).to_pylist())) == 1


@every
def test_the_numbers_that_become_a_value_are_those_of_its_span(transform: Transform) -> None:
    found = transform.source_span(12) if transform.keeps_type and transform.takes_number() else None
    if found is not None:
        column = pa.array(range(-40, 40))
        values = transform.apply([column]).to_pylist()
        assert [key for key, value in zip(column.to_pylist(), values, strict=True) if value == 12] == list(
            range(*found)
        )


def test_nothing_follows_from_a_function_that_is_not_known() -> None:
    unknown, order = Unknown(), ordering(pa.int32())
    assert order is not None
    assert not unknown.is_known
    assert unknown.spark_function is None
    assert unknown.any_image([Domain.everything(order)], order) is None
    for ask in (lambda: unknown.apply([]), lambda: unknown.sql(["col0"])):
        with pytest.raises(InvalidInputError, match="does not say"):
            ask()
