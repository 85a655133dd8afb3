"""The official Python SDK, 2.x, as a client that logs in."""

from __future__ import annotations

import anyio
import httpx2
import mcp.client.session
from logging_in import REDIRECT, REVISION, URL, Browser, Memory, ask, say
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


async def main() -> None:
    browser = Browser(httpx2)

    async def redirected() -> AuthorizationCodeResult:
        given = browser.redirected
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))

    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT], client_name="test", token_endpoint_auth_method="none")  # noqa: S106 (no password)
    auth = OAuthClientProvider(URL, metadata, Memory(), browser.visit, redirected)
    is_stateless = REVISION == "2026-07-28"
    if not is_stateless:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = REVISION
    async with (
        httpx2.AsyncClient(auth=auth) as http,
        Client(streamable_http_client(URL, http_client=http), mode="auto" if is_stateless else "legacy") as client,
    ):
        texts = await ask(client)
    say(texts, browser)


anyio.run(main)
