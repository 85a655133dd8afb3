"""mcpgen as a reader."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from reading import read_all, reporter

from mcpgen import connect
from mcpgen.runtime.protocol.newest import models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reading import Reading, Seen, Verbs

    from mcpgen import Client

__all__ = ["connection", "wire"]


def wire(model: Any) -> Any:
    """Return a model as the wire has it."""
    return msgspec.json.decode(msgspec.json.encode(model))


def verbs(client: Client, seen: Seen) -> Verbs:
    """Return what there is to do."""

    async def listed(items: AsyncIterator[Any], key: str) -> Any:
        return {key: [each async for each in items]}

    async def greet() -> Any:
        return {}

    async def complete() -> Any:
        return {"completion": await client.complete(models.PromptReference(name="p"), "who", "")}

    async def set_level() -> Any:
        await client.set_log_level("info")
        return {}

    return {
        "connect": greet,
        "tools": lambda: listed(client.tools(), "tools"),
        "resources": lambda: listed(client.resources(), "resources"),
        "templates": lambda: listed(client.resource_templates(), "resourceTemplates"),
        "prompts": lambda: listed(client.prompts(), "prompts"),
        "call": lambda: client.call_tool("echo", {}),
        "error": lambda: client.call_tool("error", {}),
        "ask": lambda: client.call_tool("echo", {}),
        "progress": lambda: client.call_tool("echo", {}, on_progress=reporter(seen)),
        "read": lambda: client.read_resource("test://a"),
        "prompt": lambda: client.get_prompt("p", {}),
        "complete": complete,
        "level": set_level,
    }


@asynccontextmanager
async def connection(reading: Reading, seen: Seen) -> AsyncIterator[Verbs]:
    """Connect, and give the verbs."""

    def elicit(*_: Any) -> Any:
        return models.ElicitResult(action="decline")

    def sample(*_: Any) -> Any:
        return models.CreateMessageResult(role="assistant", content=models.TextContent(text="x"), model="m")

    def roots(_: Any) -> Any:
        return []

    def log(params: Any, _: Any) -> None:
        seen["logs"].append(wire(params))

    options: Any = {"elicit": elicit, "sample": sample, "roots": roots, "log": log}
    strict = reading.get("strict", False)
    async with connect(reading["target"], revisions=[reading["revision"]], strict=strict, **options) as client:
        yield verbs(client, seen)


if __name__ == "__main__":
    read_all(connection, wire)
