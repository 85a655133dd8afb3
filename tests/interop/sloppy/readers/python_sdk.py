"""The Python SDK as a reader, 1.x or 2.x, whichever is installed."""

from __future__ import annotations

import os
import warnings
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import mcp.client.session
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from reading import MAX_PAGES, read_all, reporter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from reading import Reading, Seen, Verbs

IS_V1 = version("mcp").startswith("1.")
if IS_V1:
    from mcp import types
else:
    import mcp_types as types
    from mcp_types.version import LATEST_HANDSHAKE_VERSION

warnings.simplefilter("ignore")  # what the newest revision deprecates is here on purpose


def wire(model: Any) -> Any:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True) if hasattr(model, "model_dump") else model


async def pages(get: Callable[..., Awaitable[Any]], key: str) -> Any:
    """Return all items. The manual of 1.x ends a list with ``if result.nextCursor``."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await (get(params=types.PaginatedRequestParams(cursor=cursor)) if IS_V1 else get(cursor=cursor))
        items += wire(page)[key]
        cursor = (page.nextCursor or None) if IS_V1 else page.next_cursor
        if cursor is None:
            return {key: items}
    raise OverflowError("the list has no end")


def verbs(session: Any, seen: Seen) -> Verbs:
    """Return what there is to do, with a session of 1.x or a client of 2.x."""

    async def connect() -> Any:
        return {}

    reference = types.PromptReference(type="ref/prompt", name="p")
    return {
        "connect": connect,
        "tools": lambda: pages(session.list_tools, "tools"),
        "resources": lambda: pages(session.list_resources, "resources"),
        "templates": lambda: pages(session.list_resource_templates, "resourceTemplates"),
        "prompts": lambda: pages(session.list_prompts, "prompts"),
        "call": lambda: session.call_tool("echo", {}),
        "error": lambda: session.call_tool("error", {}),
        "ask": lambda: session.call_tool("echo", {}),
        "progress": lambda: session.call_tool("echo", {}, progress_callback=reporter(seen)),
        "read": lambda: session.read_resource(AnyUrl("test://a") if IS_V1 else "test://a"),
        "prompt": lambda: session.get_prompt("p", {}),
        "complete": lambda: session.complete(reference, {"name": "who", "value": ""}),
        "level": lambda: session.set_logging_level("info"),
    }


def callbacks(seen: Seen) -> dict[str, Any]:
    async def log(params: Any) -> None:
        seen["logs"].append(wire(params))

    async def elicit(*_: Any) -> Any:
        return types.ElicitResult(action="decline")

    async def sample(*_: Any) -> Any:
        content = types.TextContent(type="text", text="x")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(_: Any) -> Any:
        return types.ListRootsResult(roots=[])

    questions = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    return {"logging_callback": log, **questions}


@asynccontextmanager
async def streams(target: Any) -> AsyncIterator[Any]:
    if isinstance(target, str):
        async with streamable_http_client(target) as both:
            yield both[:2]
    else:
        with open(os.devnull, "w") as silence:  # noqa: ASYNC230, PTH123 - nothing is written
            async with stdio_client(StdioServerParameters(command=target[0], args=target[1:]), silence) as both:
                yield both


@asynccontextmanager
async def connection(reading: Reading, seen: Seen) -> AsyncIterator[Verbs]:
    target, revision = reading["target"], reading["revision"]
    if IS_V1:
        types.LATEST_PROTOCOL_VERSION = revision
        async with streams(target) as (read, write), mcp.ClientSession(read, write, **callbacks(seen)) as session:
            await session.initialize()
            yield verbs(session, seen)
        return
    is_stateless = revision > LATEST_HANDSHAKE_VERSION
    mcp.client.session.LATEST_HANDSHAKE_VERSION = LATEST_HANDSHAKE_VERSION if is_stateless else revision
    server = target if isinstance(target, str) else StdioServerParameters(command=target[0], args=target[1:])
    async with mcp.Client(server, mode="auto" if is_stateless else "legacy", **callbacks(seen)) as client:
        yield verbs(client, seen)


read_all(connection, wire)
