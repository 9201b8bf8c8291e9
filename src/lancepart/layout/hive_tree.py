"""The tree of a Hive-style table: found in the catalog's manifest, or by listing directories where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError, TableNotFoundError
from lancepart.format.names import LOCATION, OBJECT_ID, TABLE, of_type, partition_column
from lancepart.layout import hive
from lancepart.layout.hive_bare import inferred
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model import hive_path
from lancepart.model.aliases import JsonObject
from lancepart.model.ids import object_id
from lancepart.model.partition_keys import value_keys, value_texts
from lancepart.model.spec import PartitionField
from lancepart.model.transforms.hive import FloorBucket, Hash, Unknown
from lancepart.storage.dataset import Dataset
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Row
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot, beneath

Found = tuple[str, str]
"""A leaf's path beneath its table, names joined by ``$``, and its location."""

_TEXT = pa.string()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What was discovered: the table's definition, and its leaves with their partition values."""

    metadata: TableMetadata
    keys: tuple[str, ...]
    leaves: pa.Table


class TreeSnapshot(Snapshot):
    """A catalog's manifest at one version, seen as the tree of one table in it."""

    def __init__(self, handle: Dataset | None, root: Root, namespace: tuple[str, ...]) -> None:
        super().__init__(handle, root)
        self.namespace = namespace
        self.first_version = self.version

    @property
    def is_bare(self) -> bool:
        """Whether there is no manifest: then the tree can only be read."""
        return self.handle is None

    @cached_property
    def tree(self) -> Tree:
        """Discover the table once a version."""
        if self.is_bare:
            found = list(_listed(self.root, self.namespace))
            if not found:
                raise TableNotFoundError(f"there is no partitioned table at {self.root.uri!r}")
            metadata, keys = inferred(self.root, [path.split("$") for path, _ in found], found[0][1])
            return _tree(metadata, keys, found, "$".join(self.namespace))
        properties = self.table_properties
        if not hive.is_hive(properties):
            raise TableNotFoundError(f"there is no Hive-style table at {self.root.uri!r} any more: open it again")
        schema, columns = hive.from_properties(properties)
        metadata = hive.as_metadata(schema, columns)
        keys = tuple(column.key for column in columns)
        return _tree(metadata, keys, self._registered(), "$".join(self.namespace))

    @property
    def table_properties(self) -> dict[str, str]:
        """The properties of the namespace that is the table."""
        return namespace_properties(self, self.namespace)

    def _registered(self) -> list[Found]:
        prefix = object_id(self.namespace)
        below = f" AND {beneath(prefix)}" if prefix else ""
        rows = self.scan(f"{of_type(TABLE)}{below}", columns=[OBJECT_ID, LOCATION])
        assert rows is not None
        cut = len(prefix) + 1 if prefix else 0
        pairs = zip(rows.column(OBJECT_ID).to_pylist(), rows.column(LOCATION).to_pylist(), strict=True)
        found = {path[cut:]: location for path, location in pairs if "=" in path[cut:]}
        lost = [path for path, location in found.items() if location is None]
        if lost:
            raise InvalidTableStateError(f"leaf {lost[0]!r} has no location in __manifest")
        return sorted(found.items())


class TreeManifest:
    """One Hive-style table in a catalog; the discovered leaves are cached until the manifest's version changes."""

    def __init__(self, root: Root, namespace: Sequence[str] = ()) -> None:
        self.root = root
        self.catalog = Manifest(root)
        self.namespace = tuple(namespace)
        self._last: TreeSnapshot | None = None

    def snapshot(self, version: int | None = None) -> TreeSnapshot:
        """The catalog at a version; the leaves are always the latest, since each has versions of its own."""
        base = self.catalog.snapshot(version)
        fresh = TreeSnapshot(base.handle, base.root, self.namespace)
        last = self._last
        if last is not None and not fresh.is_bare and last.first_version == fresh.version and "tree" in vars(last):
            vars(fresh)["tree"] = last.tree
        self._last = fresh
        return fresh


def namespace_properties(snapshot: Snapshot, namespace: Sequence[str]) -> dict[str, str]:
    """The properties of a namespace: the manifest's map for the root, a row's metadata for others."""
    if not namespace:
        return dict(snapshot.properties)
    row: Row | None = snapshot.row(object_id(namespace))
    return {key: value for key, value in ((row.metadata if row else None) or {}).items() if isinstance(value, str)}


def _listed(root: Root, namespace: Sequence[str]) -> Iterator[Found]:
    """Leaves by directories: ``key=value`` ones, down to those that end in ``.lance``."""
    files, waiting = Files(root), ["/".join(namespace)]
    start = len(waiting[0]) + 1 if namespace else 0
    while waiting:
        directory = waiting.pop()
        for name in sorted(files.children(directory)[0], reverse=True):
            place = f"{directory}/{name}" if directory else name
            if "=" not in name:
                continue
            if name.endswith(hive_path.SUFFIX):
                yield place[start : -len(hive_path.SUFFIX)].replace("/", "$"), place
            else:
                waiting.append(place)


def is_bare_tree(root: Root, namespace: Sequence[str]) -> bool:
    """Whether a directory looks like a Hive-style tree."""
    return next(_listed(root, namespace), None) is not None


def _tree(metadata: TableMetadata, keys: tuple[str, ...], found: list[Found], prefix: str) -> Tree:
    rows = [_values(path, keys) for path, _ in found]
    columns: JsonObject = {
        OBJECT_ID: pa.array([f"{prefix}${path}" if prefix else path for path, _ in found], _TEXT),
        LOCATION: pa.array([location for _, location in found], _TEXT),
    }
    fields: list[PartitionField] = []
    for index, field in enumerate(metadata.spec.fields):
        texts = [row[index] for row in rows]
        values, known = _typed(texts, field, keys[index])
        columns[partition_column(field.field_id)] = values
        fields.append(known)
    spec = replace(metadata.spec, fields=tuple(fields))
    return Tree(metadata=replace(metadata, specs=(spec,)), keys=keys, leaves=pa.table(columns))


def _values(path: str, keys: tuple[str, ...]) -> list[str | None]:
    pairs = [hive_path.split(name) for name in path.split("$")]
    known = dict(pair for pair in pairs if pair is not None)
    if len(pairs) != len(keys) or set(known) != set(keys):
        raise InvalidTableStateError(f"leaf {path!r} does not fit the table's levels {', '.join(keys)}")
    return [known[key] for key in keys]


def _typed(texts: list[str | None], field: PartitionField, key: str) -> tuple[pa.Array, PartitionField]:
    """A level's values in their type; a hash of another kind than ours can't be compared, and never prunes."""
    if isinstance(field.transform, Hash):
        texts = [None if text is None else text.lower() for text in texts]
        if any(text is not None and len(text) != 8 for text in texts):
            field = replace(field, transform=Unknown())
    values = hive_path.parse(texts, field.result_type, key=key)
    if isinstance(field.transform, FloorBucket) and len(values):
        low, high = pc.min_max(values).as_py().values()
        if low is not None and not 0 <= low <= high < field.transform.num_buckets:
            raise InvalidTableStateError(
                f"a leaf has {key}={low if low < 0 else high}, but there are {field.transform.num_buckets} buckets"
            )
    return values, field


def tree_leaves(tree: Tree, rows: pa.Table) -> tuple[Leaf, ...]:
    """Rows of discovered leaves as values, each with the columns that its path holds."""
    fields = tree.metadata.spec.fields
    columns = [rows.column(partition_column(field.field_id)).combine_chunks() for field in fields]
    exact = [
        (index, field.source_ids[0]) for index, field in enumerate(fields) if hive.function_of(field) == "identity"
    ]
    return tuple(
        Leaf(
            object_id=identifier,
            spec_id=1,
            location=location,
            key=key,
            values=shown,
            constants=tuple((number, columns[index][at]) for index, number in exact),
        )
        for at, (identifier, location, key, shown) in enumerate(
            zip(
                rows.column(OBJECT_ID).to_pylist(),
                rows.column(LOCATION).to_pylist(),
                zip(*map(value_keys, columns), strict=True),
                zip(*map(value_texts, columns), strict=True),
                strict=True,
            )
        )
    )
