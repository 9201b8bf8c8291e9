"""Reading requests: as models, or as the mappings that pylance hands over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.model.aliases import JsonMapping

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="BaseModel")


@runtime_checkable
class _Keyed(Protocol):
    """What has keys and values, such as the mappings that pylance makes of requests."""

    def keys(self) -> Iterable[str]: ...

    def __getitem__(self, name: str, /) -> object: ...


def read(model: type[Model], request: object) -> Model:
    """A request as its model; of a mapping, the keys that the model knows are taken, and others may be missing."""
    if isinstance(request, model):
        return request
    if not isinstance(request, _Keyed):
        raise InvalidInputError(f"a {model.__name__} was expected, not {type(request).__name__}")
    given = {name: request[name] for name in request.keys()}  # noqa: SIM118
    try:
        return _validated(model, given)
    except ValueError as error:
        raise InvalidInputError(f"not a valid {model.__name__}: {error}") from None


def _validated(model: type[Model], given: JsonMapping) -> Model:
    return model.model_validate({name: value for name, value in given.items() if name in model.model_fields})


def mode(value: str | None, allowed: Sequence[str], *, what: str) -> str:
    """One of the allowed modes, the first if none is given; snake_case, PascalCase and any case are alike.

    >>> mode("ExistOk", ["create", "exist_ok", "overwrite"], what="CreateNamespace mode")
    'exist_ok'
    """
    if value is None:
        return allowed[0]
    for candidate in allowed:
        if value.replace("_", "").lower() == candidate.replace("_", ""):
            return candidate
    raise InvalidInputError(f"{what} {value!r} is unknown: use {', '.join(allowed)}")


def page(names: Sequence[str], token: str | None, limit: int | None) -> tuple[list[str], str | None]:
    """The names after a token, at most ``limit`` of them, and the token of the next page if there is one.

    >>> page(["a", "b", "c"], "a", 1)
    (['b'], 'b')
    """
    if limit is not None and limit <= 0:
        raise InvalidInputError(f"limit is {limit}: give a positive number")
    rest = [name for name in names if name > token] if token else list(names)
    if limit is None or len(rest) <= limit:
        return rest, None
    return rest[:limit], rest[limit - 1]


def refuse_branch(branch: str | None) -> None:
    """Branches of a table are not served through the catalog."""
    if branch not in (None, "main"):
        raise UnsupportedOperationError(
            f"branch {branch!r}: only the main branch is served; open the table with pylance"
        )
