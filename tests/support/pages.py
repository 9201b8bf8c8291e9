"""Pages of the documentation, whose examples run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
ON_SPARK = {"jobs.md", "spark.md", "streaming.md"}
"""Pages that need a Spark session: they run beside the other tests that do."""


def run_page(page: Path) -> None:
    """Run the Python blocks of a page in order, in one namespace."""
    text = page.read_text()
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block.group(1), str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)
