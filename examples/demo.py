"""The main job, end to end, in a temporary folder: `make demo` runs it."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import lance
import pyarrow as pa
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
    RenameTableRequest,
)

import lancepart as lp


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table_at_work(f"{folder}/events")
        catalog_at_work(f"{folder}/catalog")


def table_at_work(root: str) -> None:
    title("A partitioned table: one Lance table a year and country")
    schema = pa.schema(
        [("id", pa.int64()), ("event_date", pa.date32()), ("country", pa.string()), ("amount", pa.float64())]
    )
    events = lp.create_table(root, schema, partition_by=["year(event_date)", "country"])
    first = events.append(days(date(2024, 12, 30), 5))
    say(f"{events.scan().count()} rows in {len(events.scan().plan().leaves)} partitions, snapshot {first}")

    title("A filter reads only the partitions that can match")
    where = "event_date >= DATE '2025-01-01' AND country = 'US'"
    print(events.scan(where, columns=["id"]).explain())

    title("Several changes, one commit")
    with events.transaction() as tx:
        tx.update({"amount": "amount * 2"}, "country = 'FR'")
        tx.delete("country = 'DE'")
        tx.append(days(date(2026, 1, 1), 2))
    past = lp.open_table(root, version=first)
    say(f"now {events.scan().count()} rows; as of snapshot {first} still {past.scan().count()}")
    changes = events.changes(first).group_by("_change").aggregate([([], "count_all")]).to_pylist()
    say("changes since: " + ", ".join(f"{row['_change']} {row['count_all']} rows" for row in sorted(changes, key=str)))

    title("Next year's partitioning, without rewriting history")
    events.update_spec(["event_date"])
    events.rename_column("country", "land")
    events.append(pa.table({"id": [900], "event_date": [date(2026, 1, 2)], "land": ["US"]}))
    found = events.scan("event_date = DATE '2026-01-02'")
    specs = sorted({leaf.spec_id for leaf in found.plan().leaves})
    say(f"{found.count()} rows of 2026-01-02, from leaves of the specs {specs}")
    for row in events.inspect.specs().to_pylist():
        say(f"spec v{row['spec_id']}: {row['transform']}({row['source']}) as {row['field_id']}")


def days(start: date, count: int) -> pa.Table:
    rows = [(start + timedelta(days=n), country) for n in range(count) for country in ("US", "FR", "DE")]
    return pa.table(
        {
            "id": range(len(rows)),
            "event_date": [day for day, _ in rows],
            "country": [country for _, country in rows],
            "amount": [10.0] * len(rows),
        }
    )


def catalog_at_work(root: str) -> None:
    title("A catalog of Lance tables")
    catalog = lp.DirectoryNamespace(root=root)
    catalog.set_root_properties({"table_version_management": "true"})
    for path in (["prod"], ["prod", "eu"]):
        catalog.create_namespace(CreateNamespaceRequest(id=path, properties={"owner": "data team"}))
    users = ["prod", "eu", "users"]
    lance.write_dataset(batch(0), namespace_client=catalog, table_id=users, mode="create")
    say("namespaces prod and prod$eu made, table users written through pylance")

    title("Eight writers append at once")

    def append(number: int) -> None:
        lance.write_dataset(batch(number), namespace_client=catalog, table_id=users, mode="append")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(1, 9)))
    versions = catalog.list_table_versions(ListTableVersionsRequest(id=users)).versions
    rows = lance.dataset(namespace_client=catalog, table_id=users).count_rows()
    say(f"{len(versions)} versions, numbered {versions[0].version} to {versions[-1].version}; {rows} rows")
    assert (len(versions), rows) == (9, 900)

    title("Renamed, described, and read by plain pylance")
    catalog.rename_table(RenameTableRequest(id=users, new_table_name="50% off 😀"))
    renamed = ["prod", "eu", "50% off 😀"]
    described = catalog.describe_table(DescribeTableRequest(id=renamed, load_detailed_metadata=True))
    columns = ", ".join(f"{field.name}: {field.type.type}" for field in described.var_schema.fields)
    say(f"tables: {catalog.list_all_tables(ListTablesRequest(id=[])).tables}")
    say(f"version {described.version} with columns {columns}")
    say(f"plain pylance counts {lance.dataset(described.location).count_rows()} rows")

    title("What is not empty is not dropped by accident")
    try:
        catalog.drop_namespace(DropNamespaceRequest(id=["prod"]))
    except lp.errors.NamespaceNotEmptyError as error:
        say(f"error {int(error.code)}: {error}")
    catalog.drop_namespace(DropNamespaceRequest(id=["prod"], behavior="cascade"))
    say(f"after a cascade: {catalog.list_all_tables(ListTablesRequest(id=[])).tables}")


def batch(number: int) -> pa.Table:
    return pa.table({"id": range(number * 100, number * 100 + 100), "name": [f"user {i}" for i in range(100)]})


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def say(text: str) -> None:
    print(f"  {text}")


if __name__ == "__main__":
    main()
