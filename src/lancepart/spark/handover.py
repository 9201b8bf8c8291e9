"""Plans that are passed as options, of which any user can set any.

So a plan is JSON that is checked (``plan_json``), and storage options travel beside it, under a name that Spark does
not show.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import Value
from lancepart.spark.plan_json import plan_from_json, plan_to_json
from lancepart.spark.spark_plan import SparkPlan, SparkScan, SparkTask

PLAN, COLUMNS, SECRETS = "lancepart.plan", "lancepart.columns", "lancepart.secrets"
OPTIONS = frozenset({PLAN, COLUMNS, SECRETS})
_MOST_BYTES = 256 << 20


def plan_options(plan: SparkPlan, tasks: Sequence[SparkTask]) -> dict[str, str]:
    """A plan as options."""
    packed = zlib.compress(json.dumps(plan_to_json(plan, tasks), separators=(",", ":")).encode())
    found = {PLAN: base64.b64encode(packed).decode()}
    sides = (plan.side,) if isinstance(plan, SparkScan) else (plan.left, plan.right)
    secrets = [dict(side.root.storage_options) for side in sides]
    return found | ({SECRETS: json.dumps(secrets)} if any(secrets) else {})


def read_plan(options: Mapping[str, str]) -> tuple[SparkPlan, list[SparkTask]]:
    """The plan that options carry, and its tasks."""
    given = _unpacked(options[PLAN])
    sides = given.get("sides") if isinstance(given, dict) else None
    secrets = _secrets(options.get(SECRETS), len(sides) if isinstance(sides, list) else 0)
    return plan_from_json(given, secrets, f"option {PLAN!r}, which scan.to_spark and join.to_spark make,")


def _unpacked(text: str) -> Value:
    """The JSON of a plan; one that would fill the memory is not unpacked."""
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise _wrong(f"has more than {_MOST_BYTES} bytes")
        return json.loads(found)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise _wrong("is not the JSON of a plan") from None


def _secrets(text: str | None, count: int) -> list[dict[str, str]]:
    if text is None:
        return [{}] * count
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    plain = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    if not plain or any(not isinstance(value, str) for each in found for value in each.values()):
        raise InvalidInputError(f"option {SECRETS!r} is not a list of storage options, one a table")
    return list(found)


def _wrong(fault: str) -> InvalidInputError:
    return InvalidInputError(f"option {PLAN!r} {fault}; scan.to_spark and join.to_spark make it")
