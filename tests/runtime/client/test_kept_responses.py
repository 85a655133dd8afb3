"""Of a response that ends a stream, or that is an error, a client keeps little while it does something else."""

from __future__ import annotations

import gc
import json
import sys
import traceback
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpgen import (
    ClientLimits,
    Context,
    InvalidStructuredContent,
    RequestRefused,
    Server,
    TransportClosed,
    UnexpectedResult,
    connect,
)
from mcpgen.generated.v2026_07_28 import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    ServerHandlers,
    TextContent,
    Tool,
)
from mcpgen.runtime.client import connection_task
from mcpgen.runtime.client.client_session import ClientSession
from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.client.subscriptions import ChangeStream
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event
from tests.faults.hostile_server_clients import attacked

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize(
    "end",
    [
        {"result": {"resultType": "complete", "more": "%s"}},
        {"result": {"resultType": 1, "more": "%s"}},
        {"result": {"resultType": "%s"}},
        {"error": {"code": 1, "message": "%s", "data": "%s"}},
    ],
)
async def test_a_stream_that_ended_keeps_little_of_its_response(end: dict[str, object], size: int) -> None:
    output: Any = SimpleNamespace(write=lambda _: None)
    session = ClientSession(output, ClientLimits(), output, output)
    stream = ChangeStream(SubscriptionFilter(), auto_reset_event(), 10)
    request = session.send("subscriptions/listen", UNSET, stream=stream)
    frame = msgspec.json.encode({"jsonrpc": "2.0", "id": request.id, **end}).replace(b"%s", b"x" * size)
    references = sys.getrefcount(frame)
    message: Any = envelope.decode(frame)
    session.resolve(request, message if isinstance(message, ErrorResponse) else message.result)
    del message

    assert references == sys.getrefcount(frame)
    assert len(msgspec.json.encode(request.response())) < 2000


async def test_the_response_to_a_ping_is_not_kept_until_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = b"x" * 100
    references: list[int] = []

    def send(method: str, _params: object) -> PendingRequest:
        request = PendingRequest(1, method, auto_reset_event())
        request.resolve(Raw(frame))
        return request

    async def sleep(_seconds: float) -> None:
        references.append(sys.getrefcount(frame))
        session.failure = None if len(references) < 3 else TransportClosed("it is over")

    session = SimpleNamespace(failure=None, limits=ClientLimits(), send=send)
    connection: Any = SimpleNamespace(session=session, deadlines=SimpleNamespace(start=lambda *_: None))
    monkeypatch.setattr(connection_task, "anyio", SimpleNamespace(sleep=sleep))
    await connection_task._send_pings(connection, 1)

    assert [references[0]] * 3 == references


async def test_an_error_keeps_no_response_by_its_traceback() -> None:
    """It would be kept while a user visits the URLs that the error lists."""
    async with connect(Server("own")) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.call_tool("missing")

    kept = [each for frame, _ in traceback.walk_tb(caught.tb) for each in frame.f_locals.values()]
    assert not [each for each in kept if isinstance(each, ErrorResponse | PendingRequest)]


@pytest.mark.parametrize(("size", "visits"), [(1_000, 1), (100_000, 0)])
async def test_the_text_of_an_error_counts_while_its_urls_are_visited(size: int, visits: int) -> None:
    page = {"mode": "url", "elicitationId": "1", "message": "m", "url": "https://example.com"}
    code = f"greet()\nwhile True: refuse(asked(), -32042, 'x' * {size}, data={{'elicitations': [{page}]}})"
    visited: list[object] = []

    async def visit(params: object, context: object) -> models.ElicitResult:
        visited.append(params)
        return models.ElicitResult(action="accept")

    limits = ClientLimits(max_in_flight_bytes=50_000)
    async with attacked(code, "2025-11-25", limits=limits, elicit_url=visit) as client:
        with pytest.raises(RequestRefused):
            await client.call_tool("sign_in")

    assert visits == len(visited)


class Careless(ServerHandlers[Context]):
    """Its tool returns other structured content than it lists, and none if its argument is `text`."""

    async def list_tools(self, params: PaginatedRequestParams, context: Context, /) -> ListToolsResult:
        schema: dict[str, object] = {"type": "object", "properties": {"kept": {"type": "integer"}}}
        tool = Tool(name="tool", input_schema={"type": "object"}, output_schema=schema)
        return ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="private")

    async def call_tool(self, params: CallToolRequestParams, context: Context, /) -> CallToolResult:
        content: dict[str, object] = {"kept": ["in a list"]}  # the collector tracks no dict of texts
        if params.arguments == {"text": True}:
            return CallToolResult(content=[TextContent(text=json.dumps(content))])
        return CallToolResult(content=[], structured_content=content)


def copies() -> int:
    """Return how many objects there are that are the content."""
    gc.collect()
    return sum(type(each) is dict and each == {"kept": ["in a list"]} for each in gc.get_objects())


async def test_refused_structured_content_is_kept_once() -> None:
    async with connect(Server("careless", handlers=Careless()), structured="strict") as client:
        await client.list_tools()
        with pytest.raises(InvalidStructuredContent) as refused:
            await client.call_tool("tool")

        assert refused.value.pointer == "/kept"
        assert copies() == 1


async def test_a_text_that_is_not_of_the_type_is_kept_as_text_only() -> None:
    async with connect(Server("careless", handlers=Careless())) as client:
        with pytest.raises(UnexpectedResult) as unexpected:
            await client.call_tool("tool", {"text": True}, returns=int)

        assert unexpected.value.result.text == '{"kept": ["in a list"]}'
        assert copies() == 0
