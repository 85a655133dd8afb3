"""Open the login page in the browser of the user.

The page is opened only if its URL is clean (`AddressGuard.check_url`): browsers are started through commands, and a URL
from a server must not become one.
"""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Final

import anyio.to_thread

from mcpgen.runtime.http.errors import LoginFailed

__all__ = ["has_browser", "open_browser"]

# A browser in the terminal would take it away from the program.
_TEXT_BROWSERS: Final = frozenset({"lynx", "links", "elinks", "w3m", "www-browser"})


def has_browser() -> bool:
    """Return whether this machine can show a page to its user."""
    if sys.platform in ("win32", "darwin"):
        return not os.environ.get("SSH_CONNECTION")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")):
        return False
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    return os.path.basename(getattr(found, "name", "")) not in _TEXT_BROWSERS  # noqa: PTH119 (it is a command)


async def open_browser(url: str) -> None:
    """Open *url*; the redirect at the end of the login comes to this machine.

    Raises:
        LoginFailed: There is no browser.
    """
    if not has_browser() or not await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True):
        raise LoginFailed("no browser can be opened here; run `mcpgen login URL` in a terminal, or pass OAuth(visit=…)")
