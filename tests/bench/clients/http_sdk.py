"""The same client with the official SDK: a `ClientSession`, which costs less than the `Client` around it."""

from __future__ import annotations

import asyncio
import sys

from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from sdk import STATELESS, calling


async def main(revision: str, url: str) -> None:
    """Connect, and call as ordered."""
    async with streamable_http_client(url) as (source, sink, *_), ClientSession(source, sink) as session:
        if revision == STATELESS:
            await session.discover()
        else:
            await session.initialize()
        await calling(session, session.protocol_version, revision)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
