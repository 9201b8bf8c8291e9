"""The well-known transforms: one small class each, with everything that depends on the transform; all in UTC.

To add one, write its module here, name its class in ``TRANSFORMS``, and write its twin in the jar and its tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from lance_namespace_urllib3_client.models.partition_transform import PartitionTransform

from lancepart.errors import InvalidInputError
from lancepart.model.transforms.base import Transform
from lancepart.model.transforms.bucket import Bucket, MultiBucket
from lancepart.model.transforms.calendar_parts import CALENDAR, Day, Hour, Month, Year
from lancepart.model.transforms.identity import Identity
from lancepart.model.transforms.truncate import Truncate, is_numeric_truncate

__all__ = [
    "CALENDAR",
    "TRANSFORMS",
    "Bucket",
    "Day",
    "Hour",
    "Identity",
    "Month",
    "MultiBucket",
    "Transform",
    "Truncate",
    "Year",
    "is_numeric_truncate",
    "transform_from_json",
]

TRANSFORMS: dict[str, type[Transform]] = {
    kind.name: kind for kind in (Identity, Year, Month, Day, Hour, Bucket, MultiBucket, Truncate)
}


def transform_from_json(spelled: PartitionTransform | Mapping[str, object]) -> Transform:
    """The transform that a model describes, unknown and missing parameters refused.

    >>> transform_from_json({"type": "truncate", "width": 3})
    Truncate(width=3)
    """
    given = spelled.to_dict() if isinstance(spelled, PartitionTransform) else dict(spelled)
    kind = TRANSFORMS.get(str(given.pop("type", None)))
    if kind is None:
        known = ", ".join(TRANSFORMS)
        raise InvalidInputError(f"unknown transform {spelled!r}; known are {known}; anything else is an expression")
    wanted = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if set(given) != wanted:
        raise InvalidInputError(f"{kind.name} takes {sorted(wanted) or 'no parameters'}, not {sorted(given)}")
    return kind(**given)
