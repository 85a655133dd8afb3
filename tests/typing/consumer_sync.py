"""What type checkers make of the blocking client: the same types as of `Client`, without `await`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from mcpgen import Audio, Change, File, Image, PromptError, Server, SyncChanges, SyncClient, ToolResult, connect_sync
from mcpgen.generated.v2026_07_28 import GetPromptResult, Root, Tool

server = Server("typed")


def use() -> None:
    with connect_sync(server, roots=[Root(uri="file:///work")], revisions=["2025-11-25"]) as client:
        assert_type(client, SyncClient)
        assert_type(client.call_tool("greet", {"name": "Ann"}, timeout_seconds=1.0), ToolResult)
        assert_type(client.get_prompt("greet"), GetPromptResult)
        assert_type(client.tools(), Iterator[Tool])
        assert_type(client.revision, str)
        with client.listen(tools=True) as changes:
            assert_type(changes, SyncChanges)
            for change in changes:
                assert_type(change, Change)


@server.tool
def draw() -> list[str | Image]:
    return ["a dot", Image(b"...", format="png")]


@server.prompt
def listen(name: str) -> Audio:
    if not name:
        raise PromptError("There is no name.")
    return Audio(data=b"...", mime_type="audio/wav")


@server.resource("files:report")
def report() -> File:
    return File("report.pdf", max_bytes=1_000_000)
