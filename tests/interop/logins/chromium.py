"""Chromium without a window, as the browser of a user: ``python -m tests.interop.logins.chromium URL FILE``.

It opens the URL, submits the forms of the pages that follow, and writes the text of the last page to the file. Commands
reach Chromium over its pipe for debugging, as JSON with a zero byte after each message.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Final

__all__ = ["find_chromium", "log_in"]

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")

# It reads commands from the descriptor 3, and writes to 4.
_SHELL: Final = 'exec "$@" 3<&0 4>&1 </dev/null >&2'
_OPTIONS: Final = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # root has none; all pages are of this machine
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-proxy-server",
)

_MAX_PAGES: Final = 8

# Fills and submits the form of the page; returns the text of a page that has none.
_SUBMIT: Final = """(() => {
    const form = document.forms[0];
    if (!form) return document.body.innerText;
    for (const each of form.querySelectorAll("input[name=login], input[name=password]")) each.value = "ann";
    form.querySelector("[type=submit]").click();
    return null;
})()"""


def find_chromium() -> str:
    """Return the path of Chromium.

    Raises:
        AssertionError: It is not installed.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise AssertionError(
            "Chromium is not installed, so no login in a browser can be tested: apt-get install chromium"
        )
    return found


class _Chromium:
    """A running Chromium, with one page."""

    def __init__(self, pipe_in: IO[bytes], pipe_out: IO[bytes]) -> None:
        self._in = pipe_in
        self._out = pipe_out
        self._asked = 0
        self._session: dict[str, str] = {}
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self.ask("Page.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """Send a command, and return its result."""
        self._asked += 1
        command = {"id": self._asked, "method": method, "params": params, **self._session}
        self._in.write(json.dumps(command).encode() + b"\0")
        self._in.flush()
        while (message := self._read()).get("id") != self._asked:
            pass
        assert "error" not in message, message
        return message["result"]

    def wait_for(self, event: str) -> None:
        """Wait for an event of the page."""
        while self._read().get("method") != event:
            pass

    def _read(self) -> Any:
        message = bytearray()
        while (byte := self._out.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            message += byte
        return json.loads(message)


def log_in(url: str) -> str:
    """Open *url*, submit the forms of the pages that follow, and return the text of the last page."""
    # When Chromium is killed, its other processes may still write to the folder while it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        start = ["sh", "-c", _SHELL, "sh", find_chromium(), *_OPTIONS, f"--user-data-dir={folder}"]
        with subprocess.Popen(
            start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as program:
            assert program.stdin
            assert program.stdout
            try:
                chromium = _Chromium(program.stdin, program.stdout)
                chromium.ask("Page.navigate", url=url)
                for _ in range(_MAX_PAGES):
                    chromium.wait_for("Page.loadEventFired")
                    text = chromium.ask("Runtime.evaluate", expression=_SUBMIT, returnByValue=True)["result"]["value"]
                    if text is not None:
                        return str(text)
            finally:
                program.kill()
    raise AssertionError("the login does not end")


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(log_in(sys.argv[1]), encoding="utf-8")
