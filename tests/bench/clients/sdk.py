"""The same client with the official SDK.

``sdk.py REVISION COMMAND...`` talks to a process through `stdio_client` and a `ClientSession`, which costs less than
the `Client` around them; ``sdk.py REVISION`` to a server in its own process, which only the `Client` does without a
transport of one's own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from orders import obey

if TYPE_CHECKING:
    from mcp import Client

STATELESS = "2026-07-28"


async def main(revision: str, *command: str) -> None:
    """Connect, and call as ordered."""
    if not command:
        await in_memory(revision)
        return
    parameters = StdioServerParameters(command=command[0], args=[*command[1:]])
    async with stdio_client(parameters) as (source, sink), ClientSession(source, sink) as session:
        if revision == STATELESS:
            await session.discover()
        else:
            await session.initialize()
        await calling(session, session.protocol_version, revision)


async def in_memory(revision: str) -> None:
    """Do the same with a server of this process."""
    from pathlib import Path
    from runpy import run_path

    from mcp import Client

    server = run_path(str(Path(__file__).parents[1] / "servers" / "sdk.py"))["server"]
    async with Client(server, mode=revision if revision == STATELESS else "legacy") as client:
        await calling(client, client.protocol_version, revision)


async def calling(client: ClientSession | Client, spoken: str | None, revision: str) -> None:
    """Call as ordered.

    Raises:
        ValueError: What is spoken is another revision.
    """
    if spoken != revision:
        raise ValueError(f"{spoken} is spoken")

    async def call(name: str, arguments: dict[str, Any]) -> str:
        result = await client.call_tool(name, arguments)
        return result.content[0].text

    await obey(call)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
