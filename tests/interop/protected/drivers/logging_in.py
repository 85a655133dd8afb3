"""What the clients of the Python SDKs have in common: a store that forgets, and a browser that follows redirects.

Arguments: the URL of the server, and the revision.
"""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["REDIRECT", "REVISION", "URL", "Browser", "Memory", "ask", "say"]

URL, REVISION = sys.argv[1:]
REDIRECT = "http://127.0.0.1:5555/callback"


class Memory:
    """A store of tokens that is forgotten."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Browser:
    """Follows redirects until the one to the client.

    Args:
        httpx: The module, of which the SDKs use one or the other.
    """

    def __init__(self, httpx: Any) -> None:
        self.logins = 0
        self.redirected: dict[str, str] = {}
        self._http = httpx.AsyncClient()
        self._url = httpx.URL

    async def visit(self, url: str) -> None:
        self.logins += 1
        at = self._url(url)
        while not str(at).startswith(REDIRECT):
            answer = await self._http.get(at)
            at = at.join(answer.headers["location"])
        self.redirected = dict(at.params)


async def ask(client: Any) -> list[str]:
    """Call the tools, the second of which needs one scope more."""
    return [(await client.call_tool(name, {})).content[0].text for name in ("whose", "write", "whose")]


def say(texts: list[str], browser: Browser) -> None:
    """Print the outcome."""
    sys.stdout.write(json.dumps({"texts": texts, "logins": browser.logins}))
