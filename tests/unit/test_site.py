"""The documentation builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_builds_and_needs_no_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text()
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="?(?:https?:)?//', text), page
        assert not re.findall(r'<link[^>]+rel="?(?:stylesheet|preconnect|icon)[^>]+href="?(?:https?:)?//', text), page
        assert 'class="mermaid"' not in text, page
    assert 'href="site.css"' in (tmp_path / "site" / "index.html").read_text()
    assert "create_index" in (tmp_path / "site" / "api.html").read_text()
