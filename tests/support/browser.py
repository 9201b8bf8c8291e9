"""A real browser, headless: Chromium over the WebDriver protocol, from Debian's packages."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
]
PACKAGES = "chromium chromium-driver"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def programs() -> tuple[str, str]:
    """Chromium and its driver, installed if the environment wants that; where they are missing the test is skipped."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if not all(found) and os.environ.get("LANCEPART_INSTALL_BROWSER") == "1" and shutil.which("apt-get"):
        _install()
        found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if not all(found):
        pytest.skip(
            f"no browser: install Debian's packages {PACKAGES}, or run as root with LANCEPART_INSTALL_BROWSER=1"
        )
    return str(found[0]), str(found[1])


@functools.cache
def _install() -> None:
    """Install the packages; that it failed, or took too long, is seen by what is still missing."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command, seconds in ((["update"], 60), (["install", "-y", "--no-install-recommends", *PACKAGES.split()], 240)):
        try:
            subprocess.run(
                ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=240", *command],
                timeout=seconds,
                check=False,
                capture_output=True,
                env=quiet,
            )
        except (OSError, subprocess.TimeoutExpired):
            return


class Browser:
    """One window."""

    def __init__(self, driver: str, session: str) -> None:
        self._base = f"{driver}/session/{session}"

    def go(self, url: str) -> None:
        _call("POST", f"{self._base}/url", {"url": url})

    def run(self, script: str, *given: object) -> Any:
        """Run a script's body in the page; what it returns."""
        return _call("POST", f"{self._base}/execute/sync", {"script": script, "args": list(given)})

    def wait(self, what: str, script: str, *given: object, seconds: float = 30) -> Any:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + seconds
        while not (found := self.run(f"return {script}", *given)):
            assert time.monotonic() < end, f"{what}: {self.run('return document.body.innerText')[:800]}"
            time.sleep(0.03)
        return found

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def type(self, selector: str, text: str) -> None:
        """Type into an element, as a keyboard does."""
        found = _call("POST", f"{self._base}/element", {"using": "css selector", "value": selector})
        _call("POST", f"{self._base}/element/{found[_ELEMENT]}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        _call("POST", f"{self._base}/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def click(self, selector: str) -> None:
        found = _call("POST", f"{self._base}/element", {"using": "css selector", "value": selector})
        _call("POST", f"{self._base}/element/{found[_ELEMENT]}/click", {})

    def size(self, width: int, height: int) -> None:
        _call("POST", f"{self._base}/window/rect", {"width": width, "height": height})

    def phone(self) -> None:
        """Have the width of a telephone, which a window can't have."""
        size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        wanted = {"cmd": "Emulation.setDeviceMetricsOverride", "params": size}
        _call("POST", f"{self._base}/goog/cdp/execute", wanted)

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(_call("GET", f"{self._base}/screenshot")))

    def console(self) -> list[dict[str, Any]]:
        """What the browser logged since the last call."""
        found: list[dict[str, Any]] = _call("POST", f"{self._base}/se/log", {"type": "browser"})
        return found


@contextmanager
def browser(*, dark: bool = False) -> Iterator[Browser]:
    """A new browser with an empty profile, ended afterwards."""
    chromium, driver = programs()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as profile:
        started = subprocess.Popen(
            [driver, f"--port={port}", "--allowed-ips=127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _ready(lambda: _call("GET", f"{url}/status")["ready"])
            flags = [*FLAGS, f"--user-data-dir={profile}", *(["--force-dark-mode"] if dark else [])]
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": {"binary": chromium, "args": flags},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            session = _call("POST", f"{url}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            try:
                yield Browser(url, session)
            finally:
                _call("DELETE", f"{url}/session/{session}")
        finally:
            started.terminate()
            started.wait(10)


def _ready(check: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            if check():
                return
        except OSError:
            pass
        assert time.monotonic() < end, "chromedriver does not answer"
        time.sleep(0.05)


def _call(method: str, url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.loads(error.read())["value"]["message"][:600]) from None
