"""The messages of the planning service that concern the catalog: its tables, namespaces and procedures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lancepart.model.aliases import JsonMapping
from lancepart.spark.protocol import Message
from lancepart.spark.table_messages import ReadOnlySource, TableInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRequest(Message):
    """A namespace or a table of the catalog."""

    id: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesReply(Message):
    """Names of tables or of namespaces."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesReply(Message):
    """Properties of a namespace."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesRequest(Message):
    """Properties to set and, where the value is null, to remove."""

    id: tuple[str, ...]
    properties: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropNamespaceRequest(Message):
    """A namespace to be dropped, with everything in it if ``cascade``."""

    id: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest(Message):
    """A table of the catalog, as it is or at a version, a tag or a moment (microseconds since 1970)."""

    id: tuple[str, ...]
    version: str | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest(Message):
    """A table to be made: ``mode`` is create, replace or create_or_replace."""

    id: tuple[str, ...]
    mode: str
    schema: JsonMapping
    by: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable(Message):
    """A table that has its directory and not yet its row in the catalog."""

    id: tuple[str, ...]
    location: str
    properties: Mapping[str, str]
    replaced: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReply(Message):
    """A table of the catalog with its ``path`` and metadata, or one that can only be read.

    ``plain`` is the directory of a plain Lance table in the warehouse.
    """

    schema: JsonMapping
    properties: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None
    table: TableInfo | None = None
    plain: str | None = None
    read_only: ReadOnlySource | None = None
    staged: StagedTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedReply(Message):
    """Whether there was a table to drop."""

    dropped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest(Message):
    """A table and its new name."""

    id: tuple[str, ...]
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRequest(Message):
    """Changes of a table's columns and properties, in their order."""

    id: tuple[str, ...]
    changes: tuple[JsonMapping, ...]


@dataclass(frozen=True, slots=True)
class Parameter(Message):
    """A parameter of a procedure: its type and, unless it must be given, its default, as Spark spells them."""

    name: str
    comment: str
    type: str = "string"
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureInfo(Message):
    """What Spark must know of a procedure to bind a call."""

    comment: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProceduresReply(Message):
    """All procedures, and the namespace that they are in."""

    namespace: str
    procedures: Mapping[str, ProcedureInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest(Message):
    """A procedure and its arguments; ``catalog`` is the name under which Spark knows the warehouse.

    ``parallelism`` is how many tasks Spark runs at a time.
    """

    procedure: str
    catalog: str
    arguments: Mapping[str, Any]
    parallelism: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply(Message):
    """The rows that a procedure returns."""

    schema: JsonMapping
    rows: tuple[Any, ...]
