"""What mcpgen agrees on with itself: ``offers.py REVISIONS COMMAND…``, every offer with every server.

With a URL instead of a command, every offer with the server that is there.

REVISIONS, with commas between, are what there is to offer and to serve: one at a time, and all. For each pair a line of
JSON is printed, with the revision that is spoken, or the name of the error.
"""

from __future__ import annotations

import json
import sys

import anyio

from mcpgen import Process, connect
from mcpgen.runtime.errors import McpgenError

# They wait for each other most of the time.
AT_ONCE = 4


async def attempt(offered: list[str], served: list[str], command: list[str]) -> str:
    url = command[0]
    environment = {"INTEROP_REVISIONS": ",".join(served)}
    target = url if url.startswith("http:") else Process(command, environment=environment)
    try:
        async with connect(target, revisions=offered) as client:
            await client.call_tool("add", {"a": 20, "b": 22})
            return client.revision
    except McpgenError as error:
        return type(error).__name__


async def main(revisions: str, *command: str) -> None:
    choices = [*([each] for each in revisions.split(",")), revisions.split(",")]
    servers = [[]] if command[0].startswith("http:") else choices
    turn = anyio.CapacityLimiter(AT_ONCE)

    async def say(offered: list[str], served: list[str]) -> None:
        async with turn:
            outcome = await attempt(offered, served, list(command))
        line = {"offered": offered, "served": served, "outcome": outcome}
        sys.stdout.write(json.dumps(line) + "\n")

    async with anyio.create_task_group() as tasks:
        for offered in choices:
            for served in servers:
                tasks.start_soon(say, offered, served)


anyio.run(main, *sys.argv[1:])
