"""The client that is timed over HTTP, as its user would write it: ``http_ours.py REVISION URL [token]``."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec
from orders import obey

from mcpgen import MemoryTokenStore, OAuth, connect
from mcpgen.runtime.http.auth.grants import Tokens
from mcpgen.runtime.http.auth.registration import Registration
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.auth.credentials import tokens_key


async def main(revision: str, url: str, *token: str) -> None:
    """Connect, and call as ordered."""
    auth = await logged_in(url) if token else None
    async with connect(url, revisions=[revision], auth=auth) as client:

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments)
            return result.content[0].text  # type: ignore[union-attr]  # all our tools return one text

        await obey(call)


async def logged_in(url: str) -> OAuth:
    """Return credentials as they are after a login."""
    oauth = OAuth(store=MemoryTokenStore(), interactive=False)
    tokens = Tokens(
        access_token="t" * 800,
        issuer="https://login.example.com",
        token_endpoint="https://login.example.com/token",  # noqa: S106 (a URL)
        client=Registration("https://login.example.com", "bench"),
        resource=url,
        scopes=("echo",),
        refresh_token=None,
        expires_at=time.time() + 24 * 3600,
        key=None,
        revocation_endpoint=None,
    )
    await oauth.store.save(tokens_key(oauth, parse_address(url)), msgspec.json.encode(tokens))
    return oauth


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
