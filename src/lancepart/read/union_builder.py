"""The fragments of leaves as a union names them, with columns of its own where a leaf has other ones than the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.columns import AS_BYTES, bare, constant, is_blob, is_marked, physical_name, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata, without_ids
from lancepart.model.schema import field_id
from lancepart.storage import leaf_handle, union
from lancepart.storage.leaf_handle import Fragment, LeafHandle, LeafShape, Offsets
from lancepart.storage.translate import storage_errors
from lancepart.storage.union import BasePath, EmptyUnion, File

_BLOB_MARK = b"lance-encoding:blob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A leaf with its fragments, and its columns matched to the table's; ``shown`` are the offsets of the rows to show.

    These are given by fragment, None for all rows that are not deleted. ``open`` gives the leaf itself, which is not
    needed where the manifest records its fragments; ``bases`` are other directories that it names files of.
    """

    leaf: Leaf
    open: Callable[[], LeafHandle]
    fragments: tuple[Fragment, ...]
    shape: LeafShape
    matching: Matching
    bases: Mapping[int, BasePath] = dataclass_field(default_factory=dict)
    shown: Mapping[int, Offsets] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionColumns:
    """How a leaf's files give the union's columns: by their ids, or as columns that must be computed."""

    ids: Mapping[int, int]
    computed: tuple[tuple[str, pa.Field], ...]


def live_fragments(source: Source) -> list[Fragment]:
    """The fragments of a leaf that have rows."""
    return [item for item in source.fragments if item.num_rows]


def schema_of(metadata: TableMetadata, sources: Sequence[Source]) -> pa.Schema:
    """The table's columns under names that Lance can have, blobs in the encoding that the leaves have."""
    taken: set[str] = set()
    fields = []
    for field in metadata.schema:
        name = physical_name(field.name, field_id(field) or 0, taken)
        taken.add(name)
        fields.append(_encoded(without_ids(field), field_id(field), sources).with_name(name))
    return pa.schema(fields)


def _encoded(field: pa.Field, number: int | None, sources: Sequence[Source]) -> pa.Field:
    """A field that holds blobs as the leaves hold them: bytes beside the file, or in it, or plain."""
    if not is_blob(field.type) and not is_marked(field):
        return field
    found = [stored for source in sources if (stored := _stored(source, number)) is not None]
    kinds = {(is_blob(stored.type), is_marked(stored)) for stored in found}
    if len(kinds) > 1:
        raise UnsupportedOperationError(
            f"column {field.name!r} holds blobs in several encodings, which one Lance dataset can't have: "
            "rewrite the partitions that were written first"
        )
    if not found:
        return field
    kept = {key: value for key, value in (field.metadata or {}).items() if key != _BLOB_MARK}
    marked = {_BLOB_MARK: b"true"} if is_marked(found[0]) else {}
    return pa.field(field.name, found[0].type, field.nullable, {**kept, **marked} or None)


def _stored(source: Source, number: int | None) -> pa.Field | None:
    """The leaf's own field for a column of the table."""
    name = None if number is None else source.matching.names.get(number)
    return None if name is None else source.shape.schema.field(name)


def has_blobs(metadata: TableMetadata) -> bool:
    """Whether a column holds blobs, whose encoding depends on which leaves there are."""
    return any(is_blob(each.type) or is_marked(each) for each in metadata.schema)


class Builder:
    """Makes a union's fragments out of those of leaves."""

    def __init__(self, metadata: TableMetadata, empty: EmptyUnion, *, copying: bool = True) -> None:
        self.metadata, self.empty, self.copying = metadata, empty, copying
        shape = empty.shape
        self.columns = list(zip(metadata.schema, shape.schema, shape.ids, strict=True))
        self._columns: dict[tuple[int, int], tuple[Source, UnionColumns]] = {}

    def fragments(
        self, source: Source, bases: Mapping[int | None, int], numbered: Sequence[tuple[int, Fragment]]
    ) -> list[tuple[Fragment, Offsets]]:
        """The fragments of a leaf under their numbers in the union, each with the offsets of rows to hide."""
        columns = self.columns_of(source)
        if columns.computed and not self.copying:
            raise _refused(source.leaf, "columns of it would have to be rewritten")
        made = []
        for number, item in numbered:
            shown = self.shown(source, item)
            own = self._computed(source, item, columns.computed)
            try:
                part = union.fragment(item, number, fields=columns.ids, bases=bases, own=own)
            except UnsupportedOperationError as error:
                raise _refused(source.leaf, str(error)) from None
            hidden = (
                np.array([], dtype=np.int64) if shown is None else union.hidden_offsets(int(item.physical_rows), shown)
            )
            made.append((part, hidden))
        return made

    def columns_of(self, source: Source) -> UnionColumns:
        """Which of the union's columns a leaf's files hold as they are, and which must be computed of them.

        Leaves that share their columns are looked at once; keeping them keeps their addresses in memory.
        """
        key = id(source.shape), id(source.matching)
        if key not in self._columns:
            self._columns[key] = (source, self._found_columns(source))
        return self._columns[key][1]

    def _found_columns(self, source: Source) -> UnionColumns:
        ids: dict[int, int] = {}
        computed = []
        native = {item[0]: item for item in source.shape.ids}
        for wanted, shown, place in self.columns:
            stored = _stored(source, field_id(wanted))
            if stored is None:
                held = source.matching.constants.get(field_id(wanted) or 0)
                computed += [(shown.name, wanted)] if held is not None and held.is_valid else []
                continue
            mapping = union.field_mapping(native[stored.name], place) if _is_same(stored, shown) else None
            if mapping is not None:
                ids |= mapping
            elif is_blob(shown.type) or is_blob(stored.type) or is_marked(stored):
                raise _refused(source.leaf, f"it stores the blobs of {wanted.name!r} in another way")
            else:
                computed.append((shown.name, wanted))
        return UnionColumns(ids=ids, computed=tuple(computed))

    def shown(self, source: Source, item: Fragment) -> Offsets | None:
        """The offsets of a fragment's rows that the union shows, None for all."""
        if source.shown is not None:
            return source.shown[item.id]
        return None if item.deletion_file is None else leaf_handle.live_offsets(source.open(), item.id)

    def _computed(self, source: Source, item: Fragment, computed: Sequence[tuple[str, pa.Field]]) -> list[File]:
        """A data file with the columns that are not in the leaf's as the table shows them: of its path, or widened."""
        if not computed:
            return []
        fields = [wanted for _, wanted in computed]
        rows = int(item.physical_rows)
        names = [stored.name for field in fields if (stored := _stored(source, field_id(field))) is not None]
        if names:
            columns = self._read(source, item, fields, names)
        else:
            columns = [constant(source.matching.constants[field_id(field) or 0], field.type, rows) for field in fields]
        schema = pa.schema([self.empty.shape.schema.field(name) for name, _ in computed])
        return [self.empty.write_columns(pa.table(columns, schema=schema))]

    def _read(self, source: Source, item: Fragment, fields: Sequence[pa.Field], names: list[str]) -> list[pa.Array]:
        """Columns of a fragment in the table's types; deleted rows may have any value."""
        handle = source.open()
        with storage_errors(f"read the leaf at {source.leaf.location!r}", self.empty.root):
            found = handle.scanner(
                columns=names,
                with_row_address=True,
                fragments=leaf_handle.fragments_of(handle, [item.id]),
                **AS_BYTES,
            ).to_table()
        offsets = (found.column("_rowaddr").to_numpy() & np.uint64(0xFFFFFFFF)).astype(np.int64)
        positions = np.zeros(int(item.physical_rows), dtype=np.int64)
        positions[offsets] = np.arange(len(offsets))
        batch = found.combine_chunks().to_batches()[0]
        shown = to_table_columns(batch, fields, source.matching)
        return [pc.take(column, pa.array(positions)) for column in shown.columns]


def _refused(item: Leaf, reason: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"leaf {item.object_id!r} can't be in a union: {reason}")


def _is_same(stored: pa.Field, shown: pa.Field) -> bool:
    """Whether a leaf's files hold a column just as the union's would."""
    same_kind = is_blob(stored.type) == is_blob(shown.type) and is_marked(stored) == is_marked(shown)
    return same_kind and (is_blob(stored.type) or bare(stored.type) == bare(shown.type))
