"""The errors a caller can see: ``lance_namespace``'s own, plus the few that it lacks."""

from __future__ import annotations

import re
from enum import IntEnum

from lance_namespace.errors import (
    ConcurrentModificationError,
    ErrorCode,
    InternalError,
    InvalidInputError,
    InvalidTableStateError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
    TableNotFoundError,
    TableSchemaValidationError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)

__all__ = [
    "CommitConflictError",
    "ConcurrentModificationError",
    "ErrorCode",
    "InternalError",
    "InvalidInputError",
    "InvalidTableStateError",
    "LanceNamespaceError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
    "PermissionDeniedError",
    "ServiceUnavailableError",
    "SpecErrorCode",
    "TableAlreadyExistsError",
    "TableBranchNotFoundError",
    "TableColumnNotFoundError",
    "TableIndexAlreadyExistsError",
    "TableIndexNotFoundError",
    "TableNotFoundError",
    "TableSchemaValidationError",
    "TableTagAlreadyExistsError",
    "TableTagNotFoundError",
    "TableVersionAlreadyExistsError",
    "TableVersionNotFoundError",
    "UnauthenticatedError",
    "UnsupportedOperationError",
]

_INTERRUPT = re.compile(r"^(External error: |LanceError\(.*\): |Python exception: )*KeyboardInterrupt:")


def reraise_interrupt(error: BaseException) -> None:
    """Raise ``KeyboardInterrupt`` in place of an error that another library made of one."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, KeyboardInterrupt) or _INTERRUPT.search(str(found)):
            raise KeyboardInterrupt from None
        found = found.__cause__


class SpecErrorCode(IntEnum):
    """Codes of the directory namespace document that ``lance_namespace`` gives to something else."""

    TABLE_VERSION_ALREADY_EXISTS = 12


class TableVersionAlreadyExistsError(LanceNamespaceError):
    """The version was already committed, by this writer or another.

    The directory namespace document gives it code 12, which ``lance_namespace`` gives to a missing column; the document
    wins, so distinguish the two by class.

    >>> int(TableVersionAlreadyExistsError("version 3 of 'users' already exists").code)
    12
    """

    code = SpecErrorCode.TABLE_VERSION_ALREADY_EXISTS  # type: ignore[assignment]


class CommitConflictError(ConcurrentModificationError):
    """Another commit changed the same partitions; nothing of this one is visible."""

    def __init__(self, message: str, *, partitions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.partitions = partitions


def __dir__() -> list[str]:
    """The public names and nothing else, for completion."""
    return __all__
