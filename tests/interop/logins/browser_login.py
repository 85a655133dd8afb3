"""A user logs in with ``mcpgen login`` and a real browser, at the forms of oidc-provider."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from tests.interop.logins.chromium import find_chromium
from tests.patience import PATIENCE_SECONDS
from tests.runtime.cli.terminals import Terminal, run

if TYPE_CHECKING:
    from tests.interop.logins.protected_server import ProtectedServer

__all__ = ["logs_in_with_a_browser"]

CHECKOUT: Final = Path(__file__).parents[3]


async def logs_in_with_a_browser(server: ProtectedServer) -> None:
    """Let the browser that ``BROWSER`` names fill in the forms, and then call a tool with the stored tokens."""
    await to_thread.run_sync(_log_in, server.url)
    assert "Bearer" in server.schemes


def _log_in(url: str) -> None:
    find_chromium()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # as in chromium.py
        folder = Path(name)
        browser, page, errors = folder / "browser", folder / "page", folder / "errors"
        # The terminal hangs up when the command ends, which may be before the browser has shown the last page. It goes
        # on, as those of users do.
        browser.write_text(
            f'#!/bin/sh\ntrap "" HUP\nPYTHONPATH="{CHECKOUT}" "{sys.executable}" -m tests.interop.logins.chromium '
            f'"$1" "{page}.new" 2>"{errors}" && mv "{page}.new" "{page}"\n',
            encoding="utf-8",
        )
        browser.chmod(0o700)
        environment = {"XDG_STATE_HOME": name, "XDG_CACHE_HOME": name, "BROWSER": str(browser), "DISPLAY": ""}
        terminal = Terminal("login", url, width=2000, **environment)
        try:
            status, out, seen = terminal.end()
        finally:
            terminal.close()
        assert (status, out) == (0, f"You are logged in to {url}.\n"), seen
        shown = _written(page, errors)
        assert shown == "The login is done. You can close this window.", shown
        status, out, seen = run("call", url, "greet", "name=Ann", **environment)
        assert (status, out) == (0, "Hello, Ann!\n"), seen


def _written(page: Path, errors: Path) -> str:
    """Return the text of *page* when the browser has written it; *errors* has what went wrong."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not page.exists():
        assert time.monotonic() < until, f"the browser has shown no last page: {errors.read_text(encoding='utf-8')}"
        time.sleep(0.05)
    return page.read_text(encoding="utf-8")
