"""Every key and column name that is written to disk, defined once: other programs read them."""

from __future__ import annotations

import re

import pyarrow as pa

OWN = "lancepart."

OBJECT_ID, OBJECT_TYPE, LOCATION, METADATA = "object_id", "object_type", "location", "metadata"
BASE_OBJECTS = "base_objects"

NAMESPACE = "namespace"
TABLE = "table"
TABLE_VERSION = "table_version"
DATASET = "dataset"

READ_VERSION = pa.field("read_version", pa.uint64())
READ_BRANCH = pa.field("read_branch", pa.string())
READ_TAG = pa.field("read_tag", pa.string())
PARTITION_PREFIX = "partition_field_"

SCHEMA = "schema"
SPEC_PREFIX = "partition_spec_v"
FORMAT = f"{OWN}format"
FORMAT_VERSION = 1
FLOORS = "floors"
FEATURES = frozenset({"derived-names", "leaf-field-ids", FLOORS})
MODE = f"{OWN}transactions"
SALT = f"{OWN}salt"
LAST_FIELD = f"{OWN}max_field_id"
PAST_NAMES = f"{OWN}past_names"
ORIGIN = f"{OWN}origin"
CHANGE = f"{OWN}change"
REQUIRED_COLUMNS = f"{OWN}columns"

FENCE = f"{OWN}fence"
OLDEST = f"{OWN}oldest"
FLOOR = f"{OWN}floor"
ONCE = f"{OWN}once"
WRITER = f"{ONCE}$writer"
AGE, ENTERED = f"{OWN}age", f"{OWN}entered"
WAITING = f"{OWN}waiting"

OWN_ROOT = f"{OWN}root"
MOVED_ROOT = f"{OWN}table"
IDENTITY = f"{OWN}id"

INDICES = f"{OWN}indices"
UPGRADE = f"{OWN}upgrade"
UPGRADED = f"{OWN}upgraded"
OLD_TREE = f"{OWN}old_tree"

UNION = f"{OWN}union."
UNION_OF, UNION_ROOT, UNION_SNAPSHOT = f"{OWN}table", f"{OWN}root", f"{OWN}snapshot"
UNION_INDICES, UNION_COLUMNS = f"{OWN}union_indices", f"{OWN}union_columns"
NEXT_FRAGMENT = f"{OWN}next_fragment"
NEXT_NUMBER = f"{OWN}next_number"

LEAF_ID = "lancepart:field_id"

MANIFEST_PATH, MANIFEST_SIZE, E_TAG = "manifest_path", "manifest_size", "e_tag"
STAGED_AS, NAMING_SCHEME, TIMESTAMP_MILLIS = "staged_as", "naming_scheme", "timestamp_millis"
VERSION_METADATA = "metadata"

_VERSION = re.compile(r"(.+)\$([0-9]+)", re.DOTALL)


def of_type(object_type: str) -> str:
    """A filter for the rows of ``__manifest`` of one type.

    >>> of_type(TABLE)
    "object_type = 'table'"
    """
    return f"{OBJECT_TYPE} = '{object_type}'"


def spec_namespace(spec_id: int) -> str:
    """The id of the namespace of a spec version, in which its partitions are.

    >>> spec_namespace(2)
    'v2'
    """
    return f"v{spec_id}"


def partition_column(field_id: str) -> str:
    """The manifest's column for a partition field."""
    return f"{PARTITION_PREFIX}{field_id}"


def fence_id(first_spec: int) -> str:
    """The row of the first spec's namespace: commits meet there that depend on what does not exist yet.

    >>> fence_id(1)
    'v1'
    """
    return spec_namespace(first_spec)


def version_id(leaf: str, number: int) -> str:
    """The id of the row that records a leaf's version.

    >>> version_id("v1$k7$dataset", 2)
    'v1$k7$dataset$2'
    """
    return f"{leaf}${number}"


def key_id(digest: str) -> str:
    """The id of the row of an idempotency key, by the key's hash."""
    return f"{ONCE}${digest}$1"


def writer_id(transaction: str) -> str:
    """The id of the row of a long write.

    >>> writer_id("4f1c")
    'lancepart.once$writer4f1c$1'
    """
    return f"{WRITER}{transaction}$1"


def is_key(object_id: str) -> bool:
    """Whether a row is that of an idempotency key or of a long write."""
    return object_id.startswith(f"{ONCE}$")


def of_writers() -> str:
    """A filter for the rows of long writes."""
    return f"{OBJECT_ID} > '{WRITER}' AND {OBJECT_ID} < '{WRITER}~'"


def of_ids(literals: str) -> str:
    """A filter for the rows of some ids, which are SQL.

    >>> of_ids("'v1', 'v2'")
    "object_id IN ('v1', 'v2')"
    """
    return f"{OBJECT_ID} IN ({literals})"


def split_version_id(object_id: str) -> tuple[str, int] | None:
    """The leaf and the number in the id of a ``table_version`` row; None if it is no such id.

    >>> split_version_id("v1$k7$dataset$2"), split_version_id("v1$k7$dataset")
    (('v1$k7$dataset', 2), None)
    """
    found = _VERSION.fullmatch(object_id)
    return None if found is None else (found[1], int(found[2]))
