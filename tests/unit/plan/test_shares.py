"""The rules of joining partitionings: what two of them have in common over the join keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lancepart.model.joinkeys import common_type, hash_alike
from lancepart.model.partition_by import partition_fields
from lancepart.model.spec import PartitionSpec
from lancepart.plan.shares import JoinKey, meet, offers, share_values

DATE, INT, TEXT = pa.date32(), pa.int64(), pa.string()
