"""The one place that knows the texts of Lance's and the object store's errors.

The errors defined here are caught by the rooms above; should one slip through, its base has a code that fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lance_namespace.errors import LanceNamespaceError
from obstore.exceptions import AlreadyExistsError

from lancepart.errors import (
    ConcurrentModificationError,
    InternalError,
    InvalidInputError,
    InvalidTableStateError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableNotFoundError,
    UnauthenticatedError,
    reraise_interrupt,
)
from lancepart.storage.root import Root

_CONFLICT = re.compile(
    r"commit conflict|too many concurrent writers|concurrent (commit|transaction|writer)|incompatible with concurrent",
    re.IGNORECASE,
)
_KEY = re.compile(r"found matching row with key|merge insert failed.*matching", re.IGNORECASE)
_MISSING = re.compile(
    r"was not found|not found:|no such (file|dataset|key|version)|does not exist|notfound", re.IGNORECASE
)
_EXISTS = re.compile(r"already exists", re.IGNORECASE)
_DENIED = re.compile(
    r"permission denied|operation not permitted|access ?denied|forbidden|status(?: code)?:? 403\b"
    r"|read-only file system",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"failed to get \w+ credentials|credentialsnotloaded|no providers in chain|missing credentials|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|ExpiredToken|InvalidToken|status(?: code)?:? 401\b|unauthorized"
    r"|169\.254\.169\.254|metadata\.google\.internal",
    re.IGNORECASE,
)
_NO_BUCKET = re.compile(r"NoSuchBucket|bucket does not exist", re.IGNORECASE)
_NO_REGION = re.compile(r"failed to resolve region", re.IGNORECASE)
_NO_ACCOUNT = re.compile(r"no azure account name", re.IGNORECASE)
_NO_SCHEME = re.compile(r"no object store provider found for scheme|unable to recognise url", re.IGNORECASE)
_FULL = re.compile(r"no space left on device|disk quota exceeded|file too large", re.IGNORECASE)
_NO_DIRECTORY = re.compile(r"not a directory", re.IGNORECASE)
_DAMAGED = re.compile(
    r"file size is too small|does not have sufficient data|corrupt|magic number|failed to decode|decodeerror"
    r"|invalid range \S+ for object of size|invalid protobuf|invalid wire type|unexpected end of file"
    r"|unexpectedeof|range end index",
    re.IGNORECASE,
)
_INPUT = re.compile(
    r"invalid user input|invalid input|lanceerror\(schema\)|schema error|sql error|parse error|parsererror"
    r"|no field named|error during planning|type_coercion|invalid argument|failed to parse|with different schema"
    r"|error applying filter expression|ref is invalid|file name too long|vector column \S+ must be|query vector size",
    re.IGNORECASE,
)
_UNTRAINED = re.compile(r"cannot train \d+ centroids|not enough rows to train", re.IGNORECASE)
_VALUE = re.compile(
    r"filter expression.*(?:divide by zero|cast error|overflow|cannot cast|can't cast|parser error)", re.IGNORECASE
)
_READING = re.compile(r"(?:read|count rows of|search) the leaf\b")
_UNREACHABLE = re.compile(r"connection refused|connect error|error sending request|timed out|dns error", re.IGNORECASE)
_NO_TLS = re.compile(r"HTTP error: builder error")
_SOURCE = re.compile(r",?\s*/[^\s,]*\.rs:\d+:\d+|,?\s*rust/[^\s,]*\.rs:\d+:\d+")
_INSIDES = re.compile(r": (ProviderError|DispatchFailure|ServiceError)\(.*")
_SECRET_KEYS = re.compile(r"secret|token|password|key|sas|credential", re.IGNORECASE)
_SCHEMES = "s3://, gs://, az://, abfss:// or file://"


class ConflictError(ConcurrentModificationError):
    """A commit lost against another one; nothing of it is visible."""


class BlindCommitError(InvalidTableStateError):
    """A commit was made that could not know whether it conflicts with others."""


class KeyExistsError(ConcurrentModificationError):
    """A row to be inserted is there already; nothing was written."""


class UnreadableError(InvalidTableStateError):
    """Files of a table are gone or damaged: no attempt will fare better."""


class MissingError(UnreadableError):
    """There is no dataset, or no such version of it, or a file of it is gone."""


class SealedError(TableNotFoundError):
    """The table is being removed, or its removal was interrupted."""


class DamagedError(UnreadableError):
    """A file of a dataset is corrupt."""


class ExistsError(ConcurrentModificationError):
    """There is a dataset already."""


class UntrainedError(InvalidInputError):
    """There are too few vectors for an index: NULL and those with NaN or infinity do not count."""


@contextmanager
def storage_errors(action: str, root: Root) -> Iterator[None]:
    """Translate errors of the storage layers into ours, with the failed action and without credentials."""
    try:
        yield
    except LanceNamespaceError as error:
        reraise_interrupt(error)
        raise
    except (FileNotFoundError, FileExistsError):
        raise
    except AlreadyExistsError as error:
        raise ExistsError(f"could not {action}: {_clean(error, root)}") from None
    except PermissionError as error:
        raise PermissionDeniedError(
            f"may not {action}: {_clean(error, root)}; give a root that you may use, or permissions for {root.uri!r}"
        ) from None
    except Exception as error:
        reraise_interrupt(error)
        if type(error).__name__ == "PanicException":
            raise
        raise translated(error, action, root) from None


def translated(error: Exception, action: str, root: Root) -> Exception:
    """The error to raise instead of one of Lance's, which differ only by their texts."""
    text = str(error)
    message = f"could not {action}: {_clean(error, root)}"
    if _NO_SCHEME.search(text):
        return InvalidInputError(f"no store is known for {root.uri!r}: use a local path, or a URI with {_SCHEMES}")
    backup = ""
    if _READING.match(action):
        backup = "; table.inspect.broken() lists the leaves that can't be read: bring their files back from a backup"
    rules: tuple[tuple[re.Pattern[str], type[Exception], str], ...] = (
        (_UNTRAINED, UntrainedError, ""),
        (
            _VALUE,
            InvalidInputError,
            "; the filter fails for a value of some row: exclude it, or use TRY_CAST or NULLIF",
        ),
        (_KEY, KeyExistsError, ""),
        (_CONFLICT, ConflictError, ""),
        (_FULL, ServiceUnavailableError, "; make room, and try again"),
        (_UNKNOWN, UnauthenticatedError, "; give the store's credentials in storage_options or in the environment"),
        (_DENIED, PermissionDeniedError, f"; give a root that you may use, or permissions for {root.uri!r}"),
        (_NO_BUCKET, InvalidInputError, f"; there is no such bucket: look at the name in {root.uri!r}"),
        (
            _NO_TLS,
            InvalidInputError,
            "; where the endpoint begins with http:// give allow_http in storage_options ('true')",
        ),
        (_NO_REGION, InvalidInputError, "; look at the bucket's name, or give aws_region in storage_options"),
        (_NO_ACCOUNT, InvalidInputError, "; give account_name in storage_options"),
        (_NO_DIRECTORY, InvalidInputError, "; the root of a table must be a directory, and this is a file"),
        (_INPUT, InvalidInputError, ""),
        (_EXISTS, ExistsError, ""),
        (_MISSING, MissingError, backup),
        (_DAMAGED, DamagedError, backup),
        (_UNREACHABLE, ServiceUnavailableError, f"; look at the endpoint and the network, or at the root {root.uri!r}"),
    )
    for pattern, kind, advice in rules:
        if pattern.search(text):
            return kind(message + advice)
    return InternalError(message)


def _clean(error: Exception, root: Root) -> str:
    """The first line of a message, without positions in Rust's sources and without secrets."""
    text = _SOURCE.sub("", str(error).strip().split("\n")[0])
    text = _INSIDES.sub("", text)
    for key, value in root.storage_options.items():
        if is_secret(key) and len(value) >= 4:
            text = text.replace(value, "***")
    return text[:600]


def is_secret(option: str) -> bool:
    """Whether the value of a storage option must not be shown or stored.

    >>> is_secret("aws_secret_access_key"), is_secret("region")
    (True, False)
    """
    return _SECRET_KEYS.search(option) is not None
