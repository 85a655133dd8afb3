"""The official Python SDK, 1.x, as a client that logs in."""

from __future__ import annotations

import anyio
import httpx
import mcp.types
from logging_in import REDIRECT, REVISION, URL, Browser, Memory, ask, say
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


async def main() -> None:
    browser = Browser(httpx)

    async def redirected() -> tuple[str, str | None]:
        return browser.redirected["code"], browser.redirected.get("state")

    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT], client_name="test", token_endpoint_auth_method="none")  # noqa: S106 (no password)
    auth = OAuthClientProvider(URL, metadata, Memory(), browser.visit, redirected)
    mcp.types.LATEST_PROTOCOL_VERSION = REVISION
    async with (
        httpx.AsyncClient(auth=auth) as http,
        streamable_http_client(URL, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        texts = await ask(session)
    say(texts, browser)


anyio.run(main)
