"""What to use in place of SQL that is no query: DataFusion only reads here."""

from __future__ import annotations

import re

_FIRST = re.compile(r"[\s(]*(?P<word>[a-z]+)", re.IGNORECASE)
_ON_SPARK = "Spark SQL has it too"
_INSTEAD = {
    "insert": f"add rows with table.append(rows) or table.upsert(rows, on=[…]); {_ON_SPARK}",
    "update": f"change rows with table.update({{column: expression}}, where); {_ON_SPARK}",
    "delete": f"delete rows with table.delete(where), or lancepart delete; {_ON_SPARK}",
    "merge": f"merge rows with table.merge(rows, on=[…]); {_ON_SPARK}",
    "replace": "change rows with table.overwrite(rows) or table.upsert(rows, on=[…])",
    "truncate": "delete all rows with table.delete('true')",
    "create": f"make a table with lp.create_table(root, schema, partition_by), or lancepart create; {_ON_SPARK}",
    "drop": f"remove a table with lp.drop_table(root), a column with table.drop_column(name); {_ON_SPARK}",
    "alter": f"use table.add_column, rename_column, drop_column, widen_column or update_spec; {_ON_SPARK}",
    "copy": "load files with lp.load(root, files), or lancepart load; write rows with lp.sql(query).to_arrow()",
    "show": "list tables with lp.connect(warehouse).list_tables(), columns with table.schema",
    "call": "use table.maintenance, or the procedures of Spark SQL",
    "optimize": "use table.maintenance.compact(), or lancepart compact",
    "vacuum": "use table.maintenance.expire(age) and remove_orphans(age), or lancepart expire and orphans",
    "set": "settings are in lp.config",
    "use": "write the whole name of the table, namespace.table",
    "begin": "use with table.transaction() as tx",
    "start": "use with table.transaction() as tx",
    "commit": "use with table.transaction() as tx, which commits at its end",
    "rollback": "use table.maintenance.rollback(version)",
    "grant": "permissions are those of the object store",
}


def in_place_of(text: str) -> str | None:
    """What to do in place of a statement that is no query; None for a query.

    >>> in_place_of(" truncate table t")
    "TRUNCATE is no query, and SQL here only reads: delete all rows with table.delete('true')"
    >>> in_place_of("WITH a AS (SELECT 1) SELECT * FROM a") is None
    True
    """
    found = _FIRST.match(text)
    word = found["word"].lower() if found is not None else ""
    return f"{word.upper()} is no query, and SQL here only reads: {_INSTEAD[word]}" if word in _INSTEAD else None
