"""The directory catalog: every operation of ``lance_namespace``, delegating only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape

from lance_namespace import (
    AlterTableAddColumnsRequest,
    AlterTableAddColumnsResponse,
    AlterTableAlterColumnsRequest,
    AlterTableAlterColumnsResponse,
    AlterTableDropColumnsRequest,
    AlterTableDropColumnsResponse,
    AnalyzeTableQueryPlanRequest,
    BatchCommitTablesRequest,
    BatchCommitTablesResponse,
    BatchCreateTableVersionsRequest,
    BatchCreateTableVersionsResponse,
    BatchDeleteTableVersionsRequest,
    BatchDeleteTableVersionsResponse,
    CountTableRowsRequest,
    CountTableRowsResponse,
    CreateNamespaceRequest,
    CreateNamespaceResponse,
    CreateTableIndexRequest,
    CreateTableIndexResponse,
    CreateTableRequest,
    CreateTableResponse,
    CreateTableScalarIndexResponse,
    CreateTableTagRequest,
    CreateTableTagResponse,
    CreateTableVersionRequest,
    CreateTableVersionResponse,
    DeclareTableRequest,
    DeclareTableResponse,
    DeleteFromTableRequest,
    DeleteFromTableResponse,
    DeleteTableTagRequest,
    DeleteTableTagResponse,
    DeregisterTableRequest,
    DeregisterTableResponse,
    DescribeNamespaceRequest,
    DescribeNamespaceResponse,
    DescribeTableIndexStatsRequest,
    DescribeTableIndexStatsResponse,
    DescribeTableRequest,
    DescribeTableResponse,
    DescribeTableVersionRequest,
    DescribeTableVersionResponse,
    DropNamespaceRequest,
    DropNamespaceResponse,
    DropTableIndexRequest,
    DropTableIndexResponse,
    DropTableRequest,
    DropTableResponse,
    ExplainTableQueryPlanRequest,
    GetTableStatsRequest,
    GetTableStatsResponse,
    GetTableTagVersionRequest,
    GetTableTagVersionResponse,
    InsertIntoTableRequest,
    InsertIntoTableResponse,
    LanceNamespace,
    ListNamespacesRequest,
    ListNamespacesResponse,
    ListTableIndicesRequest,
    ListTableIndicesResponse,
    ListTablesRequest,
    ListTablesResponse,
    ListTableTagsRequest,
    ListTableTagsResponse,
    ListTableVersionsRequest,
    ListTableVersionsResponse,
    MergeInsertIntoTableRequest,
    MergeInsertIntoTableResponse,
    NamespaceExistsRequest,
    NamespaceExistsResponse,
    QueryTableRequest,
    QueryTableResponse,
    RegisterTableRequest,
    RegisterTableResponse,
    RenameTableRequest,
    RenameTableResponse,
    RestoreTableRequest,
    RestoreTableResponse,
    TableExistsRequest,
    TableExistsResponse,
    UpdateFieldMetadataRequest,
    UpdateFieldMetadataResponse,
    UpdateTableRequest,
    UpdateTableResponse,
    UpdateTableSchemaMetadataRequest,
    UpdateTableSchemaMetadataResponse,
    UpdateTableTagRequest,
    UpdateTableTagResponse,
)

from lancepart.catalog import (
    batch,
    creating,
    data,
    declaring,
    dropping,
    indices,
    namespaces,
    query,
    registering,
    rename,
    schema_changes,
    tables,
    tags,
    versions,
)
from lancepart.catalog.context import Catalog
from lancepart.catalog.requests import read
from lancepart.catalog.threads import run


class DirectoryNamespace(LanceNamespace):
    """A catalog of Lance tables in a directory, on a local disk or an object store.

    Making one has no side effects. What is not overridden here raises ``UnsupportedOperationError``.

    >>> import tempfile
    >>> from lance_namespace import CreateNamespaceRequest, ListNamespacesRequest
    >>> catalog = DirectoryNamespace(root=tempfile.mkdtemp())
    >>> _ = catalog.create_namespace(CreateNamespaceRequest(id=["prod"]))
    >>> catalog.list_namespaces(ListNamespacesRequest(id=[])).namespaces
    ['prod']
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        manifest_enabled: bool | str = True,
        dir_listing_enabled: bool | str = True,
        **properties: str,
    ) -> None:
        self._catalog = Catalog.of(
            {
                "root": root,
                "manifest_enabled": manifest_enabled,
                "dir_listing_enabled": dir_listing_enabled,
                **properties,
            }
        )

    def namespace_id(self) -> str:
        """The identity of this catalog, without its credentials."""
        return f"DirectoryNamespace(root={self._catalog.root.uri!r})"

    def __repr__(self) -> str:
        return self.namespace_id()

    def _repr_html_(self) -> str:
        return f"<b>{escape(self._catalog.root.uri)}</b>: a catalog, a <code>lance_namespace.LanceNamespace</code>"

    def migrate(self) -> int:
        """Enter the tables that only a listing of directories finds into the manifest; how many they were."""
        return run(rename.migrate, self._catalog)

    def set_root_properties(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """Set properties of the catalog itself, or remove those whose value is None; all that it has then."""
        return run(namespaces.set_root_properties, self._catalog, values)

    def create_namespace(self, request: CreateNamespaceRequest) -> CreateNamespaceResponse:
        """See :func:`lancepart.catalog.namespaces.create`."""
        return run(namespaces.create, self._catalog, read(CreateNamespaceRequest, request))

    def list_namespaces(self, request: ListNamespacesRequest) -> ListNamespacesResponse:
        """See :func:`lancepart.catalog.namespaces.list_children`."""
        return run(namespaces.list_children, self._catalog, read(ListNamespacesRequest, request))

    def describe_namespace(self, request: DescribeNamespaceRequest) -> DescribeNamespaceResponse:
        """See :func:`lancepart.catalog.namespaces.describe`."""
        return run(namespaces.describe, self._catalog, read(DescribeNamespaceRequest, request))

    def drop_namespace(self, request: DropNamespaceRequest) -> DropNamespaceResponse:
        """See :func:`lancepart.catalog.namespaces.drop`."""
        return run(namespaces.drop, self._catalog, read(DropNamespaceRequest, request))

    def namespace_exists(self, request: NamespaceExistsRequest) -> NamespaceExistsResponse:
        """See :func:`lancepart.catalog.namespaces.exists`."""
        return run(namespaces.exists, self._catalog, read(NamespaceExistsRequest, request))

    def list_tables(self, request: ListTablesRequest) -> ListTablesResponse:
        """See :func:`lancepart.catalog.tables.list_tables`."""
        return run(tables.list_tables, self._catalog, read(ListTablesRequest, request))

    def list_all_tables(self, request: ListTablesRequest) -> ListTablesResponse:
        """See :func:`lancepart.catalog.tables.list_all_tables`."""
        return run(tables.list_all_tables, self._catalog, read(ListTablesRequest, request))

    def describe_table(self, request: DescribeTableRequest) -> DescribeTableResponse:
        """See :func:`lancepart.catalog.tables.describe`."""
        return run(tables.describe, self._catalog, self, read(DescribeTableRequest, request))

    def table_exists(self, request: TableExistsRequest) -> TableExistsResponse:
        """See :func:`lancepart.catalog.tables.exists`."""
        return run(tables.exists, self._catalog, self, read(TableExistsRequest, request))

    def declare_table(self, request: DeclareTableRequest) -> DeclareTableResponse:
        """See :func:`lancepart.catalog.declaring.declare`."""
        return run(declaring.declare, self._catalog, read(DeclareTableRequest, request))

    def create_table(self, request: CreateTableRequest, request_data: bytes) -> CreateTableResponse:
        """See :func:`lancepart.catalog.creating.create`."""
        return run(creating.create, self._catalog, self, read(CreateTableRequest, request), request_data)

    def register_table(self, request: RegisterTableRequest) -> RegisterTableResponse:
        """See :func:`lancepart.catalog.registering.register`."""
        return run(registering.register, self._catalog, read(RegisterTableRequest, request))

    def deregister_table(self, request: DeregisterTableRequest) -> DeregisterTableResponse:
        """See :func:`lancepart.catalog.registering.deregister`."""
        return run(registering.deregister, self._catalog, read(DeregisterTableRequest, request))

    def drop_table(self, request: DropTableRequest) -> DropTableResponse:
        """See :func:`lancepart.catalog.dropping.drop`."""
        return run(dropping.drop, self._catalog, read(DropTableRequest, request))

    def rename_table(self, request: RenameTableRequest) -> RenameTableResponse:
        """See :func:`lancepart.catalog.rename.rename`."""
        return run(rename.rename, self._catalog, read(RenameTableRequest, request))

    def create_table_version(self, request: CreateTableVersionRequest) -> CreateTableVersionResponse:
        """See :func:`lancepart.catalog.versions.create`."""
        return run(versions.create, self._catalog, read(CreateTableVersionRequest, request))

    def batch_create_table_versions(self, request: BatchCreateTableVersionsRequest) -> BatchCreateTableVersionsResponse:
        """See :func:`lancepart.catalog.versions.batch_create`."""
        return run(versions.batch_create, self._catalog, read(BatchCreateTableVersionsRequest, request))

    def list_table_versions(self, request: ListTableVersionsRequest) -> ListTableVersionsResponse:
        """See :func:`lancepart.catalog.versions.list_versions`."""
        return run(versions.list_versions, self._catalog, read(ListTableVersionsRequest, request))

    def describe_table_version(self, request: DescribeTableVersionRequest) -> DescribeTableVersionResponse:
        """See :func:`lancepart.catalog.versions.describe`."""
        return run(versions.describe, self._catalog, self, read(DescribeTableVersionRequest, request))

    def batch_delete_table_versions(self, request: BatchDeleteTableVersionsRequest) -> BatchDeleteTableVersionsResponse:
        """See :func:`lancepart.catalog.versions.batch_delete`."""
        return run(versions.batch_delete, self._catalog, read(BatchDeleteTableVersionsRequest, request))

    def batch_commit_tables(self, request: BatchCommitTablesRequest) -> BatchCommitTablesResponse:
        """See :func:`lancepart.catalog.batch.commit_tables`."""
        return run(batch.commit_tables, self._catalog, read(BatchCommitTablesRequest, request))

    def count_table_rows(self, request: CountTableRowsRequest) -> CountTableRowsResponse:
        """See :func:`lancepart.catalog.data.count`."""
        return run(data.count, self._catalog, self, read(CountTableRowsRequest, request))

    def insert_into_table(self, request: InsertIntoTableRequest, request_data: bytes) -> InsertIntoTableResponse:
        """See :func:`lancepart.catalog.data.insert`."""
        return run(data.insert, self._catalog, self, read(InsertIntoTableRequest, request), request_data)

    def merge_insert_into_table(
        self, request: MergeInsertIntoTableRequest, request_data: bytes
    ) -> MergeInsertIntoTableResponse:
        """See :func:`lancepart.catalog.data.merge_insert`."""
        return run(data.merge_insert, self._catalog, self, read(MergeInsertIntoTableRequest, request), request_data)

    def update_table(self, request: UpdateTableRequest) -> UpdateTableResponse:
        """See :func:`lancepart.catalog.data.update`."""
        return run(data.update, self._catalog, self, read(UpdateTableRequest, request))

    def delete_from_table(self, request: DeleteFromTableRequest) -> DeleteFromTableResponse:
        """See :func:`lancepart.catalog.data.delete`."""
        return run(data.delete, self._catalog, self, read(DeleteFromTableRequest, request))

    def restore_table(self, request: RestoreTableRequest) -> RestoreTableResponse:
        """See :func:`lancepart.catalog.data.restore`."""
        return run(data.restore, self._catalog, self, read(RestoreTableRequest, request))

    def query_table(self, request: QueryTableRequest) -> QueryTableResponse:
        """See :func:`lancepart.catalog.query.query`."""
        return run(query.query, self._catalog, self, read(QueryTableRequest, request))

    def explain_table_query_plan(self, request: ExplainTableQueryPlanRequest) -> str:
        """See :func:`lancepart.catalog.query.explain`."""
        return run(query.explain, self._catalog, self, read(ExplainTableQueryPlanRequest, request))

    def analyze_table_query_plan(self, request: AnalyzeTableQueryPlanRequest) -> str:
        """See :func:`lancepart.catalog.query.analyze`."""
        return run(query.analyze, self._catalog, self, read(AnalyzeTableQueryPlanRequest, request))

    def create_table_index(self, request: CreateTableIndexRequest) -> CreateTableIndexResponse:
        """See :func:`lancepart.catalog.indices.create`."""
        return run(indices.create, self._catalog, self, read(CreateTableIndexRequest, request))

    def create_table_scalar_index(self, request: CreateTableIndexRequest) -> CreateTableScalarIndexResponse:
        """See :func:`lancepart.catalog.indices.create_scalar`."""
        return run(indices.create_scalar, self._catalog, self, read(CreateTableIndexRequest, request))

    def list_table_indices(self, request: ListTableIndicesRequest) -> ListTableIndicesResponse:
        """See :func:`lancepart.catalog.indices.list_indices`."""
        return run(indices.list_indices, self._catalog, self, read(ListTableIndicesRequest, request))

    def describe_table_index_stats(self, request: DescribeTableIndexStatsRequest) -> DescribeTableIndexStatsResponse:
        """See :func:`lancepart.catalog.indices.describe_stats`."""
        return run(indices.describe_stats, self._catalog, self, read(DescribeTableIndexStatsRequest, request))

    def drop_table_index(self, request: DropTableIndexRequest) -> DropTableIndexResponse:
        """See :func:`lancepart.catalog.indices.drop`."""
        return run(indices.drop, self._catalog, self, read(DropTableIndexRequest, request))

    def get_table_stats(self, request: GetTableStatsRequest) -> GetTableStatsResponse:
        """See :func:`lancepart.catalog.indices.table_stats`."""
        return run(indices.table_stats, self._catalog, self, read(GetTableStatsRequest, request))

    def alter_table_add_columns(self, request: AlterTableAddColumnsRequest) -> AlterTableAddColumnsResponse:
        """See :func:`lancepart.catalog.schema_changes.add`."""
        return run(schema_changes.add, self._catalog, self, read(AlterTableAddColumnsRequest, request))

    def alter_table_alter_columns(self, request: AlterTableAlterColumnsRequest) -> AlterTableAlterColumnsResponse:
        """See :func:`lancepart.catalog.schema_changes.alter`."""
        return run(schema_changes.alter, self._catalog, self, read(AlterTableAlterColumnsRequest, request))

    def alter_table_drop_columns(self, request: AlterTableDropColumnsRequest) -> AlterTableDropColumnsResponse:
        """See :func:`lancepart.catalog.schema_changes.drop`."""
        return run(schema_changes.drop, self._catalog, self, read(AlterTableDropColumnsRequest, request))

    def update_table_schema_metadata(
        self, request: UpdateTableSchemaMetadataRequest
    ) -> UpdateTableSchemaMetadataResponse:
        """See :func:`lancepart.catalog.schema_changes.update_schema_metadata`."""
        return run(
            schema_changes.update_schema_metadata, self._catalog, self, read(UpdateTableSchemaMetadataRequest, request)
        )

    def update_field_metadata(self, request: UpdateFieldMetadataRequest) -> UpdateFieldMetadataResponse:
        """See :func:`lancepart.catalog.schema_changes.update_field_metadata`."""
        return run(schema_changes.update_field_metadata, self._catalog, self, read(UpdateFieldMetadataRequest, request))

    def list_table_tags(self, request: ListTableTagsRequest) -> ListTableTagsResponse:
        """See :func:`lancepart.catalog.tags.list_all`."""
        return run(tags.list_all, self._catalog, self, read(ListTableTagsRequest, request))

    def get_table_tag_version(self, request: GetTableTagVersionRequest) -> GetTableTagVersionResponse:
        """See :func:`lancepart.catalog.tags.version`."""
        return run(tags.version, self._catalog, self, read(GetTableTagVersionRequest, request))

    def create_table_tag(self, request: CreateTableTagRequest) -> CreateTableTagResponse:
        """See :func:`lancepart.catalog.tags.create`."""
        return run(tags.create, self._catalog, self, read(CreateTableTagRequest, request))

    def update_table_tag(self, request: UpdateTableTagRequest) -> UpdateTableTagResponse:
        """See :func:`lancepart.catalog.tags.update`."""
        return run(tags.update, self._catalog, self, read(UpdateTableTagRequest, request))

    def delete_table_tag(self, request: DeleteTableTagRequest) -> DeleteTableTagResponse:
        """See :func:`lancepart.catalog.tags.delete`."""
        return run(tags.delete, self._catalog, self, read(DeleteTableTagRequest, request))
