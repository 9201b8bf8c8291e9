"""The data source that the jar uses where there is no planning service, and for streams.

The jar alone registers it, under a name that leads users to a Java class which refuses them.
"""

from __future__ import annotations

from typing import Any

from pyspark_lancepart import DefaultSource, settle


class Planner(DefaultSource):
    """Executes requests of the jar, some of which change tables; the jar refuses such options from users."""

    @classmethod
    def name(cls) -> str:
        """The name under which the jar registers it."""
        return "lancepart-planner"

    def _given(self) -> dict[str, str]:
        """All options: the jar has checked those of users, and added its own."""
        return dict(self.options)

    def schema(self) -> Any:
        """One column, which carries the reply as its metadata."""
        from pyspark.sql.types import BooleanType, StructField, StructType

        from lancepart.spark.service import respond
        from lancepart.spark.source import REQUEST

        settle()
        reply = respond(self._given()[REQUEST])
        return StructType([StructField("reply", BooleanType(), True, {"lancepart.reply": reply})])
