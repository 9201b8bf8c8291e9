"""Pages of the documentation, whose examples run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
ON_SPARK = {"jobs.md", "spark.md", "streaming.md", "tutorial-spark.md"}
"""Pages that need a Spark session: they run beside the other tests that do."""


def run_page(page: Path, *, on_spark: bool = True) -> None:
    """Run the Python blocks of a page in order, in one namespace; those marked as needing Spark only on it."""
    text = page.read_text()
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in re.finditer(r"^(<!-- needs Spark -->\n)?```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if block.group(1) and not on_spark:
            continue
        line = text.count("\n", 0, block.start(2))
        code = compile("\n" * line + block.group(2), str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)
