"""What mypy is kept from seeing stays little: few values without a type, no library that has types taken as untyped."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]


def test_few_values_have_no_type() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bAny\b", line) and "import" not in line
    ]
    assert len(lines) < 200, "\n".join(lines)


def test_mypy_is_strict_and_sees_every_library_that_has_types() -> None:
    assert MYPY["strict"] is True
    for override in MYPY["overrides"]:
        assert set(override) <= {"module", "ignore_missing_imports", "implicit_reexport", "warn_return_any"}, override
