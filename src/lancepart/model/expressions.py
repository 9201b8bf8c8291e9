"""Free partition expressions in DataFusion SQL: what is allowed, and how they are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product

import pyarrow as pa
from datafusion import Expr

from lancepart.errors import InvalidInputError, UnsupportedOperationError, reraise_interrupt
from lancepart.model.allowed import (
    ALLOWED,
    MOST_CHARACTERS,
    MOST_NESTED,
    MOST_PADDED,
    MOST_TOKENS,
    OPERATORS,
    PADDING,
    PAGE,
)
from lancepart.model.expression_plans import (
    column_schema,
    compiled,
    context,
    parsed,
    stable_functions,
    unstable_functions,
    walk,
    widened,
    widest_type,
)
from lancepart.model.expression_probes import probes, sample_of
from lancepart.model.sql_text import Token, depth, tokens
from lancepart.model.type_names import kind_of
from lancepart.model.values import canonical, decoded, logical_type

_NODES = {
    *("Alias", "Column", "Literal", "BinaryExpr", "ScalarFunction", "Case", "Cast", "TryCast", "Between", "InList"),
    *("IsNull", "IsNotNull", "IsTrue", "IsFalse", "IsUnknown", "IsNotTrue", "IsNotFalse", "IsNotUnknown"),
    *("Like", "ILike", "SimilarTo", "Negative", "NegativeExpr", "Not"),
}
_STAND_INS = (
    pa.null(),
    pa.int64(),
    pa.string(),
    pa.timestamp("us"),
    pa.date32(),
    pa.float64(),
    pa.bool_(),
    pa.binary(),
)
_MOST_STAND_INS = 512
_SHOWN = 200


def too_much(sql: str, found: Sequence[Token]) -> str | None:
    """What of an expression is more than it is safe to parse: a parser's time may double with each level."""
    if len(found) > MOST_TOKENS or len(sql) > MOST_CHARACTERS:
        return f"more than {MOST_TOKENS} words or {MOST_CHARACTERS} characters"
    return f"more than {MOST_NESTED} levels" if depth(found).nested > MOST_NESTED else None


@dataclass(frozen=True, slots=True)
class Expression:
    """A deterministic, stateless SQL expression over ``col0`` … ``col<arity - 1>``.

    ``unlisted`` says what it has that is never evaluated. Making one, as opening a table does, evaluates nothing.

    >>> Expression("col0 % 10", 1).apply([pa.array([17, None])], pa.int32()).to_pylist()
    [7, None]
    """

    sql: str
    arity: int
    unlisted: str | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        if self.arity < 1:
            raise InvalidInputError(f"expression {self.sql!r} needs at least one source column")
        found = tokens(self.sql)
        self._check_words(found)
        excess = too_much(self.sql, found)
        if excess is not None:
            object.__setattr__(self, "unlisted", excess)
            return
        try:
            nodes = list(walk(parsed(self.sql, self.arity)))
        except Exception as error:
            reraise_interrupt(error)
            allowed = f"col0 to col{self.arity - 1}" if self.arity > 1 else "col0"
            raise InvalidInputError(f"expression {self.sql!r} is not SQL over {allowed}: {error}") from error
        for node in nodes:
            self._check_node(node)
        object.__setattr__(self, "unlisted", next(filter(None, map(_unlisted, nodes)), None))

    def refuse_unlisted(self) -> None:
        """Refuse to evaluate what could take forever, or all of the memory."""
        if self.unlisted is not None:
            raise UnsupportedOperationError(
                f"expression {_shown(self.sql)} has {self.unlisted}, which lancepart does not evaluate: a table "
                f"partitioned by it can be read, but not written to until update_spec gives it another spec; see {PAGE}"
            )

    def _check_words(self, found: Sequence[Token]) -> None:
        depth = 0
        for token in found:
            if token.text in {";", "$", "@", "?"}:
                raise InvalidInputError(f"expression {self.sql!r} may not contain {token.text!r}")
            if token.name in unstable_functions():
                raise InvalidInputError(
                    f"expression {self.sql!r} may not use {token.text}: its value changes with time"
                )
            if token.kind == "word" and token.name in {"select", "over"}:
                raise InvalidInputError(f"expression {self.sql!r} may not contain a subquery or a window")
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0 and token.kind == "word" and token.name == "as":
                raise InvalidInputError(f"expression {self.sql!r} may not name its value: the field_id does")

    def _check_node(self, node: Expr) -> None:
        kind = node.variant_name()
        if kind not in _NODES:
            raise InvalidInputError(f"expression {self.sql!r} may not contain {node.canonical_name()} ({kind})")
        if kind == "ScalarFunction" and node.rex_call_operator() not in stable_functions():
            raise InvalidInputError(f"expression {self.sql!r} may not use the function {node.rex_call_operator()}")

    def value_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of what the expression gives for these sources, without its encoding."""
        schema = column_schema([widest_type(source_type) for source_type in source_types])
        with self._explained(source_types):
            return logical_type(compiled(self.sql, schema)[1])

    def check(self, source_types: Sequence[pa.DataType], result_type: pa.DataType) -> None:
        """Insist that the sources fit and that the type holds; evaluates nothing."""
        if len(source_types) != self.arity:
            raise InvalidInputError(f"expression {self.sql!r} takes {self.arity} columns, not {len(source_types)}")
        if self.unlisted is not None:
            return
        given = self.value_type(source_types)
        if kind_of(given) != kind_of(result_type) and not pa.types.is_null(given):
            raise InvalidInputError(f"expression {self.sql!r} gives {given}, which is not the declared {result_type}")

    def check_new(self, source_types: Sequence[pa.DataType], result_type: pa.DataType) -> None:
        """Insist on what a new expression must hold: listed functions, no harm by NULL, widths that do not matter."""
        if self.unlisted is not None:
            raise InvalidInputError(
                f"expression {_shown(self.sql)} has {self.unlisted}, which partition expressions may not: see {PAGE}"
            )
        self.check(source_types, result_type)
        self.apply([pa.nulls(1, source_type) for source_type in source_types], result_type)
        self.apply([pa.nulls(1) for _ in source_types], result_type)
        narrow, wide = probes(source_types)
        if self._outcomes(narrow, result_type) != self._outcomes(wide, result_type):
            types = [str(array.type) for array in wide]
            raise InvalidInputError(
                f"expression {self.sql!r} gives another value once its columns are widened to {types}"
            )

    def refuse_partial_nulls(self, source_types: Sequence[pa.DataType], result_type: pa.DataType) -> None:
        """Insist that an expression over several columns gives NULL only when all of them are NULL."""
        samples = [sample_of(source_type) for source_type in source_types]
        for index, sample in enumerate(samples):
            if self.arity < 2 or sample is None:
                continue
            arrays = [sample if at == index else pa.nulls(1, kind) for at, kind in enumerate(source_types)]
            if self.apply(arrays, result_type).null_count:
                raise InvalidInputError(
                    f"expression {self.sql!r} gives NULL when only col{index} has a value: one over several columns "
                    "must pass over those that are NULL, for example with coalesce or concat"
                )

    def apply(self, arrays: Sequence[pa.Array], result_type: pa.DataType) -> pa.Array:
        """Evaluate over equally long arrays, timestamps in UTC, and cast to the declared type.

        A removed column is an array of Arrow's null type: it holds NULLs of whichever type fits.
        """
        if len(arrays) != self.arity:
            raise InvalidInputError(f"expression {self.sql!r} takes {self.arity} columns, not {len(arrays)}")
        self.refuse_unlisted()
        prepared = [widened(array) for array in arrays]
        types = _stand_ins(self, tuple(array.type for array in prepared), result_type)
        if types is None:
            return pa.nulls(len(arrays[0]), result_type)
        return self._evaluate([array.cast(kind) for array, kind in zip(prepared, types, strict=True)], result_type)

    def _evaluate(self, arrays: Sequence[pa.Array], result_type: pa.DataType) -> pa.Array:
        size = len(arrays[0])
        schema = column_schema([array.type for array in arrays])
        with self._explained([array.type for array in arrays]):
            frame = context().read_batch(pa.RecordBatch.from_arrays(list(arrays), schema=schema))
            parts = frame.select(compiled(self.sql, schema)[0]).collect()
            value = pa.chunked_array([part.column(0) for part in parts], compiled(self.sql, schema)[1])
            result = canonical(decoded(value).cast(result_type))
        if len(result) != size:
            raise InvalidInputError(f"expression {self.sql!r} gives {len(result)} values for {size} rows")
        return result

    def _outcomes(self, arrays: Sequence[pa.Array], result_type: pa.DataType) -> list[str | type[InvalidInputError]]:
        """What each row gives, a failure counting as an outcome of its own."""
        try:
            return [repr(value) for value in self._evaluate(arrays, result_type).to_pylist()]
        except InvalidInputError:
            rows = range(len(arrays[0])) if len(arrays[0]) > 1 else ()
            outcomes = [self._outcomes([array.slice(row, 1) for array in arrays], result_type) for row in rows]
            return [value for outcome in outcomes for value in outcome] or [InvalidInputError]

    def _explained(self, source_types: Sequence[pa.DataType]) -> _Explained:
        return _Explained(self.sql, source_types)


def _shown(sql: str) -> str:
    return repr(sql if len(sql) <= _SHOWN else f"{sql[:_SHOWN]}…")


def _unlisted(node: Expr) -> str | None:
    """What a node of an expression uses that is not evaluated."""
    kind = node.variant_name()
    if kind == "ScalarFunction" and node.rex_call_operator() in PADDING:
        padded = _is_small(node.rex_call_operands()[1])
        return None if padded else f"{node.rex_call_operator()} to a width that is no number up to {MOST_PADDED}"
    if kind == "ScalarFunction" and node.rex_call_operator() not in ALLOWED:
        return f"the function {node.rex_call_operator()}"
    if kind == "BinaryExpr" and node.rex_call_operator() not in OPERATORS:
        return f"the operator {node.rex_call_operator()}"
    return None


def _is_small(node: Expr) -> bool:
    """Whether a node is a number that is written out and small."""
    if node.variant_name() != "Literal":
        return False
    value = node.python_value().as_py()
    return isinstance(value, int) and value <= MOST_PADDED


def referenced_columns(sql: str, names: Sequence[str]) -> set[str] | None:
    """Which of these columns an expression refers to; None where it does not parse over them.

    >>> sorted(referenced_columns("extract(year FROM ts) + id", ["id", "ts", "year"]) or ())
    ['id', 'ts']
    """
    schema = pa.schema([(name, pa.null()) for name in names])
    try:
        tree = context().read_batch(pa.RecordBatch.from_pylist([], schema=schema)).parse_sql_expr(sql)
        return {str(node.to_variant().name()) for node in walk(tree) if node.variant_name() == "Column"}
    except Exception as error:
        reraise_interrupt(error)
        return None


class _Explained:
    """Turns DataFusion's and Arrow's failures into one that names the expression and its sources."""

    def __init__(self, sql: str, source_types: Sequence[pa.DataType]) -> None:
        self.sql = sql
        self.types = ", ".join(str(source_type) for source_type in source_types)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, InvalidInputError):
            message = f"expression {self.sql!r} cannot be evaluated over ({self.types}): {error}"
            raise InvalidInputError(message) from error


@lru_cache(maxsize=512)
def _stand_ins(
    expression: Expression, types: tuple[pa.DataType, ...], result_type: pa.DataType
) -> tuple[pa.DataType, ...] | None:
    """The types to evaluate over: removed columns take the first that fit; None if none do and all are removed."""
    if not any(pa.types.is_null(kind) for kind in types):
        return types
    choices = [_STAND_INS if pa.types.is_null(kind) else (kind,) for kind in types]
    for chosen in islice(product(*choices), _MOST_STAND_INS):
        try:
            expression._evaluate([pa.nulls(1, kind) for kind in chosen], result_type)
        except InvalidInputError:
            continue
        return chosen
    if all(pa.types.is_null(kind) for kind in types):
        return None
    raise InvalidInputError(f"expression {expression.sql!r} cannot be evaluated once some of its columns are removed")
