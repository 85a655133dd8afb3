"""What type checkers make of `mcpgen.testing`: `with` gives the blocking client, `async with` the other one."""

from __future__ import annotations

from typing import assert_type

from mcpgen import Client, Server, SyncClient, ToolResult
from mcpgen.generated.v2026_07_28 import CreateMessageResult, Root
from mcpgen.testing import REVISIONS, Answers, RecordedConnection, Recorder, connect_as

server = Server("typed")


def a_blocking_test(revision: str) -> None:
    assert_type(REVISIONS, tuple[str, ...])
    recorder = Recorder(server)
    connection = connect_as(recorder, revision, elicit=Answers({"size": 42}, "decline"), roots=[Root(uri="file:///a")])
    assert_type(connection, RecordedConnection)
    with connection as client:
        assert_type(client, SyncClient)
        assert_type(client.call_tool("order"), ToolResult)
    assert_type(recorder.transcript(), str)
    assert_type(recorder.problems(), list[str])


async def an_async_test() -> None:
    async with connect_as(server, "2025-11-25", sample=Answers("hello", LookupError("no model"))) as client:
        assert_type(client, Client)
        assert_type(await client.call_tool("guess"), ToolResult)


def results_are_answers(result: CreateMessageResult) -> Answers:
    return Answers(result, "text")
