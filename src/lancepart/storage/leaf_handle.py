"""Leaves that are open at one version, and reading their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict, Unpack

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import DataFile, FragmentMetadata, LanceFragment

from lancepart.errors import InternalError, InvalidInputError
from lancepart.model.aliases import Value
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import UnreadableError, storage_errors

if TYPE_CHECKING:
    from lance import DatasetBasePath, LanceScanner, Session
    from lance.lance.schema import LanceField
    from lance.schema import LanceSchema

    from lancepart.storage.dataset import IndexDescription


BLOBS_AS_BYTES: Literal["all_binary"] = "all_binary"
_RESCUE = (
    "the table's manifest names this version: bring its file {} back, or delete or overwrite the whole partition, "
    "or roll back; table.inspect.broken() lists all leaves that can't be read"
)

Fragment: TypeAlias = FragmentMetadata
"""What Lance says of one fragment: its files, its rows and which of them are deleted."""

Offsets: TypeAlias = npt.NDArray[np.int64]
"""Offsets of rows in one fragment."""

Addresses: TypeAlias = npt.NDArray[np.uint64]
"""Row addresses: fragment and offset in one number each."""

NativeIds: TypeAlias = tuple[str, int, tuple["NativeIds", ...]]
"""A column's name, Lance's own id of it, and the same of the fields inside it."""


def data_path(file: DataFile) -> str:
    """The path of a data file; the property of Lance's class makes another class at each call, which takes longer."""
    known: object = vars(file).get("_path")
    return known if isinstance(known, str) else str(file.path)


class LeafScanOptions(TypedDict, total=False):
    """What a scan of one leaf reads, and how: those of Lance's options that are used here."""

    columns: list[str] | dict[str, str] | None
    filter: str | None
    limit: int | None
    batch_size: int | None
    batch_readahead: int | None
    fragment_readahead: int | None
    fragments: Iterable[LanceFragment] | None
    nearest: dict[str, Value] | None
    prefilter: bool | None
    fast_search: bool | None
    row_addr_allowlist: bytes | None
    late_materialization: bool | None
    with_row_id: bool | None
    with_row_address: bool | None
    blob_handling: Literal["all_binary"] | None


class LeafHandle(Protocol):
    """A leaf that is open at one version: what the other rooms can do with it. Lance's datasets have these methods."""

    @property
    def uri(self) -> str:
        """Where the leaf is."""

    @property
    def version(self) -> int:
        """The version of the leaf that is open."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of this version."""

    @property
    def lance_schema(self) -> LanceSchema:
        """The columns with Lance's own field ids."""

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether row ids differ from row addresses."""

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """The other directories that files of this version are in."""

    def get_fragments(self) -> list[LanceFragment]:
        """All fragments of this version."""

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """One fragment, if this version has it."""

    def count_rows(self, filter: str | None = None) -> int:
        """How many rows there are, or match a filter."""

    def describe_indices(self) -> list[IndexDescription]:
        """The indices that cover rows of this version."""

    def scanner(self, **options: Unpack[LeafScanOptions]) -> LanceScanner:
        """Read some columns of the rows that match a filter, or that are nearest to a vector."""


def leaf_uri(root: Root, location: str) -> str:
    """The URI of a leaf; a leaf whose row names a forbidden location counts as unreadable, and can be replaced."""
    try:
        return root.uri_of(location)
    except InvalidInputError as error:
        raise UnreadableError(f"a leaf's row in __manifest names no place beneath the root: {error}") from None


def measure(handle: LeafHandle) -> tuple[int, int, int]:
    """The rows, bytes and fragments of a leaf that is open."""
    fragments = handle.get_fragments()
    size = sum(int(file.file_size_bytes or 0) for item in fragments for file in item.metadata.files)
    return sum(item.count_rows() for item in fragments), size, len(fragments)


def fragment_sizes(handle: LeafHandle) -> dict[int, int]:
    """How large the files of each fragment are."""
    return {
        item.fragment_id: sum(int(file.file_size_bytes or 0) for file in item.metadata.files)
        for item in handle.get_fragments()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafShape:
    """The columns of a leaf at one version, with Lance's own ids, by which its files know them."""

    schema: pa.Schema
    ids: tuple[NativeIds, ...]

    @property
    def native_ids(self) -> list[int]:
        """Lance's ids of the top-level columns."""
        return [item[1] for item in self.ids]


def shape_of(handle: LeafHandle) -> LeafShape:
    """Read the columns of an open leaf."""
    return LeafShape(schema=handle.schema, ids=tuple(_ids(field) for field in handle.lance_schema.fields()))


def _ids(field: LanceField) -> NativeIds:
    return (field.name(), field.id(), tuple(_ids(child) for child in field.children()))


def open_leaf(root: Root, location: str, version: int | None, *, session: Session | None = None) -> LeafHandle:
    """Open a leaf at the version that the manifest names, or its latest; a session shares caches with others."""
    return leaf_dataset(root, location, version, session=session)


def leaf_dataset(
    root: Root, location: str, version: int | None, *, session: Session | None = None
) -> lance.LanceDataset:
    """Open a leaf as Lance's own dataset, for the few calls of this package that change it."""
    try:
        with storage_errors(f"open the leaf at {location!r}", root):
            uri, options = leaf_uri(root, location), root.lance_options
            return lance.dataset(uri, version=version, storage_options=options, session=session)
    except UnreadableError as error:
        if version is None:
            raise
        raise type(error)(f"{error}; {_RESCUE.format(_manifest_file(version))}") from None


def _manifest_file(version: int) -> str:
    """The file that a version of a leaf begins with."""
    return f"_versions/d{version}.manifest" if version >> 63 else f"_versions of version {version}"


def missing_files(root: Root, location: str, handle: LeafHandle) -> list[str]:
    """The files that an open version of a leaf needs and that are gone, as paths beneath the root."""
    store = Files(root)
    inside = {
        f"data/{data_path(file)}"
        for fragment in handle.get_fragments()
        for file in fragment.metadata.files
        if getattr(file, "base_id", None) is None
    }
    inside |= {str(found) for fragment in handle.get_fragments() if (found := fragment.deletion_file())}
    return sorted(path for name in inside if not store.exists(path := f"{location}/{name}"))


def addresses(handle: LeafHandle, where: str | None) -> npt.NDArray[np.uint64]:
    """The addresses of the rows that a filter matches."""
    found = handle.scanner(columns=[], filter=where, with_row_address=True).to_table()
    rows: npt.NDArray[np.uint64] = found.column("_rowaddr").to_numpy()
    return rows


def fragment_count(handle: LeafHandle) -> int:
    """How many fragments an open leaf has, without an object for each."""
    if isinstance(handle, lance.LanceDataset):
        return int(handle._ds.count_fragments())
    return len(handle.get_fragments())


def split_addresses(found: npt.NDArray[np.uint64]) -> dict[int, npt.NDArray[np.int64]]:
    """Offsets of rows by fragment."""
    ordered = np.asarray(found, dtype=np.uint64)
    if len(ordered) and (ordered[1:] < ordered[:-1]).any():
        ordered = np.sort(ordered)
    fragments = (ordered >> np.uint64(32)).astype(np.int64)
    offsets = (ordered & np.uint64(0xFFFFFFFF)).astype(np.int64)
    starts: list[int] = []
    if len(ordered):
        starts = np.flatnonzero(np.append(True, fragments[1:] != fragments[:-1])).tolist()
    return {int(fragments[a]): offsets[a:b] for a, b in zip(starts, [*starts[1:], len(ordered)], strict=True)}


def live_offsets(handle: LeafHandle, number: int) -> Offsets:
    """The offsets of the rows of one fragment that are not deleted."""
    found = handle.scanner(columns=[], with_row_address=True, fragments=fragments_of(handle, [number])).to_table()
    offsets: Offsets = (found.column("_rowaddr").to_numpy() & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return offsets


def fragments_of(handle: LeafHandle, numbers: Sequence[int]) -> list[LanceFragment]:
    """Some fragments of an open leaf."""
    return [_fragment(handle, number) for number in numbers]


def _fragment(handle: LeafHandle, number: int) -> LanceFragment:
    found = handle.get_fragment(number)
    if found is None:
        raise InternalError(f"version {handle.version} of the leaf at {handle.uri!r} has no fragment {number}")
    return found


def rows_of(handle: LeafHandle, fragments: Sequence[FragmentMetadata]) -> Iterator[pa.RecordBatch]:
    """The live rows of some fragments of an open leaf, batch by batch."""
    chosen = fragments_of(handle, [item.id for item in fragments])
    return handle.scanner(fragments=chosen, blob_handling=BLOBS_AS_BYTES).to_batches()


def rows_at(handle: LeafHandle, row_offsets: Mapping[int, Offsets]) -> Iterator[pa.RecordBatch]:
    """The rows at some offsets of an open leaf, batch by batch."""
    for number, offsets in row_offsets.items():
        chosen = fragments_of(handle, [number])
        for batch in handle.scanner(fragments=chosen, with_row_address=True, blob_handling=BLOBS_AS_BYTES).to_batches():
            own = (batch.column("_rowaddr").to_numpy() & np.uint64(0xFFFFFFFF)).astype(np.int64)
            kept = batch.filter(pa.array(np.isin(own, offsets)))
            if kept.num_rows:
                yield kept.drop_columns(["_rowaddr"])
