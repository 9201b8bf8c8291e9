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

NOT_RUN = {
    ("README.md", "sh"): "builds the wheel, as tests/interop/test_wheel.py does, and runs make",
    ("conformance.md", "sh"): "runs the tests",
    ("deploy.md", "py"): "needs spark-submit and a bucket; tests/spark/test_submit.py submits programs that begin so",
    ("deploy.md", "sh"): "needs a cluster; tests/spark/test_cluster.py starts one by other means",
    ("format.md", "json"): "shows what is on disk; tests/conformance compares it with what is written",
    (
        "howto/migrating.md",
        "py",
    ): "needs deltalake, a catalog of Iceberg and a bucket; tests/spark/test_import.py imports",
    ("howto/streaming-ingest.md", "py"): "needs Kafka; tests/spark/test_stream.py writes such streams from files",
    ("install.md", "sh"): "needs the wheel; tests/interop/test_wheel.py runs what follows it",
    ("jobs.md", "sh"): "needs a bucket and YARN; tests/spark/test_jobs.py runs every job",
    ("jobs.md", "toml"): "names a bucket; tests/spark/test_jobs.py runs jobs of such files",
    ("search.md", "sql"): "has dots in it; tests/spark/test_sql_search.py has whole statements",
}
"""The code on the pages that no test runs as it is, by page and language, and why; ``text`` is no code."""


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
