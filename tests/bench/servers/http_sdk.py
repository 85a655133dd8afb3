"""The official SDK over HTTP: the low-level `Server` of ``sdk.py``, with the options that its arguments name.

Without any it answers handshake clients with streams, as it does by default; ``json`` lets it answer with JSON, and
``stateless`` keeps no sessions, which costs it more. It gets the schema of its one tool by a function: without one it
would list its tools in each call of a client of 2026-07-28.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from http_running import PATH, run
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import CallToolRequestParams, CallToolResult, SubscriptionsListenRequestParams
from sdk import ECHO, call_tool, server

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

bus = InMemorySubscriptionBus()


async def call(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    """Return the text, and tell those who listen if the tool is `change`."""
    if params.name == "change":
        await bus.publish(ToolsListChanged())
    return await call_tool(context, params)


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema that all tools here have."""
    del name
    return ECHO.input_schema


if __name__ == "__main__":
    server.get_tool_input_schema = schema_of
    server.add_request_handler("tools/call", CallToolRequestParams, call)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(bus))
    options = {"json_response": "json" in sys.argv, "stateless_http": "stateless" in sys.argv}
    run("mcp", server.streamable_http_app(streamable_http_path=PATH, **options))
