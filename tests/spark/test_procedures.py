"""Procedures of the catalog: what they do, what they say of it, and what they refuse without doing anything."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark import InheritableThread

from lancepart.queries.warehouse import Warehouse
from tests.conformance.draft import appendix
from tests.conformance.hive import trees
from tests.spark.warehouse import Sql, warehouse
from tests.support.waiting import until
from tests.unit.spark.test_garbage import straggle

T = "table => 'ns.t'"


@pytest.fixture
def table(sql: Sql) -> Sql:
    """Three commits of two rows each, by country."""
    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING) PARTITIONED BY (country)")
    for number in range(3):
        sql.table("ns", "t").append([{"id": number, "country": "US"}, {"id": number, "country": "FR"}])
    return sql


def all_rows() -> Counter[Any]:
    return Counter((number, country) for number in range(3) for country in ("US", "FR"))


@pytest.mark.slow
def test_they_are_listed(sql: Sql) -> None:
    names = [row[-1] for row in sql("SHOW PROCEDURES IN @.system")]
    assert {"compact", "expire", "remove_orphans", "add_partition_field"} < set(names)
    assert sql("SHOW PROCEDURES IN @.ns") == []
    described = str(sql("DESCRIBE PROCEDURE @.system.compact"))
    assert "small fragments" in described
    with pytest.raises(Exception, match="FAILED_TO_LOAD_ROUTINE"):
        sql("CALL @.system.nonsense()")


@pytest.mark.slow
def test_compaction_and_indices(table: Sql) -> None:
    ((changed, skipped, version),) = table(f"CALL @.system.compact({T}, target_rows => 100)")
    assert (changed, skipped, version) == (2, [], table.table("ns", "t").version)
    assert table("CALL @.system.compact('ns.t')") == [(0, [], None)]
    table(f"CALL @.system.create_index({T}, column => 'id', kind => 'btree', name => 'by_id')")
    assert set(table.table("ns", "t").inspect.indices().column("name").to_pylist()) == {"by_id"}
    assert table.rows("@.ns.t") == all_rows()


@pytest.mark.slow
def test_indices_are_built_extended_and_dropped(table: Sql) -> None:
    name = f"CALL @.system.create_index({T}, column => 'id', scope => 'leaf', where => \"country = 'US'\")"
    assert [row[0] for row in table(name)] == [1]
    table.table("ns", "t").append([{"id": 7, "country": "US"}])
    before = next(each for each in table.table("ns", "t").inspect.indices().to_pylist() if each["indexed_rows"])
    assert before["indexed_rows"] < before["rows"]
    assert [row[0] for row in table(f"CALL @.system.optimize_indices({T})")] == [1]
    after = next(each for each in table.table("ns", "t").inspect.indices().to_pylist() if each["indexed_rows"])
    assert (after["name"], after["indexed_rows"]) == ("id_idx", after["rows"])
    with pytest.raises(Exception, match=r"there is no index 'other'.*TableIndexNotFoundError, code 6"):
        table(f"CALL @.system.drop_index({T}, name => 'other')")
    assert [row[0] for row in table(f"CALL @.system.drop_index({T}, name => 'id_idx')")] == [1]
    assert table.table("ns", "t").inspect.indices().num_rows == 0
    with pytest.raises(Exception, match="scope is 'all'"):
        table(f"CALL @.system.create_index({T}, column => 'id', scope => 'all')")


@pytest.mark.slow
def test_a_call_that_is_only_explained_does_nothing(table: Sql) -> None:
    before = table.table("ns", "t").version
    assert "rollback" in str(table(f"EXPLAIN CALL @.system.rollback({T}, version => '1')"))
    assert table.table("ns", "t").version == before


@pytest.mark.slow
def test_repair_empties_only_the_leaves_that_are_named(table: Sql) -> None:
    made = table.table("ns", "t")
    lost = made.scan().plan().leaves[:2]
    for leaf in lost:
        shutil.rmtree(f"{made.root}/{leaf.location}")
    first, second = sorted(leaf.object_id for leaf in lost)
    assert table(f"CALL @.system.repair({T}, dry_run => true)") == [(0, [first, second], None)]
    ((changed, _, _),) = table(f"CALL @.system.repair({T}, leaves => array('{second}'))")
    assert changed == 1
    assert made.inspect.broken().column("object_id").to_pylist() == [first]


def test_tags_rollback_and_expiry(table: Sql) -> None:
    version = table.table("ns", "t").version
    assert table(f"CALL @.system.create_tag({T}, name => 'three')") == [("three", version)]
    with pytest.raises(Exception, match=r"already: .* \(TableTagAlreadyExistsError, code 9\)"):
        table(f"CALL @.system.create_tag({T}, name => 'three', version => {version})")
    table("DELETE FROM @.ns.t WHERE country = 'US'")
    ((made,),) = table(f"CALL @.system.rollback({T}, version => 'three')")
    assert (made, table.rows("@.ns.t")) == (table.table("ns", "t").version, all_rows())
    moments = table("SELECT version, CAST(timestamp + INTERVAL '0.001' SECOND AS STRING) FROM @.ns.t.snapshots")
    moment = dict(moments)[version]
    table("DELETE FROM @.ns.t WHERE country = 'US'")
    table(f"CALL @.system.rollback({T}, timestamp => TIMESTAMP '{moment}')")
    assert table.rows("@.ns.t") == all_rows()
    for both in ("", ", version => '1', timestamp => TIMESTAMP '2020-01-01 00:00:00'"):
        with pytest.raises(Exception, match="either version, a number or a tag, or timestamp"):
            table(f"CALL @.system.rollback({T}{both})")
    assert table(f"CALL @.system.drop_tag({T}, name => 'three')") == [("three", version)]
    with pytest.raises(Exception, match=r"no snapshot 999 .*|TableVersionNotFoundError, code 11"):
        table(f"CALL @.system.rollback({T}, version => 999)")
    assert table(f"CALL @.system.expire({T}, older_than => TIMESTAMP '2020-01-01 00:00:00')") == [(0, 0, 0)]
    assert table(f"CALL @.system.expire({T}, age => '7d')") == [(0, 0, 0)]
    assert table(f"CALL @.system.remove_orphans({T}, dry_run => true)") == [(0, 0, 0, [])]


def test_partition_fields_come_and_go(table: Sql) -> None:
    first = [(2, "country", "country", "identity"), (2, "id_bucket", "id", "bucket")]
    assert table(f"CALL @.system.add_partition_field({T}, field => 'bucket(16, id)')") == first
    with pytest.raises(Exception, match="already"):
        table(f"CALL @.system.add_partition_field({T}, field => 'bucket(id, 16)')")
    second = [(3, "country", "country", "identity"), (3, "small", "id", "bucket")]
    replaced = f"CALL @.system.replace_partition_field({T}, field => 'id_bucket', by => 'bucket(2, id) AS small')"
    assert table(replaced) == second
    assert table(f"CALL @.system.drop_partition_field({T}, field => 'country')") == [(4, "small", "id", "bucket")]
    for wrong in ("nothing", "year(id)"):
        with pytest.raises(
            Exception, match=r"partition(ed| field).*InvalidInputError|year.*InvalidInputError, code 13"
        ):
            table(f"CALL @.system.drop_partition_field({T}, field => '{wrong}')")
    assert table("SELECT max(spec_id) FROM @.ns.t.specs") == [(4,)]
    ((changed, _, version),) = table(f"CALL @.system.rewrite({T}, where => 'id < 2')")
    assert (changed, version) == (2, table.table("ns", "t").version)
    assert table.rows("@.ns.t") == all_rows()


@pytest.mark.slow
def test_names_in_back_ticks_and_with_the_catalog_before_them(sql: Sql) -> None:
    sql("CREATE NAMESPACE @.`we.ird`")
    sql("CREATE TABLE @.`we.ird`.`a``b c` (id BIGINT) PARTITIONED BY (id)")
    assert sql("CALL @.system.compact(table => '`we.ird`.`a``b c`')") == [(0, [], None)]
    assert sql("CALL @.system.compact(table => '@.`we.ird`.`a``b c`')") == [(0, [], None)]
    for wrong in ("a..b", "", "`a", "a b", "a."):
        with pytest.raises(Exception, match=r"is no name of a table.*code 13"):
            sql(f"CALL @.system.compact(table => '{wrong}')")


def test_what_can_not_be_done_is_said(table: Sql) -> None:
    lance.write_dataset(pa.table({"id": [1]}), f"{table.root}/plain.lance")
    table("CREATE TABLE @.ns.weak (id BIGINT) PARTITIONED BY (id) TBLPROPERTIES (transactions = 'weak')")
    before = table.table("ns", "t").version
    wrong = {
        "compact(table => 'ns.none')": r"'ns\$none' does not exist .*TableNotFoundError, code 4",
        "rewrite(table => 'plain')": "'plain' is a plain Lance table.*UnsupportedOperationError, code 0",
        "add_partition_field(table => 'plain', field => 'id')": "plain Lance table",
        "compact(table => 'ns.weak')": "strong",
        f"compact({T}, nonsense => 1)": "UNRECOGNIZED_PARAMETER_NAME",
        "compact()": "REQUIRED_PARAMETER_NOT_FOUND",
        "compact(table => NULL)": "argument table is NULL",
        f"compact({T}, target_rows => 'many')": "CAST_INVALID_INPUT|DATATYPE_MISMATCH|cannot be cast",
        f"compact({T}, target_rows => NULL)": "argument target_rows is NULL",
        f"create_index({T}, column => 'id', kind => 'btree', params => map('spark', '1'))": "no parameter of an index",
        f"expire({T})": "older_than => TIMESTAMP",
        f"expire({T}, age => 'soon')": "no age",
        f"create_index({T}, column => 'none', kind => 'btree')": "no column 'none'",
        f"add_partition_field({T}, field => 'bucket(16, none)')": "no column 'none'",
    }
    for call, said in wrong.items():
        with pytest.raises(Exception, match=said):
            table(f"CALL @.system.{call}")
    assert table.table("ns", "t").version == before
    assert table.rows("@.ns.t") == all_rows()


@pytest.mark.slow
def test_older_layouts_are_upgraded_and_refused_by_the_others(sql: Sql) -> None:
    tree = Sql(sql.spark, sql.root + "_trees")
    trees.write_events(tree.root, namespace=("sales", "events"))
    made = warehouse(sql.spark, tree.root)
    appendix.write_leaves(f"{tree.root}/draft")
    appendix.write_manifest(f"{tree.root}/draft", appendix.appendix_c())
    Warehouse.at(tree.root).publish(["ns", "draft"], "draft", {}, replaced=None)
    for name, said in (("sales.events", "Hive-style.*system.upgrade"), ("ns.draft", "lancepart.upgrade")):
        for call in (f"compact(table => '{name}')", f"add_partition_field(table => '{name}', field => 'id')"):
            with pytest.raises(Exception, match=said + ".*UnsupportedOperationError"):
                made(f"CALL @.system.{call}")
        ((version, rows),) = made(f"CALL @.system.upgrade(table => '{name}')")
        assert (version, rows) == (made.table(*name.split(".")).version, made(f"SELECT count(*) FROM @.{name}")[0][0])
        made(f"CALL @.system.add_partition_field(table => '{name}', field => 'bucket(2, id)')")
    assert made("CALL @.system.upgrade(table => 'sales.events', remove_old => true)")[0][1] == 6
    with pytest.raises(Exception, match=r"NamespaceNotFoundError|TableNotFoundError"):
        made("CALL @.system.upgrade(table => 'ns.none')")


@pytest.mark.slow
def test_a_warehouse_is_swept(table: Sql) -> None:
    bad = "SELECT id, IF(id = 7, raise_error('broken'), 1) AS k FROM range(0, 9, 1, 1)"
    with pytest.raises(Exception, match="broken"):
        table(f"CREATE TABLE @.ns.bad PARTITIONED BY (k) AS {bad}")
    assert table.directories == 1
    warehouse = Warehouse.at(table.root)
    place, _ = warehouse.place(["ns", "bad"])
    straggle(warehouse, place)
    assert table.directories == 2
    assert table("CALL @.system.remove_orphans()") == [(0, 0, 0, [])]
    then = time.time() - 4 * 86_400
    for path in Path(table.root).rglob("*"):
        os.utime(path, (then, then))
    ((changed, files, size, found),) = table("CALL @.system.remove_orphans(age => '3d', dry_run => true)")
    assert (changed, files > 0, size > 0, found, table.directories) == (1, True, True, [place], 2)
    assert table("CALL @.system.remove_orphans()") == [(1, files, size, [place])]
    assert (table.directories, table.rows("@.ns.t")) == (1, all_rows())


def test_upkeep_is_a_spark_job_that_is_cancelled_with_its_group(table: Sql, tmp_path: Path) -> None:
    context, release = table.spark.sparkContext, tmp_path / "release"
    before = table.table("ns", "t").version
    busy = Thread(target=lambda: occupy(table.spark, release))
    busy.start()
    try:
        until(lambda: len(context.statusTracker().getActiveJobsIds()) == 1)
        errors: list[str] = []
        call = InheritableThread(target=lambda: called(table, f"CALL @.system.compact({T})", errors))
        call.start()
        jobs = until(lambda: context.statusTracker().getJobIdsForGroup("upkeep"))
        context.cancelJobGroup("upkeep")
        call.join()
    finally:
        release.touch()
        busy.join()

    assert len(jobs) == 1
    assert len(errors) == 1
    assert "cancelled" in errors[0]
    assert table.table("ns", "t").version == before
    ((changed, skipped, _),) = table(f"CALL @.system.compact({T}, target_rows => 100)")
    assert (changed, skipped) == (2, [])
    assert table.rows("@.ns.t") == all_rows()


def occupy(spark: Any, release: Path) -> None:
    """Keep both cores busy until a file is there."""

    def wait(batches: Any) -> Any:
        while not release.exists():
            time.sleep(0.02)
        yield from batches

    spark.range(0, 2, 1, 2).mapInArrow(wait, "id long").collect()


def called(sql: Sql, statement: str, errors: list[str]) -> None:
    """Run a statement in a job group, and keep its error."""
    sql.spark.sparkContext.setJobGroup("upkeep", "upkeep of a table")
    try:
        sql(statement)
    except Exception as error:
        errors.append(str(error))
