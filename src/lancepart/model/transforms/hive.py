"""The functions of the Hive-style layout that differ from the current transforms of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.composite import murmur3_any
from lancepart.model.hashing import murmur3
from lancepart.model.transforms.base import Transform
from lancepart.model.transforms.bucket import Bucket
from lancepart.model.transforms.truncate import Truncate
from lancepart.model.values import decoded, logical_type, truncated_decimals, truncated_integers


@dataclass(frozen=True, slots=True)
class FloorBucket(Bucket):
    """One of ``num_buckets`` numbers: the signed hash modulo their count, never negative.

    >>> FloorBucket(num_buckets=16).apply([pa.array([34, 6018035362574630912, None])]).to_pylist()
    [3, 0, None]
    """

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The bucket as int32."""
        hashes = murmur3(arrays[0])
        numbers = pc.fill_null(hashes, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        buckets = np.mod(numbers, self.num_buckets).astype(np.int32)
        return pa.array(buckets, mask=hashes.is_null().to_numpy(zero_copy_only=False))

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """By the ``murmur3`` function."""
        count = self.num_buckets
        return f"((murmur3({columns[0]}) % {count}) + {count}) % {count}"

    @property
    def spark_function(self) -> str | None:
        """None: the jar's buckets are those of the current layout."""
        return None


@dataclass(frozen=True, slots=True)
class FloorTruncate(Truncate):
    """The first ``width`` characters of a text, or a number rounded down to a multiple of ``width``.

    >>> FloorTruncate(width=10).apply([pa.array([123, -7])]).to_pylist()
    [120, -10]
    """

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The shortened values, in the source's type."""
        array = decoded(arrays[0])
        if pa.types.is_integer(array.type):
            return truncated_integers(array, self.width, floor=True)
        if pa.types.is_decimal(array.type):
            return truncated_decimals(array, self.width, floor=True)
        return Truncate(self.width).apply([array])

    def cut(self, key: int, step: int) -> int:
        """A number less its remainder."""
        return key - key % step

    def source_span(self, value: int) -> tuple[int, int] | None:
        """The numbers that become a value."""
        return value, value + self.width

    @property
    def spark_function(self) -> str | None:
        """None: the jar truncates as the current layout does."""
        return None


@dataclass(frozen=True, slots=True)
class Hash(Transform):
    """The unsigned hash in eight hexadecimal digits, of values of any type.

    >>> Hash().apply([pa.array(["iceberg", None])]).to_pylist()
    ['481f22d9', None]
    """

    name = "hash"
    suffix = "hash"
    is_uniform_only = True

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The digits; each distinct hash is formatted once."""
        array = arrays[0]
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), pa.string())
        coded = murmur3_any(array).dictionary_encode()
        digits = [None if number is None else f"{number & 0xFFFFFFFF:08x}" for number in coded.dictionary.to_pylist()]
        return pa.array(digits, pa.string()).take(coded.indices)

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Always text."""
        return pa.string()

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """By the ``murmur3`` function."""
        return f"lpad(to_hex(murmur3({columns[0]}) & 4294967295), 8, '0')"

    def accepts(self, source_type: pa.DataType) -> bool:
        """Everything."""
        return True

    @property
    def spark_function(self) -> str | None:
        """None: the jar has no such function."""
        return None


@dataclass(frozen=True, slots=True)
class Unknown(Transform):
    """A function whose parameter is not known, as in a bare tree: its values are shown, and never a reason to skip."""

    name = "unknown"
    suffix = ""
    is_known = False

    def apply(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """Refused: it can't be computed."""
        raise InvalidInputError("the tree does not say what this partition value is made by")

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """The source's own."""
        return logical_type(source_types[0])

    def sql(self, columns: Sequence[str], source_type: pa.DataType | None = None) -> str:
        """Refused: it can't be computed."""
        return str(self.apply([]))

    def accepts(self, source_type: pa.DataType) -> bool:
        """Everything."""
        return True

    @property
    def spark_function(self) -> str | None:
        """None: it can't be computed."""
        return None
