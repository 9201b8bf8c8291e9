"""Filters of many or deeply nested tests, read in processes of their own: what they could break is the process."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.model.filtering import matching_rows
from lancepart.model.parse import parse
from lancepart.model.predicate import And, In, Not, Or

SCHEMA = pa.schema([("id", pa.int64()), ("c", pa.string())])
ROWS = pa.RecordBatch.from_pylist([{"id": n, "c": f"x{n}"} for n in range(10)] + [{"id": None, "c": "x3"}], SCHEMA)
PROGRAM = """
import tempfile, threading
import pyarrow as pa
import lancepart as lp

table = lp.create_table(tempfile.mkdtemp(), pa.schema([("id", pa.int64()), ("c", pa.string())]), ["bucket(1, id)"])
table.append(pa.table({"id": list(range(10)), "c": [f"x{n}" for n in range(10)]}))
filters = {
    "ors": " OR ".join(f"id = {n}" for n in range(10_000)),
    "mixed": " OR ".join(f"(id = {n} AND c = 'x{n}')" for n in range(300)) + " OR c LIKE 'y%'",
    "ands": " AND ".join(f"c NOT LIKE '%z{n}%'" for n in range(500)),
    "list": "id IN (" + ", ".join(map(str, range(100_000))) + ")",
    "parentheses": "(" * 5_000 + "id < 10" + ")" * 5_000,
    "nots": "NOT " * 5_000 + "(id < 10)",
    "negations": "NOT (" * 5_000 + "id < 10" + ")" * 5_000,
    "nested": "".join(f"(id > {-n} {'AND' if n % 2 else 'OR'} " for n in range(50)) + "c = 'a'" + ")" * 50,
}

def run():
    for name, where in filters.items():
        assert table.scan(where).count() == 10, name
    joined = table.join(table, on=["id"], how="full", where=filters["mixed"], columns=["id"])
    assert joined.to_arrow().num_rows == 10
    table.update({"c": "'y'"}, filters["ors"])
    table.overwrite(table.scan().to_arrow(), where=filters["nested"])
    table.delete(filters["nested"])
    assert table.scan().count() == 0
    print("read", len(filters))

run()
thread = threading.Thread(target=lambda: table.scan(filters["ors"]).count())
thread.start()
thread.join()
"""


@pytest.mark.slow
def test_long_and_deep_filters_do_not_break_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=500, check=False)

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "read 8"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("".join(f"(id = {n} {'AND' if n % 2 else 'OR'} " for n in range(5_000)) + "c = 'a'" + ")" * 5_000, "nested"),
        ("".join(f"(id = {n} {'AND' if n % 2 else 'OR'} " for n in range(80)) + "c = 'a'" + ")" * 80, "nested"),
        ("id" + " + 1" * 5_000 + " > 5", "names and operators"),
        ("id" + " + 1" * 100 + " > 5", "nested"),
        ("abs(" * 100 + "id" + ")" * 100 + " > 5", "nested"),
        ("(" * 50_000 + "id = 1", "not closed"),
        ("NOT (" * 40 + "id = 1 -- c\n" + ")" * 40, "comment"),
        ("id = 1 AND " * 5_000, "missing"),
        ("(" + " OR ".join(f"id = {n}" for n in range(5_000)) + ") IS TRUE", "names and operators"),
    ],
)
def test_what_is_too_deep_is_refused_and_says_so_in_few_words(where: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason) as caught:
        parse(where, SCHEMA)

    assert len(str(caught.value)) < 1_500


def test_equalities_of_one_column_become_one_list() -> None:
    found = parse(" OR ".join(f"id = {n}" for n in range(500)) + " OR c LIKE '%a%'", SCHEMA)

    assert isinstance(found, Or)
    (listed,) = [part for part in found.operands if isinstance(part, In)]
    assert [value.as_py() for value in listed.values] == list(range(500))
    excluded = parse(" AND ".join(f"id <> {n}" for n in range(500)), SCHEMA)
    assert isinstance(excluded, In)
    assert excluded.negated


@pytest.mark.parametrize("count", [3, 70, 200])
def test_a_filter_in_pieces_means_what_it_means_whole(count: int) -> None:
    tests = [f"id = {n % 12}" if n % 3 else f"c = 'x{n % 11}' AND id <> {n % 5}" for n in range(count)]
    where = f"NOT ({' OR '.join(tests[: count // 2])}) AND (id BETWEEN 2 AND 8 OR {' OR '.join(tests[count // 2 :])})"
    shape = parse(where, SCHEMA)

    expected = [row for row in ROWS.to_pylist() if _matches(row, tests, count)]

    assert isinstance(shape, And | In | Not | Or)
    assert matching_rows(ROWS, shape).to_pylist() == expected


def _matches(row: dict[str, object], tests: list[str], count: int) -> bool:
    """The same by Python alone, for rows without NULLs; a row with a NULL never matches its equalities and lists."""
    if row["id"] is None:
        return False
    number, text = int(str(row["id"])), row["c"]

    def holds(at: int) -> bool:
        return number == at % 12 if at % 3 else text == f"x{at % 11}" and number != at % 5

    first, second = range(count // 2), range(count // 2, len(tests))
    return not any(map(holds, first)) and (2 <= number <= 8 or any(map(holds, second)))


def test_and_or_not_bind_as_in_sql() -> None:
    padding = " AND ".join(f"id <> {100 + n}" for n in range(80))
    for operators in product(("AND", "OR"), repeat=3):
        small = f"id > 2 {operators[0]} NOT id < 8 {operators[1]} id BETWEEN 1 AND 3 {operators[2]} NOT (c = 'x1')"
        long = f"({small}) AND CASE WHEN id > 1 OR id < 9 THEN true ELSE false END AND {padding}"

        whole = matching_rows(ROWS, parse(small, SCHEMA))

        assert matching_rows(ROWS, parse(long, SCHEMA)) == whole.filter(pa.array(whole["id"].is_valid()))


@pytest.mark.parametrize("word", ["CAST", "TRY_CAST", "CASE WHEN NOT", "POSITION", "lower(CAST"])
def test_what_a_parser_reads_again_at_each_level_is_refused(word: str) -> None:
    """DataFusion's parser takes twice as long for each of them, so that forty take days."""
    opened = f"{word} (" * 40 + "id"

    with pytest.raises(InvalidInputError, match=r"nested more than|not closed"):
        parse(f"{opened}{')' * opened.count('(')} = 1", SCHEMA)
