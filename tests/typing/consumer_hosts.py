"""The types of clients over the servers of a host's configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, assert_type

from mcpgen import (
    Client,
    ClientGroup,
    McpgenError,
    NoServerConnected,
    SyncClient,
    SyncClientGroup,
    ToolResult,
    connect,
    connect_sync,
    read_config,
)
from mcpgen.generated.v2026_07_28 import GetPromptResult, ReadResourceResult, Root, Tool

CONFIG = {"mcpServers": {"notes": {"command": "python", "args": ["notes.py"], "env": {"A": "b"}}}}


async def use() -> None:
    async with connect(CONFIG, roots=[Root(uri="file:///work")]) as group:
        assert_type(group, ClientGroup)
        assert_type(group["notes"], Client)
        assert_type(group.clients, Mapping[str, Client])
        assert_type(group.failures, Mapping[str, McpgenError])
        assert_type(await group.call_tool("notes_add", {"a": 1}, timeout_seconds=1.0), ToolResult)
        assert_type(await group.call_tool("notes_add", returns=int), int)
        assert_type(await group.get_prompt("notes_ask"), GetPromptResult)
        assert_type(await group.read_resource("notes:all"), ReadResourceResult)
        assert_type(group.tools(), AsyncIterator[Tool])
    group = await connect(read_config("mcp.json"))
    assert_type(group, ClientGroup)


def use_blocking() -> None:
    assert_type(read_config("mcp.json"), dict[str, Any])
    with connect_sync(CONFIG) as group:
        assert_type(group, SyncClientGroup)
        assert_type(group["notes"], SyncClient)
        assert_type(group.call_tool("notes_add", returns=int), int)
        assert_type(group.tools(), Iterator[Tool])
    try:
        connect_sync({"mcpServers": {}})
    except NoServerConnected as error:
        assert_type(error.failures, dict[str, McpgenError])
