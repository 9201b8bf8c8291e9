"""DataFusion's errors about SQL in plain words: what is wrong, where, and what to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from lancepart.model.suggest import near

_AT = r"(?: at Line: (\d+), Column: (\d+))?"
_PARSER = re.compile(rf'ParserError\("Expected: (.*), found: (.*?){_AT}"\)')
_TOKENIZER = re.compile(rf'TokenizerError\("Unterminated (.*?){_AT}"\)')
_OTHER = re.compile(r'(?:ParserError|TokenizerError)\("(.*)"\)')
_NO_FUNCTION = re.compile(r"Invalid function '([^']*)'")
_NO_COLUMN = re.compile(r"No field named (?:\"((?:[^\"]|\"\")*)\"|(\S+?))\.(?: |$)")
_NO_TABLE = re.compile(r"table '(?:datafusion\.public\.)?([^']*)' not found", re.IGNORECASE)
_SINGLE = re.compile(r"only supports a single SQL statement")
_AMBIGUOUS = re.compile(r"Ambiguous reference to unqualified field \"?([^\s\"]+)\"?")
_COERCION = re.compile(r"Cannot coerce arithmetic expression .* to valid types|Cannot infer common argument type")
_STAGE = re.compile(r"(?:DataFusion error: )?(?:Optimizer rule '\w+' failed|type_coercion)")
_ARGUMENTS = re.compile(
    r"Function '(\w+)' (?:requires|expects) (.+?),? but received (.+?)(?: \(DataType|\. No |[.,]*$|,Error)"
)
_UNGROUPED = re.compile(r'Column in (\w+) must be in GROUP BY.*?column "([^"]+)" must appear')
_NO_CONDITION = re.compile(r"Cannot create filter with non-boolean predicate '(.*)' returning (\w+)")
_NO_FIELD = re.compile(r"Field (.+) not found in struct")
_NUMBERS = frozenset({"Decimal", "Float", "Float64", "Int64", "Numeric", "UInt64"})
_STATEMENT = re.compile(r"\s*(select|where|from)\b(?!\s*(?:[=<>!]|is\b|in\b|like\b|between\b|not\b))", re.IGNORECASE)
_NOTHING = frozenset({"none", "nil", "nan", "undefined"})
_MOST_SHOWN = 40
_COMPARED = r"(?:[=<>]|\blike|\bin\s*\()\s*"


def plain(text: str) -> str:
    """A message of the parser in plain words; any other as it is.

    >>> plain('SQL error: ParserError("Expected: an expression, found: EOF")')
    'the SQL ends where an expression is expected'
    """
    if found := _PARSER.search(text):
        wanted, there, line, column = found.groups()
        if there == "EOF":
            return f"the SQL ends where {wanted} is expected"
        return f"there is {there!r}{_place(line, column)} where {wanted} is expected"
    if found := _TOKENIZER.search(text):
        what = found[1].replace(" literal", "")
        return f"the {what}{_place(found[2], found[3])} is not closed: put a quote at its end"
    if found := _OTHER.search(text):
        return f"it can't be parsed: {found[1]}"
    if _SINGLE.search(text):
        return "it has several statements: give a single one"
    if found := _AMBIGUOUS.search(text):
        return f"several tables have a column {found[1]!r}: write it with its table, as in t.{found[1]}"
    if _COERCION.search(text):
        return f"{_bare(text)}: CAST one of them, as in CAST(x AS BIGINT)"
    return _of_types(text) or _bare(text)


def cause(text: str) -> str:
    """The line of a message that says what is wrong: the first, or what caused it where that is a stage's name.

    >>> cause("Optimizer rule 'eliminate_limit' failed\\ncaused by\\nError during planning: LIMIT must be >= 0")
    'Error during planning: LIMIT must be >= 0'
    """
    lines = [line for line in text.splitlines() if line.strip() and line != "caused by"]
    return next((line for line in lines if not _STAGE.fullmatch(line)), lines[0] if lines else "")


def _of_types(text: str) -> str | None:
    """What is wrong with the type of a column, a function's arguments or a condition, if a message is about that.

    >>> _of_types("Function 'sum' requires Int64, but received String (DataType: Utf8).,Error during planning: …")
    'sum takes numbers, not String: CAST it, as in CAST(x AS DOUBLE)'
    >>> _of_types("Function 'upper' expects 1 arguments but received 2. No function matches")
    'upper takes 1 arguments, not 2'
    """
    if found := _UNGROUPED.search(text):
        return f"column {found[2]} is in {found[1]}, and neither in GROUP BY nor in an aggregate: add it to GROUP BY"
    if found := _NO_CONDITION.search(text):
        return f"{found[1]} is {found[2]} and no condition: compare it with a value"
    if found := _NO_FIELD.search(text):
        return f"there is no field {found[1]!r} in the struct: the column's type names those that there are"
    if found := _ARGUMENTS.search(text):
        wanted = {each[1] for each in _ARGUMENTS.findall(text)}
        names = [*(["numbers"] if wanted & _NUMBERS else []), *sorted(wanted - _NUMBERS)]
        cast = ": CAST it, as in CAST(x AS DOUBLE)" if wanted & _NUMBERS else ""
        return f"{found[1]} takes {' or '.join(names)}, not {found[3]}{cast}"
    return None


def _bare(text: str) -> str:
    """A message without the names that DataFusion and Arrow have for their own stages."""
    for stage in ("SQL error: ", "Error during planning: ", "Schema error: ", "Arrow error: ", "Cast error: "):
        text = text.removeprefix(stage)
    return text


def _place(line: str | None, column: str | None) -> str:
    return "" if line is None else f" at line {line}, column {column}"


def filter_hint(sql: str) -> str:
    """What to add to an error about a filter that is a whole statement, or has the word WHERE.

    >>> filter_hint("WHERE id = 1"), filter_hint("id = 1 AND")
    ("; a filter is what follows WHERE: leave 'WHERE' out", '')
    """
    found = _STATEMENT.match(sql)
    if found is None:
        return ""
    if found[1].lower() == "where":
        return f"; a filter is what follows WHERE: leave {found[1]!r} out"
    return "; a filter is only what follows WHERE: for whole queries there is lp.sql"


def missing_function(text: str, known: Callable[[], Iterable[str]]) -> str | None:
    """What to say of a function that does not exist, if that is what a message is about."""
    found = _NO_FUNCTION.search(text)
    return None if found is None else f"there is no function {found[1]!r}{near(found[1], known())}"


def missing_column(text: str, sql: str, columns: Sequence[str]) -> str | None:
    """What to say of a column that does not exist, if that is what a message is about.

    What a value is compared with is more likely a text without its single quotes.

    >>> missing_column('No field named "US". Valid fields are id.', 'country = "US"', ["id", "country"])
    "there is no column 'US': a text is written in single quotes, 'US'; the columns are id, country"
    """
    found = _NO_COLUMN.search(text)
    if found is None:
        return None
    name = (found[1] or found[2]).replace('""', '"')
    own = name.rpartition(".")[2]
    value = re.search(rf'{_COMPARED}("?)({re.escape(own)})\1(?!\w|\s*[.(])', sql, re.IGNORECASE)
    shown = name if value is None else value[2]
    quotes = "" if value is None else f"a text is written in single quotes, '{shown}'; "
    if own.lower() in _NOTHING:
        quotes = "a missing value is found with IS NULL or IS NOT NULL; "
    return f"there is no column {shown!r}: {quotes}the columns are {_listed(columns)}{near(own, columns)}"


def _listed(names: Sequence[str]) -> str:
    more = ["…"] if len(names) > _MOST_SHOWN else []
    return ", ".join([*names[:_MOST_SHOWN], *more])


def missing_table(text: str, known: Sequence[str]) -> str | None:
    """What to say of a table that does not exist, if that is what a message is about and some exist."""
    found = _NO_TABLE.search(text)
    if found is None:
        return None
    hint = f": the tables are {_listed(known)}{near(found[1], known)}" if known else ""
    return f"there is no table {found[1]!r}{hint}"
