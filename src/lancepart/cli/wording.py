"""Advice in errors, which names Python calls, in the words of the command line."""

from __future__ import annotations

import re

_STATEMENTS = {
    "INSERT": "add rows with lancepart load or lancepart upsert",
    "UPDATE": "change rows with lancepart upsert",
    "DELETE": "delete rows with lancepart delete",
    "MERGE": "merge rows with lancepart upsert",
    "REPLACE": "change rows with lancepart upsert, or with lancepart load --mode overwrite",
    "TRUNCATE": "delete all rows with lancepart delete TABLE true",
    "CREATE": "make a table with lancepart create",
    "DROP": "remove a table of a warehouse with lancepart ns drop, a column with lancepart columns TABLE --drop NAME",
    "ALTER": "change columns with lancepart columns, the partitioning with lancepart evolve",
    "COPY": "load files with lancepart load",
    "SHOW": "list tables with lancepart ns list, columns with lancepart columns",
    "OPTIMIZE": "use lancepart compact",
    "VACUUM": "use lancepart expire and lancepart orphans",
    "ROLLBACK": "use lancepart rollback",
}
_NESTED = re.compile(r"\b(namespace|table) '([^'$]+(?:\$[^'$]+)+)'")
_NO_QUERY = re.compile(r"\b([A-Z]+) is no query, and SQL here only reads: .*")
_ADVICE = tuple(
    (re.compile(pattern), command)
    for pattern, command in (
        (r"read it with lance\.dataset, or make a .*", "load it into one: lancepart load NEW FILES --by FIELD"),
        (r"lancepart\.upgrade\(…, remove_old=True\)", "lancepart upgrade TABLE --remove-old"),
        (r"lancepart\.upgrade\b", "lancepart upgrade"),
        (r"(?:lancepart|lp)\.create_table\b", "lancepart create"),
        (r"lancepart\.connect\('([^']*)'\)\.drop_table\(…\)", r"lancepart ns drop \1:NAMESPACE.TABLE"),
        (r"lancepart\.connect\(('[^']*')\) has its tables", r"lancepart ns list -r \1 shows its tables"),
        (r"lancepart\.connect\('([^']*)'\)", r"lancepart ns list \1"),
        (
            r"a table and not a warehouse: open it with lancepart\.open_table",
            "a table and not a warehouse: lancepart info shows it, lancepart sql QUERY events=TABLE queries it",
        ),
        (r": exist_ok=True opens it", ": load rows into it with lancepart load, or choose another name"),
        (r"(?:lancepart|lp)\.open_table\b", "lancepart info"),
        (r"lp\.sql\(query, events=table\)", "lancepart sql QUERY events=TABLE"),
        (r"lancepart\.sql or table\.join", "lancepart sql or lancepart join"),
        (r"list_tables\(\) names", "lancepart ns list -r WAREHOUSE names"),
        (r"lance_table\('[^']*'\), or SQL", "lancepart sql"),
        (r"give (\w+) in storage_options", r"give --storage \1=VALUE"),
        (r"in storage_options or in the environment", "with --storage or in the environment"),
        (r"table\.inspect\.broken\(\)", "lancepart check TABLE"),
        (r"for whole queries there is lp\.sql", "for whole queries there is lancepart sql"),
        (r"table\.tags\.list\(\)", "lancepart tag TABLE"),
        (r"table\.inspect\.snapshots\(\)", "lancepart snapshots TABLE"),
        (r"(?:table\.)?maintenance\.optimize_indices\(\)", "lancepart index TABLE --optimize"),
        (r"\badd_column makes new ones", "lancepart columns TABLE --add 'NAME TYPE' makes new ones"),
        (r"\bupdate_spec\b", "lancepart evolve"),
        (r"\bformat=", "--format"),
        (r": open it$", ": load rows into it with lancepart load, or choose another root"),
        (r"\bhow is ('[^']*'): give", r"--how is \1: use"),
        (r"give it in params, as params=\{.*\}", "write the value itself"),
        (r"\bpartition_by\b", "--by"),
        (r"name more columns in on$", "name more columns with --on"),
        (r", or \$name with its value in params", ""),
    )
)  # fmt: skip


def in_commands(message: str) -> str:
    """An error as the command line reports it.

    >>> in_commands("there is no partitioned table at '/t': make one with lancepart.create_table")
    "there is no partitioned table at '/t': make one with lancepart create"
    """
    for pattern, command in _ADVICE:
        message = pattern.sub(command, message)
    message = _NESTED.sub(lambda found: f"{found[1]} {found[2].replace('$', '.')!r}", message)
    return _NO_QUERY.sub(_instead, message)


def _instead(found: re.Match[str]) -> str:
    other = _STATEMENTS.get(found[1])
    return found[0] if other is None else f"{found[1]} is no query, and SQL here only reads: {other}"
