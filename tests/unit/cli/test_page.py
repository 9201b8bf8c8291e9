"""The examples of the page run, in order and in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_examples_of_the_page_run(run: Any, tmp_path: Path) -> None:
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        for line in block.splitlines()
    ]
    assert len(lines) > 25
    for line in lines:
        words = shlex.split(line)
        if words[0] == "printf":
            (tmp_path / words[-1]).write_text(words[1].replace("\\n", "\n"))
        else:
            run(*words[1:])
