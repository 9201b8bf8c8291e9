"""The leaves of a table as the commands show them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lancepart.report.values import text
from lancepart.table import PartitionedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafInfo:
    """One leaf: its partition values and its size; a leaf that can't be opened has none."""

    spec_id: int
    object_id: str
    values: Mapping[str, str | None]
    rows: int | None
    bytes: int | None
    fragments: int | None

    @property
    def label(self) -> str:
        """The leaf's values for a person."""
        return f"v{self.spec_id}  {text(self.values)}"

    @property
    def order(self) -> tuple[object, ...]:
        """A key that sorts leaves by their spec and values, numbers by size and NULL last."""
        return (self.spec_id, *map(_order, self.values.values()), self.object_id)

    def measure(self, what: str) -> int:
        """Its rows, bytes or fragments; 0 where they are not known."""
        return {"rows": self.rows, "bytes": self.bytes, "fragments": self.fragments}[what] or 0

    def to_json(self) -> dict[str, object]:
        """The leaf as JSON."""
        return {
            "spec_id": self.spec_id,
            "partition": dict(self.values),
            "object_id": self.object_id,
            "rows": self.rows,
            "bytes": self.bytes,
            "fragments": self.fragments,
        }


def _order(value: str | None) -> tuple[bool, float, str]:
    is_number = value is not None and re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
    return value is None, float(value or 0) if is_number else math.inf, value or ""


def leaves_of(table: PartitionedTable) -> list[LeafInfo]:
    """All leaves of a table."""
    return [
        LeafInfo(
            spec_id=row["spec_id"],
            object_id=row["object_id"],
            values=dict(row["partition"]),
            rows=row["rows"],
            bytes=row["bytes"],
            fragments=row["fragments"],
        )
        for row in table.inspect.partitions().to_pylist()
    ]


def total(leaves: Sequence[LeafInfo], what: str) -> int:
    """The rows, bytes or fragments of some leaves together."""
    return sum(leaf.measure(what) for leaf in leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A level of the partition tree, with what is beneath it."""

    name: str
    leaves: int
    rows: int
    bytes: int
    children: tuple[Branch, ...]

    @classmethod
    def of(cls, name: str, leaves: Sequence[LeafInfo], level: int = 0) -> Branch:
        """Group leaves by their values, level by level."""
        groups: dict[tuple[str, str | None], list[LeafInfo]] = {}
        for leaf in sorted(leaves, key=lambda leaf: leaf.order) if level == 0 else leaves:
            if level < len(leaf.values):
                groups.setdefault(list(leaf.values.items())[level], []).append(leaf)
        children = [
            cls.of(f"{field}={'NULL' if value is None else value}", members, level + 1)
            for (field, value), members in groups.items()
        ]
        return cls(
            name=name,
            leaves=len(leaves),
            rows=total(leaves, "rows"),
            bytes=total(leaves, "bytes"),
            children=tuple(children),
        )

    def to_json(self) -> dict[str, object]:
        """The level and all beneath it as JSON."""
        own = {"name": self.name, "leaves": self.leaves, "rows": self.rows, "bytes": self.bytes}
        return {**own, "children": [child.to_json() for child in self.children]}
