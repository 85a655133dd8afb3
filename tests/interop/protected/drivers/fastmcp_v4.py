"""FastMCP 4 as a client that logs in. Its browser and its receiver of the redirect are replaced."""

from __future__ import annotations

import anyio
import httpx2
import mcp.client.session
from fastmcp import Client
from fastmcp.client.auth import OAuth
from logging_in import REDIRECT, REVISION, URL, Browser, ask, say
from mcp.client.auth import AuthorizationCodeResult

browser = Browser(httpx2)


class VisitingOAuth(OAuth):
    async def redirect_handler(self, authorization_url: str) -> None:
        await browser.visit(authorization_url)

    async def callback_handler(self) -> AuthorizationCodeResult:
        given = browser.redirected
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))


async def main() -> None:
    auth = VisitingOAuth(callback_host="127.0.0.1", callback_port=int(REDIRECT.split(":")[2].partition("/")[0]))
    is_stateless = REVISION == "2026-07-28"
    if not is_stateless:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = REVISION
    async with Client(URL, auth=auth, mode="auto" if is_stateless else "legacy") as client:
        texts = await ask(client)
    say(texts, browser)


anyio.run(main)
