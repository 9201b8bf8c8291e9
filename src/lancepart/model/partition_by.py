"""Parsing ``partition_by`` into partition fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.allowed import PAGE
from lancepart.model.expressions import Expression, referenced_columns, too_much
from lancepart.model.schema import field_id, source_by_id
from lancepart.model.spec import PartitionField, unused_id
from lancepart.model.sql_errors import missing_column
from lancepart.model.sql_text import Token, arguments, closing, tokens
from lancepart.model.suggest import near
from lancepart.model.transforms import CALENDAR, TRANSFORMS, Identity, Transform

SPANS = {f"{transform.name}s": at + 1 for at, transform in enumerate(CALENDAR)}
"""Spans of time, each as the number of parts of the calendar that distinguish it from all others."""


def parse_partition_by(items: Sequence[str | PartitionField], schema: pa.Schema) -> tuple[PartitionField, ...]:
    """Read each item over a schema with field ids: a column, a transform of one, an expression, or a ready field.

    >>> import pyarrow as pa
    >>> from lancepart.model.schema import assign_field_ids
    >>> schema = assign_field_ids(pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    >>> [(f.field_id, f.source_ids, f.transform) for f in parse_partition_by(["year(day)", "bucket(16, id)"], schema)]
    [('day_year', (1,), Year()), ('id_bucket', (0,), Bucket(num_buckets=16))]
    """
    taken = {item.field_id.lower() for item in items if isinstance(item, PartitionField)}
    fields: list[PartitionField] = []
    spans: set[str] = set()
    for item in items:
        if not isinstance(item, str | PartitionField):
            raise InvalidInputError(f"partition_by has {item!r}: give strings such as 'year(ts)', or PartitionFields")
        with _named(item):
            parts = [item] if isinstance(item, PartitionField) else spread(item, schema)
        is_span = parts != [item]
        for part in parts:
            with _named(item, is_span=is_span):
                field = part if isinstance(part, PartitionField) else _parsed(part, schema, taken)
            same = next((each for each in fields if each.same_values(field)), None)
            if same is not None and (is_span or same.field_id in spans):
                continue
            _check(field, schema)
            taken.add(field.field_id.lower())
            fields.append(field)
            spans |= {field.field_id} if is_span else set()
    return tuple(fields)


@contextmanager
def _named(item: str | PartitionField, *, is_span: bool = False) -> Iterator[None]:
    """Name the item in errors about it; those of a span name the span, and not the part that fails."""
    try:
        yield
    except InvalidInputError as error:
        text = str(error)
        if is_span or not text.startswith("partition_by"):
            reason = text.partition(": ")[2] if text.startswith("partition_by") else text
            raise InvalidInputError(f"partition_by {item!r}: {reason}") from None
        raise


def spread(item: str, schema: pa.Schema) -> list[str]:
    """The parts of the calendar that a span of time consists of, outermost first; any other item is itself.

    >>> spread("days(ts)", pa.schema([("ts", pa.timestamp("us"))]))
    ['year(ts)', 'month(ts)', 'day(ts)']
    """
    found, alias = _without_alias(tokens(item)) if item not in schema.names else ([], None)
    called = len(found) >= 3 and found[1].text == "(" and closing(found, 1) == len(found) - 1
    count = SPANS.get(str(found[0].name)) if called and found[0].kind == "word" else None
    if count is None:
        return [item]
    inner = item[found[1].end : found[-1].start].strip()
    parts = [f"{transform.name}({inner})" for transform in CALENDAR[:count]]
    if alias is None:
        return parts
    if count > 1:
        raise InvalidInputError(
            f"partition_by: {item!r}: {found[0].text}({inner}) is the fields {', '.join(parts)}; name each with AS"
        )
    return [f'{parts[0]} AS "{alias}"']


def span_of(fields: Sequence[PartitionField]) -> int:
    """How many fields at the beginning are one span of time: the year of a column, its month, and so on down.

    >>> from lancepart.model.schema import assign_field_ids
    >>> schema = assign_field_ids(pa.schema([("day", pa.date32())]))
    >>> span_of(parse_partition_by(["months(day)", "day"], schema)), span_of(parse_partition_by(["month(day)"], schema))
    (2, 0)
    """
    count = 0
    while count < min(len(fields), len(CALENDAR)):
        field = fields[count]
        if field.transform != CALENDAR[count] or field.source_ids != fields[0].source_ids:
            break
        count += 1
    return count


def cycles(fields: Sequence[PartitionField]) -> list[PartitionField]:
    """The cyclic fields, such as a month without its year: they put years of rows into one partition."""
    parts = {(field.source_ids, field.transform) for field in fields}
    found = []
    for field in fields:
        if field.transform in CALENDAR:
            parents = CALENDAR[: CALENDAR.index(field.transform)]
            if any((field.source_ids, parent) not in parts for parent in parents):
                found.append(field)
    return found


def _check(field: PartitionField, schema: pa.Schema) -> None:
    columns = [source_by_id(schema, number) for number in field.source_ids]
    missing = [number for number, column in zip(field.source_ids, columns, strict=True) if column is None]
    if missing:
        raise InvalidInputError(f"partition field {field.field_id!r}: no column has the field id {missing[0]}")
    field.check([column.type for column in columns if column is not None])


def _parsed(item: str, schema: pa.Schema, taken: set[str]) -> PartitionField:
    if item in schema.names:
        return _field([item], Identity(), None, schema, taken)
    found = tokens(item)
    found, alias = _without_alias(found)
    if len(found) >= 3 and found[0].kind == "word" and found[1].text == "(" and closing(found, 1) == len(found) - 1:
        function = str(found[0].name)
        if function == "expr":
            return _expression_field(item[found[1].end : found[-1].start].strip(), alias, schema, taken)
        spans = list(arguments(found, 1, len(found) - 1))
        return _transform_field(function, [item[start:stop] for start, stop in spans], alias, schema, taken)
    text = item[found[0].start : found[-1].end] if found else item
    return _field([named_column(text, schema)], Identity(), alias, schema, taken)


def _without_alias(found: list[Token]) -> tuple[list[Token], str | None]:
    if len(found) >= 3 and found[-2].text.lower() == "as" and found[-1].name is not None:
        last = found[-1]
        return found[:-2], last.text if last.kind == "word" else last.name
    return found, None


def _transform_field(
    function: str, texts: Sequence[str], alias: str | None, schema: pa.Schema, taken: set[str]
) -> PartitionField:
    kind = TRANSFORMS.get(function)
    if kind is None:
        names = [*TRANSFORMS, *SPANS, "expr"]
        raise InvalidInputError(
            f"partition_by: unknown transform {function!r}{near(function, names)}; known are {', '.join(names)}"
        )
    if kind.takes_number():
        transform, texts = _sized(kind, texts, schema)
    else:
        transform = kind()
    if not texts:
        raise InvalidInputError(f"partition_by: {function} needs a column")
    return _field([named_column(text, schema) for text in texts], transform, alias, schema, taken)


def _sized(kind: type[Transform], texts: Sequence[str], schema: pa.Schema) -> tuple[Transform, Sequence[str]]:
    """Take the number from either end: it is last or first in our notation, first in Spark's."""
    for position in (0, -1):
        if texts and re.fullmatch(r"-?[0-9]+", texts[position]):
            rest = texts[1:] if position == 0 else texts[:-1]
            return kind(int(texts[position])), rest  # type: ignore[call-arg]
    raise InvalidInputError(f"partition_by: {kind.name} needs a whole number, as in {kind.name}(16, {schema.names[0]})")


def named_column(text: str, schema: pa.Schema) -> str:
    """The column that a text names, quoted or not."""
    if text in schema.names:
        return text
    found = tokens(text)
    if len(found) == 1 and found[0].name is not None:
        names: list[str] = [name for name in schema.names if name == found[0].name]
        if found[0].kind == "word":
            names = names or [name for name in schema.names if name.lower() == found[0].name]
        if len(names) == 1:
            return names[0]
    raise InvalidInputError(
        f"partition_by: no column {text!r}{near(text, schema.names)}; the columns are "
        f"{', '.join(map(repr, schema.names))}"
    )


def _field(
    columns: Sequence[str], transform: Transform, alias: str | None, schema: pa.Schema, taken: set[str]
) -> PartitionField:
    sources = [schema.field(name) for name in columns]
    try:
        transform.check([source.type for source in sources])
    except InvalidInputError as error:
        advice = "partition by a column of dates or timestamps" if transform in CALENDAR else "choose another column"
        if transform in CALENDAR and any(pa.types.is_date(source.type) for source in sources):
            advice = "a date has no hours: partition by its days"
        raise InvalidInputError(f"partition_by {transform.spelled(columns)}: {error}; {advice}") from None
    return PartitionField(
        field_id=alias or unused_id(_derived_id(columns, transform.suffix), taken),
        source_ids=_ids(sources),
        transform=transform,
        result_type=transform.result_type([source.type for source in sources]),
    )


def _expression_field(sql: str, alias: str | None, schema: pa.Schema, taken: set[str]) -> PartitionField:
    expression, columns, result_type = _over_placeholders(sql, schema)
    return PartitionField(
        field_id=alias or unused_id(_derived_id(columns, "expr"), taken),
        source_ids=_ids([schema.field(name) for name in columns]),
        expression=expression.sql,
        result_type=result_type,
    )


def _over_placeholders(sql: str, schema: pa.Schema) -> tuple[Expression, list[str], pa.DataType]:
    """Replace column names by ``col0`` …; where a bare word only looks like one, only quoted names count."""
    excess = too_much(sql, tokens(sql))
    if excess is not None:
        raise InvalidInputError(f"partition_by: an expression has {excess}, which is more than it may: see {PAGE}")
    named = referenced_columns(sql, schema.names)
    attempts = [(set(schema.names) if named is None else named, {"word", "quoted"}), (set(schema.names), {"quoted"})]
    failure: InvalidInputError | None = None
    for names, kinds in attempts:
        rewritten, columns = _replaced(sql, names, kinds)
        types = [schema.field(name).type for name in columns]
        try:
            expression = Expression(rewritten, max(len(columns), 1))
            if columns:
                result_type = pa.null() if expression.unlisted else expression.value_type(types)
                expression.check_new(types, result_type)
                return expression, columns, result_type
        except InvalidInputError as error:
            failure = failure or error
    known = ", ".join(map(repr, schema.names))
    missing = missing_column(str(failure), sql, schema.names)
    raise InvalidInputError(
        f"partition_by: expr({sql}) is not an expression over {known}: {missing or failure or 'it names none'}"
    )


def _replaced(sql: str, names: set[str], kinds: set[str]) -> tuple[str, list[str]]:
    found = tokens(sql)
    pieces: list[str] = []
    columns: list[str] = []
    position = 0
    for token, after in zip(found, [*found[1:], None], strict=True):
        name = token.text if token.text in names else token.name
        called = after is not None and (after.text == "(" or after.kind == "string")
        if token.kind not in kinds or name not in names or called:
            continue
        if name not in columns:
            columns.append(str(name))
        pieces += [sql[position : token.start], f"col{columns.index(str(name))}"]
        position = token.end
    return "".join([*pieces, sql[position:]]), columns


def _derived_id(columns: Sequence[str], suffix: str) -> str:
    """A name that any column may have: letters, digits and underscores of the sources, then the transform."""
    parts = [re.sub(r"\W+", "_", name).strip("_") or "column" for name in columns]
    return "_".join([*parts, suffix] if suffix else parts)


def _ids(sources: Sequence[pa.Field]) -> tuple[int, ...]:
    numbers = [field_id(source) for source in sources]
    if None in numbers:
        raise InvalidInputError(f"column {sources[numbers.index(None)].name!r} has no field id; assign them first")
    return tuple(number for number in numbers if number is not None)
