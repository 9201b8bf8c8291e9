"""The commands of the pages run, in order and in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import DOCS, README


@pytest.mark.parametrize(("page", "least"), [(DOCS / "cli.md", 26), (README, 6)], ids=["cli.md", "README.md"])
def test_the_examples_of_the_page_run(page: Path, least: int, run: Any, tmp_path: Path) -> None:
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", page.read_text(), re.M | re.S)
        for line in block.splitlines()
    ]
    assert len(lines) >= least
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[0] == "printf":
            (tmp_path / words[-1]).write_text(words[1].replace("\\n", "\n"))
        else:
            run(*words[1:])
