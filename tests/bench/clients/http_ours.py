"""The client that is timed over HTTP, as its user would write it: ``http_ours.py REVISION URL``."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from orders import obey

from mcpgen import connect


async def main(revision: str, url: str) -> None:
    """Connect, and call as ordered."""
    async with connect(url, revisions=[revision]) as client:

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments)
            return result.content[0].text  # type: ignore[union-attr]  # all our tools return one text

        await obey(call)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
