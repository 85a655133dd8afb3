"""FastMCP's tasks, as a client: ``fastmcp_client.py REVISION COMMAND...`` or ``... REVISION URL``.

It prints one JSON object: what came of each feature. Importing `fastmcp_tasks` makes every client take tasks.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from typing import Any

import fastmcp_tasks.client
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp_tasks import call_tool_task
from mcp.shared.exceptions import MCPError

ASKED: list[str] = []


async def elicit(message: str, _kind: Any, _params: Any, _context: Any) -> ElicitResult[Any]:
    ASKED.append(message)
    return ElicitResult(action="accept", content={"name": "Ada"})


async def refused(made: Any) -> Any:
    """Return the message or the code of the error that *made* raises."""
    try:
        await made
    except ToolError as error:
        return str(error)
    except MCPError as error:
        return error.error.code
    return "not refused"


class Features:
    """The features, each a method that returns what came of it."""

    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    async def _text(self, tool: str, /, **given: Any) -> str:
        return (await self._client.call_tool(tool, given)).content[0].text

    async def immediate(self) -> Any:
        refusal = str(await refused(call_tool_task(self._client, "greet")))
        return ["immediate" if "did not run as a task" in refusal else refusal, await self._text("greet")]

    async def call(self) -> Any:
        task = await call_tool_task(self._client, "bake", {"loaves": 3})
        return ["task" if task.task_id else "", (await task).content[0].text]

    async def required(self) -> Any:
        return await self._text("ferment")

    async def ask(self) -> Any:
        return [await self._text("deliver"), "Who?" in ASKED]

    async def progress(self) -> Any:
        task = await call_tool_task(self._client, "knead")
        while not (found := await task.status()).status_message:  # noqa: ASYNC110 (it has no subscriptions)
            await asyncio.sleep(0.05)
        return [(await task).content[0].text, found.status_message == "Kneading"]

    async def tool_error(self) -> Any:
        task = await call_tool_task(self._client, "burn")
        found = await task.wait()
        return [found.status, found.result["isError"], await refused(task.result())]

    async def protocol_error(self) -> Any:
        task = await call_tool_task(self._client, "explode")
        found = await task.wait()
        return [found.status, found.error["code"], await refused(task.result())]

    async def cancel(self) -> Any:
        task = await call_tool_task(self._client, "rest")
        await task.cancel()
        ended = await task.wait()
        message = await refused(task.result())
        return [ended.status, "cancelled" if message == f"Task {task.task_id} was cancelled" else message]

    async def unknown_task(self) -> Any:
        return await refused(fastmcp_tasks.client._send_get(self._client.session, "unknown"))


async def main() -> None:
    revision, command, *arguments = sys.argv[1:]
    target: Any = command
    if not command.startswith("http"):
        target = StdioTransport(command, arguments, env=dict(os.environ), keep_alive=False)
    said: dict[str, Any] = {}
    async with Client(target, elicitation_handler=elicit, mode=revision) as client:
        features = Features(client)
        for name in [each for each in vars(Features) if not each.startswith("_")]:
            try:
                said[name.replace("_", " ")] = await asyncio.wait_for(getattr(features, name)(), 30)
            except Exception:  # noqa: BLE001 (whatever it is, the runner prints it)
                said[name.replace("_", " ")] = f"failed: {traceback.format_exc()}"
    sys.stdout.write(json.dumps(said) + "\n")


asyncio.run(main())
