"""Tools: what is listed, what is called, and what each revision makes of a result."""

from __future__ import annotations

from typing import Any

import pytest

from tests.specification.citation import (
    HANDSHAKES,
    LABELS,
    everywhere,
    from_every_home,
    since,
    spec,
    with_handshakes,
)
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import handlers, server

pytestmark = pytest.mark.anyio

NEWEST = LABELS[-1]
FULL_TOOL = {
    "name": "full",
    "title": "Full",
    "description": "Has it all.",
    "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}],
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "outputSchema": {"type": "object", "properties": {"b": {"type": "string"}}},
    "annotations": {"title": "Full", "readOnlyHint": True},
    "_meta": {"example.com/key": 1},
}
FULL_RESULT = {
    "content": [
        {
            "type": "text",
            "text": "a",
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"},
        },
        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "note://a", "name": "a", "title": "A", "size": 3},
        {"type": "resource", "resource": {"uri": "note://a", "mimeType": "text/plain", "text": "A", "_meta": {"k": 1}}},
    ],
    "structuredContent": {"b": "c"},
    "isError": False,
}


async def list_full(own: Any, params: Any, context: Any) -> Any:
    del params, context
    return own.made("ListToolsResult", {"tools": [FULL_TOOL]})


async def everything(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    del arguments, context
    return own.made("CallToolResult", FULL_RESULT)


@spec("2026-07-28", "server/tools#capabilities", "76b46c1f")
@spec("2024-11-05", "server/tools#listing-tools")
@spec("2025-11-25", "server/tools#listing-tools")
@spec("2026-07-28", "server/tools#listing-tools")
@everywhere
@from_every_home
async def test_tools_are_listed_with_name_and_schema(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result("tools/list")

    assert [{"name": "echo", "inputSchema": {"type": "object"}}] == result["tools"]


@spec("2024-11-05", "server/tools#calling-tools")
@spec("2025-11-25", "server/tools#calling-tools")
@spec("2026-07-28", "server/tools#calling-tools")
@everywhere
@from_every_home
async def test_a_tool_gets_its_arguments_and_its_text_comes_back(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        (said,) = await peer.call("echo", '{"text":"h\\u00e9llo \\ud83c\\udf0d"}')

    assert [{"type": "text", "text": "héllo \U0001f30d"}] == said["result"]["content"]


@spec("2024-11-05", "server/tools#calling-tools")
@everywhere
@from_every_home
async def test_arguments_reach_the_handler_as_they_were_written(native_revision: str, revision: str) -> None:
    own = handlers(native_revision)
    async with client(server(native_revision, own=own), revision) as peer:
        await peer.call("echo", '{"text":"","deep":{"list":[1,2.5,null,true]},"_meta":{"mine":1},"task":{"ttl":1}}')

    expected = {"text": "", "deep": {"list": [1, 2.5, None, True]}, "_meta": {"mine": 1}, "task": {"ttl": 1}}
    assert expected == own.seen["tools/call"].arguments


@spec("2024-11-05", "server/tools#error-handling")
@spec("2025-11-25", "server/tools#error-handling")
@spec("2026-07-28", "server/tools#error-handling")
@everywhere
@from_every_home
async def test_an_unknown_tool_is_a_protocol_error(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        error = await peer.error("tools/call", '"name":"invalid_tool_name","arguments":{}')

    assert {"code": -32602, "message": "Unknown tool: invalid_tool_name"} == error


@spec("2026-07-28", "schema#calltoolresult", "ab6a8a55")
@spec("2024-11-05", "server/tools#error-handling")
@spec("2026-07-28", "server/tools#error-handling")
@everywhere
@from_every_home
async def test_an_error_of_the_tool_is_a_result(native_revision: str, revision: str) -> None:
    async def fail(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments, context
        return own.made("CallToolResult", {"content": [{"type": "text", "text": "limit exceeded"}], "isError": True})

    async with client(server(native_revision, tools={"fail": fail}), revision) as peer:
        (said,) = await peer.call("fail")

    assert (True, "limit exceeded") == (said["result"]["isError"], said["result"]["content"][0]["text"])


KNOWN_OF_TOOLS = {
    "2024-11-05": {"name", "description", "inputSchema"},
    "2025-03-26": {"name", "description", "inputSchema", "annotations"},
    "2025-06-18": {"name", "description", "inputSchema", "annotations", "title", "outputSchema", "_meta"},
    "2025-11-25": set(FULL_TOOL),
    "2026-07-28": set(FULL_TOOL),
}


@spec("2024-11-05", "server/tools#tool")
@spec("2025-11-25", "server/tools#tool")
@spec("2026-07-28", "server/tools#tool")
@everywhere
async def test_a_client_sees_of_a_tool_what_its_revision_knows(revision: str) -> None:
    async with client(server(NEWEST, list_tools=list_full), revision) as peer:
        (tool,) = (await peer.result("tools/list"))["tools"]

    assert {key: each for key, each in FULL_TOOL.items() if key in KNOWN_OF_TOOLS[revision]} == tool


KINDS = {
    "2024-11-05": {"text", "image", "resource"},
    "2025-03-26": {"text", "image", "audio", "resource"},
    "2025-06-18": {"text", "image", "audio", "resource", "resource_link"},
    "2025-11-25": {"text", "image", "audio", "resource", "resource_link"},
    "2026-07-28": {"text", "image", "audio", "resource", "resource_link"},
}


@spec("2024-11-05", "server/tools#tool-result")
@spec("2025-03-26", "server/tools#tool-result")
@spec("2025-06-18", "server/tools#tool-result")
@spec("2025-11-25", "server/tools#tool-result")
@spec("2026-07-28", "server/tools#tool-result")
@everywhere
async def test_a_result_holds_the_blocks_that_the_revision_knows_and_loses_none(revision: str) -> None:
    async with client(server(NEWEST, tools={"everything": everything}), revision) as peer:
        (said,) = await peer.call("everything")

    blocks = said["result"]["content"]
    assert {each["type"] for each in blocks} <= KINDS[revision]
    assert 5 <= len(blocks)


@spec("2025-06-18", "server/tools#structured-content")
@spec("2025-11-25", "server/tools#structured-content")
@spec("2026-07-28", "server/tools#structured-content")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_structured_content_comes_beside_the_blocks(revision: str) -> None:
    async with client(server(NEWEST, tools={"everything": everything}), revision) as peer:
        (said,) = await peer.call("everything")

    assert {"b": "c"} == said["result"]["structuredContent"]


@spec("2024-11-05", "server/tools#tool-result")
@pytest.mark.parametrize("revision", since("2024-11-05", "2025-06-18"))
async def test_structured_content_is_text_where_the_revision_has_none(revision: str) -> None:
    async def structured(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments, context
        return own.made("CallToolResult", {"content": [], "structuredContent": {"b": "c"}})

    async with client(server(NEWEST, tools={"structured": structured}), revision) as peer:
        (said,) = await peer.call("structured")

    assert ['{"b":"c"}'] == [each["text"].replace(" ", "") for each in said["result"]["content"]]


@spec("2024-11-05", "server/tools#list-changed-notification")
@spec("2025-11-25", "server/tools#list-changed-notification", "5d45a3e4")
@with_handshakes
@from_every_home
async def test_a_session_is_told_that_the_tools_have_changed(native_revision: str, revision: str) -> None:
    made = server(native_revision)
    async with client(made, revision) as peer:
        await made.tools_changed()

        assert [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}] == await peer.wire.rest()


@spec("2024-11-05", "server/tools#capabilities")
@spec("2025-11-25", "server/tools#capabilities")
@with_handshakes
async def test_a_server_that_has_not_declared_so_tells_of_no_changes(revision: str) -> None:
    made = server(NEWEST, capabilities={"tools": {}, "prompts": {}, "resources": {}})
    async with client(made, revision) as peer:
        await made.tools_changed()
        await made.prompts_changed()
        await made.resources_changed()

        assert [] == await peer.wire.rest()


@spec("2026-07-28", "server/tools#capabilities", "c523edbf")
@spec("2026-07-28", "server/tools#listing-tools")
@everywhere
async def test_the_list_is_the_same_for_every_connection_and_after_any_request(revision: str) -> None:
    made = server(NEWEST)
    async with client(made, revision) as first, client(made, HANDSHAKES[-1]) as other:
        before = await first.result("tools/list")
        await other.call("echo")
        await first.call("echo")

        assert before == await first.result("tools/list")
