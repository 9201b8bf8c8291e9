import lance
from lance_namespace import CreateNamespaceRequest, CreateTableRequest, DescribeTableRequest, RenameTableRequest

from tests.support.catalogs import Place, ipc, rows


def test_a_table_is_created_renamed_and_opened_by_plain_pylance(place: Place) -> None:
    catalog = place.catalog()
    catalog.create_namespace(CreateNamespaceRequest(id=["ns"]))
    catalog.create_table(CreateTableRequest(id=["t"]), ipc(rows(1, 2)))
    catalog.rename_table(RenameTableRequest(id=["t"], new_table_name="50% off 😀", new_namespace_id=["ns"]))

    location = catalog.describe_table(DescribeTableRequest(id=["ns", "50% off 😀"])).location

    assert lance.dataset(location, storage_options=place.storage_options).count_rows() == 2
