"""The official Python SDK, 2.x, as a client that logs in. Argument: the URL of the server."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

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
    """Follows redirects until the one to the client."""

    def __init__(self) -> None:
        self.logins = 0
        self._http = httpx2.AsyncClient()
        self._redirected = httpx2.URL()

    async def visit(self, url: str) -> None:
        self.logins += 1
        at = httpx2.URL(url)
        while not str(at).startswith(REDIRECT):
            answer = await self._http.get(at)
            at = at.join(answer.headers["location"])
        self._redirected = at

    async def redirected(self) -> AuthorizationCodeResult:
        given = self._redirected.params
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))


async def main(url: str) -> None:
    browser = Browser()
    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT], client_name="test", token_endpoint_auth_method="none")  # noqa: S106 (no password)
    auth = OAuthClientProvider(url, metadata, Memory(), browser.visit, browser.redirected)
    async with httpx2.AsyncClient(auth=auth) as http, Client(streamable_http_client(url, http_client=http)) as client:
        texts = [(await client.call_tool(name, {})).content[0].text for name in ("whose", "write", "whose")]
    sys.stdout.write(json.dumps({"texts": texts, "logins": browser.logins}))


anyio.run(main, sys.argv[1])
