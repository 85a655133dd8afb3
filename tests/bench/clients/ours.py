"""The client that is timed: as its user would write it.

``ours.py REVISION COMMAND...`` talks to a process, ``ours.py REVISION`` to a server in its own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from orders import obey

from mcpgen import connect


async def main(revision: str, *command: str) -> None:
    """Connect, and call as ordered."""
    async with connect(command or in_memory(), revisions=[revision]) as client:

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments)
            return result.content[0].text  # type: ignore[union-attr]  # all our tools return one text

        await obey(call)


def in_memory() -> Any:
    """Return our server."""
    from pathlib import Path
    from runpy import run_path

    return run_path(str(Path(__file__).parents[1] / "servers" / "ours.py"))["server"]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
