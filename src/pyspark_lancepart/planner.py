"""The data source that the jar asks: registered by the jar alone, under a name that leads users to a Java class."""

from __future__ import annotations

from typing import Any

from pyspark_lancepart import DefaultSource, settle
from pyspark_lancepart.messages import plainly


class Planner(DefaultSource):
    """Answers the jar's questions, some of which change tables; the jar lets no option of a user's pass as one."""

    @classmethod
    def name(cls) -> str:
        """What the jar calls it."""
        return "lancepart-planner"

    def _given(self) -> dict[str, str]:
        """All options: the jar has looked at those of users, and added what it wants."""
        return dict(self.options)

    @plainly()
    def schema(self) -> Any:
        """The columns, and the answer on the first of them; a plan stays in the source itself."""
        from lancepart.spark.source import answer

        settle()
        schema, self._plan = answer(self._given())
        return schema
