"""What can't be supported says so with code 0, not with a half result."""

import lance_namespace as models
import pytest

from lancepart.errors import UnsupportedOperationError
from tests.conformance.catalog.client import Client, refused

REQUESTS = {
    "create_table_branch": models.CreateTableBranchRequest(id=["users"], name="dev"),
    "list_table_branches": models.ListTableBranchesRequest(id=["users"]),
    "delete_table_branch": models.DeleteTableBranchRequest(id=["users"], name="dev"),
    "alter_table_backfill_columns": models.AlterTableBackfillColumnsRequest(id=["users"], column="id"),
    "create_materialized_view": models.CreateMaterializedViewRequest.model_construct(id=["view"]),
    "refresh_materialized_view": models.RefreshMaterializedViewRequest(id=["view"]),
    "describe_transaction": models.DescribeTransactionRequest(id=["tx"]),
    "alter_transaction": models.AlterTransactionRequest.model_construct(id=["tx"], actions=[]),
    "create_empty_table": None,
}


@pytest.mark.parametrize("operation", REQUESTS)
def test_unsupported_operations_error_0(any_mode: Client, operation: str) -> None:
    any_mode.create("users")
    before = any_mode.storage.files()

    with refused(UnsupportedOperationError, 0):
        getattr(any_mode.namespace, operation)(REQUESTS[operation])

    assert any_mode.storage.files() == before


def test_unsupported_operations_are_all_those_that_the_catalog_does_not_define(client: Client) -> None:
    interface = {name for name in vars(models.LanceNamespace) if not name.startswith("_")}
    own = {name for name in vars(type(client.namespace)) if not name.startswith("_")}

    assert interface - own == set(REQUESTS)


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("count_table_rows", {}),
        ("delete_from_table", {"predicate": "true"}),
        ("list_table_versions", {}),
        ("describe_table_version", {"version": 1}),
        ("batch_delete_table_versions", {"ranges": []}),
        ("restore_table", {"version": 1}),
        ("get_table_stats", {}),
        ("list_table_indices", {}),
    ],
)
def test_unsupported_a_branch_of_a_table_error_0(client: Client, operation: str, fields: dict[str, object]) -> None:
    client.create("users")

    with refused(UnsupportedOperationError, 0):
        getattr(client, operation)("users", branch="dev", **fields)

    assert client.count_table_rows("users").count == 2
