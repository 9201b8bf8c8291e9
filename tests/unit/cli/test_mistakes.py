"""Mistakes that newcomers make, each answered by one line that names the thing and what to do."""

from __future__ import annotations

import shlex
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lancepart as lp
from lancepart.cli.app import app

SCHEMA = "id int64, country string"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a plain Lance table, a file and a warehouse."""
    found = tmp_path_factory.mktemp("mistakes")
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(found / "t", schema, ["country"])
    table.append([{"id": n, "country": "US", "v": [n, 0]} for n in range(5)])
    lance.write_dataset(pa.table({"id": [1]}), str(found / "plain.lance"))
    (found / "file.txt").write_text("hello")
    (found / "rows.csv").write_text("id,country,extra\n1,US,x\n")
    (found / "good.csv").write_text("id,country\n1,US\n")
    (found / "twice.csv").write_text("id,country\n1,US\n1,FR\n")
    (found / "texts").mkdir()
    (found / "texts" / "read.me").write_text("hello")
    (found / "words.csv").write_text("id,country\nseven,US\n")
    (found / "empty.csv").write_text("")
    (found / "semi.csv").write_text("id;country\n1;US\n")
    (found / "bad.parquet").write_bytes(b"PAR1 not really")
    (found / "rows.jsonl").write_text("{not json}\n")
    lp.create_table(found / "above" / "inside", schema, ["country"])
    table.tags.create("kept", table.version)
    for name in ("db", "full", "full.inner"):
        lp.connect(found / "w").create_namespace(name)
    lp.connect(found / "w").create_table("full.things", schema)
    return found


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        # where the table is
        ("info nowhere", 3, ["nowhere", "no such directory", "lancepart create"]),
        ("info file.txt", 1, ["file.txt", "directory"]),
        ("info plain.lance", 1, ["plain.lance", "plain Lance table", "lancepart load"]),
        ("info w:db.nothing", 3, ["no table 'db.nothing'", "lancepart ns list -r w"]),
        ("info w:fool.things", 3, ["no table 'fool.things'", "did you mean 'full.things'"]),
        ("info w", 3, ["/w' is a warehouse", "lancepart ns list -r"]),
        ("info s3//bucket/t", 1, ["s3://bucket/t"]),
        ("info :events", 2, ["warehouse:namespace.table"]),
        ("info w:db..events", 2, ["empty name"]),
        ("info w:`db.events", 2, ["back-tick"]),
        ("info ''", 1, ["root is empty"]),
        ("info memory://t", 1, ["memory://", "temporary directory"]),
        ("info ftp://host/t", 1, ["ftp"]),
        ("info t --version 99999", 3, ["99999", "snapshot"]),
        ("info t --version never", 3, ["never", "tag"]),
        ("info t --version 1999-01-01", 3, ["1999", "snapshot"]),
        ("info t --storage region", 2, ["region", "key=value"]),
        # columns and filters
        ("head t -c countri", 1, ["countri", "did you mean 'country'"]),
        ("head t -w \"countri = 'US'\"", 1, ["countri"]),
        ("head t -w \"country = = 'US'\"", 1, ["country = = 'US'"]),
        ("head t -w \"id = 'seven'\"", 1, ["seven"]),
        ("head t -w \"sqrt(id)\"", 1, ["sqrt(id)"]),
        ("head t -c id -c id", 1, ["twice"]),
        ("head t -n -1", 2, ["--limit"]),
        ("head t -w ''", 1, ["it is empty", "'true'"]),
        ("head t -w 'country = 5'", 1, ["country", "string", "country = '5'"]),
        ("head t --storage =", 2, ["--storage '='", "key=value"]),
        ("sql 'SELECT * FROM t'", 1, ["there is no table 't'", "lancepart sql QUERY events=TABLE"]),
        ("sql 'SELECT * FROM t' t", 1, ["lancepart sql QUERY events=TABLE"]),
        ("sql 'SELECT 1' t", 1, ["/t' is a table", "lancepart info"]),
        ("head t -w 'WHERE id = 1'", 1, ["leave 'WHERE' out"]),
        ("head t -w 'SELECT * FROM t'", 1, ["lancepart sql"]),
        ("sql 'SELECT * FROM e' e=t e=t", 2, ["'e'", "twice"]),
        ("sql \"SELECT id FROM e WHERE country = DATE '2026-02-30'\" e=t", 1, ["2026-02-30"]),
        ("head t -n 99999999999999999999", 1, ["99999999999999999999", "2**63"]),
        ("load t semi.csv", 1, ["semi.csv", "semicolons"]),
        ("sql 'SELECT * FROM t' =t", 2, ["'=t'", "key=value"]),
        ("sql 'INSERT INTO t VALUES (1)' t=t", 1, ["INSERT", "lancepart load"]),
        ("delete t 'country = 5' --yes", 1, ["country = '5'"]),
        ("partitions t --sort size", 2, ["'size'", "fragments"]),
        ("plan t 'id LIKE 5'", 1, ["id", "LIKE"]),
        ("expire t --older-than -7d --yes", 2, ["-7d", "12h"]),
        ("orphans t --older-than 5x", 2, ["5x", "12h"]),
        ("compact t --target-rows 0", 2, ["--target-rows"]),
        ("changes t notatag", 3, ["'notatag'", "tag"]),
        ("ns create t", 2, ["'t'", "warehouse:namespace"]),
        ("search t '[]'", 1, ["vector", "list of numbers"]),
        ("sql \"SELECT * FROM events\" e=t", 1, ["events"]),
        ("sql \"SELEC * FROM e\" e=t", 1, ["SELEC"]),
        ("sql \"DROP TABLE e\" e=t", 1, ["DROP", "lancepart ns drop"]),
        ("search t '[1, 2, 3]'", 1, ["3", "2"]),
        ("search t '[1, two]'", 2, ["JSON list"]),
        ("search t '[1, 2]' --on id", 1, ["id"]),
        ("join t nowhere --on id", 3, ["nowhere"]),
        ("join t t --on idd", 1, ["idd"]),
        ("join t t --on country --how sideways", 2, ["sideways"]),
        # making and loading
        (f"create t --schema '{SCHEMA}' --by country", 1, ["already", "lancepart load"]),
        (f"create n --schema '{SCHEMA}' --by countri", 1, ["--by", "countri"]),
        (f"create n --schema '{SCHEMA}' --by 'bucket(id)'", 1, ["bucket"]),
        (f"create n --schema '{SCHEMA}' --by 'year(country)'", 1, ["year"]),
        (f"create n --schema '{SCHEMA}' --by id --layout tree", 2, ["tree", "hive"]),
        ("create n --schema 'id int65' --by id", 2, ["int65", "did you mean 'int64'"]),
        ("load t good.csv --by id", 1, ["['country']", "['id']", "lancepart evolve"]),
        ("create n --by id", 2, ["--schema", "--like"]),
        ("create n --schema 'price decimal(50, 2)'", 2, ["decimal(50, 2)", "38"]),
        ("create n --schema 'price decimal(5, 77)'", 2, ["decimal(5, 77)", "38"]),
        ("create n --schema 'v float32[0]'", 2, ["float32[0]", "float32[768]"]),
        ("create s3:// --schema 'id int64'", 1, ["s3://", "names no bucket", "s3://bucket/prefix"]),
        ("load t rows.csv", 1, ["extra", "lancepart columns"]),
        ("load t words.csv", 1, ["seven", "words.csv"]),
        ("load t empty.csv", 1, ["empty.csv"]),
        ("load t bad.parquet", 1, ["bad.parquet"]),
        ("load t missing.csv", 1, ["missing.csv", "no file"]),
        ("load t file.txt", 1, ["file.txt", "--format"]),
        ("load t texts", 1, ["directory 'texts'", ".parquet"]),
        ("load t http://host/a.csv", 1, ["http://host/a.csv", "s3://"]),
        ("upsert t twice.csv --on id", 1, ["more than once", "--on"]),
        ("head t -w 'id = ?'", 1, ["?", "write the value itself"]),
        ("ui plain.lance --no-open", 1, ["plain.lance", "plain Lance table"]),
        ("load t rows.jsonl", 1, ["rows.jsonl"]),
        ("upsert t good.csv --on idd", 1, ["idd"]),
        ("upsert t rows.jsonl --on id", 1, ["rows.jsonl"]),
        # changing and upkeep
        ("delete t 'id = 1'", 2, ["--yes"]),
        ("delete t '' --yes", 2, ["'true'"]),
        ("columns t --add country", 2, ["country", "type"]),
        ("columns t --add 'country string'", 1, ["country"]),
        ("columns t --rename country", 2, ["old=new", "country"]),
        ("columns t --widen 'id int8'", 1, ["id"]),
        ("evolve t 'buckett(id, 4)'", 1, ["buckett"]),
        ("rollback t 99999 --yes", 3, ["99999"]),
        ("tag t x --version 99999", 3, ["99999"]),
        ("tag t nothing --delete", 3, ["nothing"]),
        ("expire t --older-than yesterday --yes", 2, ["yesterday", "7d"]),
        ("index t id TREE", 1, ["TREE", "BTREE"]),
        ("index t v BTREE", 1, ["BTREE"]),
        ("index t idd", 1, ["idd"]),
        ("ns create w:db", 1, ["db", "already"]),
        ("ns drop w:nothing --yes", 3, ["nothing"]),
        ("ns list nowhere:ns", 3, ["nowhere", "warehouse"]),
        ("ns list nowhere", 3, ["nowhere", "warehouse"]),
        ("ns list t", 1, ["/t' is a table"]),
        ("ns migrate nowhere", 3, ["nowhere", "warehouse"]),
        ("ns create w:a.b", 3, ["namespace 'a'", "lancepart ns create w:a"]),
        ("ns drop w:db.nothing --yes", 3, ["'db.nothing'"]),
        # usage
        ("inf t", 2, ["'inf'", "Did you mean 'info'?", "lancepart -h"]),
        ("ns lst w", 2, ["'lst'", "'list'", "lancepart ns -h"]),
        ("info", 2, ["TABLE", "lancepart info -h"]),
        ("info t --jsn", 2, ["--jsn", "--json", "lancepart info -h"]),
        ("head t -n x", 2, ["--limit", "give a number", "lancepart head -h"]),
        ("join t t", 2, ["--on", "lancepart join -h"]),
        ("load t good.csv --format xml", 2, ["xml", "parquet"]),
        ("load t good.csv --mode replace", 2, ["replace", "overwrite"]),
        ("tag t --delete", 2, ["lancepart tag TABLE NAME"]),
        ("tag t kept --delete", 2, ["kept", "--yes"]),
        ("tag t other --dry-run", 2, ["--delete"]),
        ("index t --dry-run", 2, ["--drop"]),
        ("index t --drop nothing --dry-run", 1, ["nothing", "lancepart index TABLE"]),
        ("columns t --drop countri --yes", 1, ["countri", "did you mean 'country'"]),
        ("rollback t kept", 2, ["kept", "--yes"]),
        # directories that have tables beneath them
        ("info above", 3, ["is no warehouse", "above/inside'"]),
        ("ns list above", 3, ["'above' is no warehouse", "lancepart info", "above/inside'"]),
        ("ui above", 3, ["is no warehouse", "above/inside'"]),
        ("ns drop w:full --yes", 1, ["'full'", "not empty", "full.inner", "--cascade"]),
    ],
)  # fmt: skip
def test_a_mistake_is_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int, words: list[str]
) -> None:
    monkeypatch.chdir(folder)
    version = lp.open_table("t").version
    done = CliRunner().invoke(app, shlex.split(line))

    assert done.exit_code == code, done.output
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert not [word for word in words if word not in done.stderr], done.stderr
    assert "--debug shows where" not in done.stderr
    assert len(done.stderr) < 1500
    assert (lp.open_table("t").version, (folder / "n").exists()) == (version, False)
