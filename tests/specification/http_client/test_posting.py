"""What a client sends over HTTP: each message as its own POST, with the headers of its era, and how it is answered."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestLost, UsageError
from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import HANDSHAKES, since, spec
from tests.specification.client.scripted_server import META, complete, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, opened, text

if TYPE_CHECKING:
    from tests.specification.http_client.scripted_http_server import Exchange

pytestmark = pytest.mark.anyio

SESSION = "a-b.c~1"
HTTP = [each for each in HANDSHAKES if each != "2024-11-05"]


# A batch of a server.
QUESTIONS = [{"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]


def said(asked: Exchange) -> dict[str, str]:
    """Return the headers that MCP has defined."""
    return {name: value for name, value in asked.headers.items() if name.startswith("mcp-")}


# --- requests


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "2f6c9e0b", "92a4291f")
@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers", "db5cb8ea")
@spec("2026-07-28", "basic/transports/streamable-http#client-behavior", "00326c52", "f74a56e6")
@spec(
    "2026-07-28",
    "basic/transports/streamable-http#sending-messages",
    "6be208b2",
    "9f8efab0",
    "f9719f40",
    "c46a2592",
    "e3eb9543",
)
@spec("2026-07-28", "basic/transports/streamable-http#request-metadata")
@on_both_loops
async def test_a_stateless_request_is_a_post_whose_headers_repeat_its_body() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("weather", {"city": "Seattle, WA"}))
        asked = await server.hear(method="tools/call")
        await asked.result(text("rain"))

        assert "rain" == (await calling.outcome()).content[0].text
        assert server.path == asked.target
        assert "application/json, text/event-stream" == asked.headers["accept"]
        assert "application/json" == asked.headers["content-type"]
        assert {"mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "weather"} == said(asked)
        assert {"name": "weather", "arguments": {"city": "Seattle, WA"}} == {
            key: value for key, value in asked.message["params"].items() if key != "_meta"
        }


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "c46a2592")
@spec("2026-07-28", "basic/transports/streamable-http#client-behavior", "00326c52")
@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers", "64f8d3fb")
@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "d069df8e")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("resources/read", {"uri": "file:///a b"}, "file:///a b"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("tools/call", {"name": "zażółć"}, "=?base64?" + base64.b64encode("zażółć".encode()).decode() + "?="),
        ("tools/call", {"name": "a\r\nX-Evil: 1"}, "=?base64?" + base64.b64encode(b"a\r\nX-Evil: 1").decode() + "?="),
        ("tools/call", {"name": " a "}, "=?base64?IGEg?="),
        ("tools/call", {"name": "=?base64?YQ==?="}, "=?base64?" + base64.b64encode(b"=?base64?YQ==?=").decode() + "?="),
        ("tools/list", {}, None),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
            None,
        ),
    ],
)
async def test_the_name_is_repeated_where_there_is_one_in_a_form_that_no_header_can_change(
    method: str, params: dict[str, Any], name: str | None
) -> None:
    async with opened(NEWEST) as (client, server):
        server.is_judged = False
        asking = server.start(client.request_json(method, params))
        asked = await server.hear(method=method)
        await asked.result({"resultType": "complete"})
        await asking.outcome()

        assert name == asked.headers.get("mcp-name")
        assert "x-evil" not in asked.headers


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "c46a2592")
async def test_a_notification_that_does_not_name_its_revision_has_the_headers_of_the_requests_before_it() -> None:
    async with opened(NEWEST) as (client, server):
        server.is_judged = False  # the revision has no such notification, but an extension may
        client._engine.connection.write(b'{"jsonrpc":"2.0","method":"notifications/example"}')
        asked = await server.hear(method="notifications/example")
        await asked.answer(202)

    assert {"mcp-protocol-version": NEWEST, "mcp-method": "notifications/example"} == said(asked)


@spec("2025-11-25", "basic/lifecycle#version-negotiation", "aa543eb9")
@spec("2024-11-05", "basic/transports#security-warning", "d6efef0b")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "30ce2c91", "a4bd8e65", "c755746a", "33cba7d4")
@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "6978949a")
@spec("2025-11-25", "basic/lifecycle#operation", "c015e46d")
@spec("2025-11-25", "basic/transports#protocol-version-header")
@spec("2025-06-18", "basic/transports#protocol-version-header", "6ce4ff85", "9f47e15c")
@spec("2025-03-26", "basic/transports#session-management", "21e11244")
@spec("2024-11-05", "basic/lifecycle#initialization")
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_and_its_revision_are_named_from_the_answer_to_the_greeting_on(revision: str) -> None:
    expected = {"mcp-session-id": SESSION}
    if revision in since("2025-06-18"):
        expected["mcp-protocol-version"] = revision
    async with opened(revision, session=SESSION) as (client, server):
        pinging = server.start(client.ping())
        asked = await server.hear(method="ping")
        await asked.result({})
        await pinging.outcome()
    greeting, *others = server.exchanges

    assert {} == said(greeting)
    assert ["POST", "GET", "POST", "DELETE"] == [each.verb for each in others]
    assert [expected] * 4 == [said(each) for each in others]


@spec("2025-11-25", "basic/transports#session-management")
async def test_a_server_without_sessions_is_told_none() -> None:
    async with opened("2025-11-25") as (client, server):
        pinging = server.start(client.ping())
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()

    assert ["initialize", "notifications/initialized", "", "ping"] == [each.method for each in server.exchanges]
    assert not any("mcp-session-id" in each.headers for each in server.exchanges)


@spec("2025-11-25", "basic/transports#session-management")
@pytest.mark.parametrize("session", ["a b", "\x7f", "ä", "a" * 4097])
async def test_what_no_session_can_be_called_is_refused(session: str) -> None:
    from mcpgen import RequestLost, connect
    from tests.specification.client.scripted_server import initialized
    from tests.specification.http_client.scripted_http_server import played

    async with played() as server:
        connecting = server.start(_start(connect(server.url, revisions=["2025-11-25"])))
        asked = await server.hear(method="initialize")
        await asked.result(initialized("2025-11-25"), mcp_session_id=session)

        with pytest.raises(RequestLost, match=r"the server sent an invalid Mcp-Session-Id|Invalid header value char"):
            await connecting.outcome()


async def _start(connection: Any) -> Any:
    return await connection


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "da16410b")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "88ff4d24")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@pytest.mark.parametrize("revision", [*HTTP, NEWEST])
@on_both_loops
async def test_an_answer_may_come_as_json_or_at_the_end_of_a_stream(revision: str) -> None:
    told: list[float] = []
    async with opened(revision) as (client, server):
        first = server.start(client.call_tool("a", {}))
        await (await server.hear(method="tools/call")).result(complete(revision, content=[]))
        await first.outcome()
        second = server.start(client.call_tool("b", {}, on_progress=lambda *now: told.append(now[0])))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.chunk(b": a comment\n\n")
        token = asked.message["params"]["_meta"]["progressToken"]
        for progress in (1, 2):
            params = {"progressToken": token, "progress": progress}
            await asked.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": complete(revision, content=[])})
        await asked.end()
        await second.outcome()

        assert [1, 2] == told


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_a_content_type_may_have_parameters_and_capitals(kind: str) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).result(text(), content_type=kind)

        assert "ok" == (await calling.outcome()).content[0].text


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
async def test_an_answer_may_come_in_a_batch() -> None:
    async with opened("2025-03-26") as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
        await asked.json([log, {"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}}])

        assert [] == (await calling.outcome()).content


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_a_batch_answers_nothing_in_a_revision_without_batches(revision: str) -> None:
    async with opened(revision) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.json([{"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}}])

        with pytest.raises(RequestLost, match="with a body that is not the response to it"):
            await calling.outcome()


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@spec("2025-11-25", "basic/transports#multiple-connections")
@on_both_loops
async def test_requests_travel_side_by_side_up_to_a_number() -> None:
    async with opened(NEWEST, limits=ClientLimits(max_connections=3)) as (client, server):
        calls = [server.start(client.call_tool(f"t{number}")) for number in range(5)]
        asked = [await server.hear(method="tools/call") for _ in range(3)]
        with anyio.move_on_after(0.05):
            await server.hear(method="tools/call")
            pytest.fail("a fourth request was made")
        await asked[1].result(text())
        fourth = await server.hear(method="tools/call")
        await asked[0].result(text())
        for each in (await server.hear(method="tools/call"), fourth, asked[2]):
            await each.result(text())
        for each in calls:
            await each.outcome()


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@on_both_loops
async def test_whoever_asks_more_than_can_be_sent_is_held_back() -> None:
    limits = ClientLimits(max_connections=1, max_buffered_bytes=3000)
    async with opened(NEWEST, limits=limits) as (client, server):
        calls = [server.start(client.call_tool("a", {"text": "x" * 2000})) for _ in range(6)]
        for number in range(6):
            asked = await server.hear(method="tools/call")
            await anyio.wait_all_tasks_blocked()
            written = sum(each.is_over is False for each in calls)

            assert 6 - number == written
            assert client._engine.connection.channel._queued_bytes < 3000 + 2500

            await asked.result(text())
        for each in calls:
            await each.outcome()

        assert 0 == client._engine.connection.channel._queued_bytes


# --- what is no request


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@on_both_loops
async def test_an_answer_of_ours_does_not_wait_behind_our_requests() -> None:
    def elicit(params: models.ElicitRequestFormParams, context: object) -> models.ElicitResult:
        return models.ElicitResult(action="accept", content={"name": "me"})

    async with opened("2025-11-25", elicit=elicit, limits=ClientLimits(max_connections=1)) as (client, server):
        calling = server.start(client.call_tool("ask"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"mode": "form", "message": "Who?", "requestedSchema": schema}
        await asked.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        answer = await server.hear()

        assert {
            "jsonrpc": "2.0",
            "id": "q",
            "result": {"action": "accept", "content": {"name": "me"}},
        } == answer.message

        await answer.accepted()
        await asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}})
        await asked.end()
        await calling.outcome()


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "0e8859e4")
async def test_the_answers_to_a_batch_are_one_batch() -> None:
    async with opened("2025-03-26", roots=[], session=SESSION) as (client, server):
        calling = server.start(client.call_tool("ask"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(QUESTIONS)
        answers = await server.hear()
        await answers.accepted()

        assert {1, 2} == {each["id"] for each in answers.message}

        await asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}})
        await asked.end()
        await calling.outcome()


@spec("2025-11-25", "basic/lifecycle#initialization")
async def test_nothing_is_asked_before_the_server_has_taken_it_that_the_handshake_is_over() -> None:
    from mcpgen import connect
    from tests.specification.client.scripted_server import initialized
    from tests.specification.http_client.scripted_http_server import played

    async with played() as server:
        connecting = server.start(_start(connect(server.url, revisions=["2025-11-25"])))
        await (await server.hear(method="initialize")).result(initialized("2025-11-25"))
        told = await server.hear(method="notifications/initialized")
        client = await connecting.outcome()
        pinging = server.start(client.ping())
        with anyio.move_on_after(0.05):
            await server.hear(method="ping")
            pytest.fail("the request did not wait")
        await told.accepted()
        await (await server.hear("GET")).answer(405)
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()
        await client.close()


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@on_both_loops
async def test_notifications_come_in_the_order_in_which_they_were_told() -> None:
    async with opened("2025-11-25", roots=lambda context: []) as (client, server):
        for _ in range(3):
            await client.roots_changed()
        first = await server.hear(method="notifications/roots/list_changed")
        with anyio.move_on_after(0.05):
            await server.hear(method="notifications/roots/list_changed")
            pytest.fail("the second did not wait for the first")
        await first.accepted()
        for _ in range(2):
            await (await server.hear(method="notifications/roots/list_changed")).accepted()


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
async def test_a_notification_that_is_not_taken_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with opened("2025-11-25", roots=lambda context: []) as (client, server):
        await client.roots_changed()
        await (await server.hear(method="notifications/roots/list_changed")).answer(500, b"oh no")
        pinging = server.start(client.ping())
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()

        assert ["the server did not accept notifications/roots/list_changed"] == [
            each.getMessage().partition(":")[0] for each in caplog.records if each.levelname == "WARNING"
        ]


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
async def test_a_batch_of_answers_that_is_not_taken_is_logged_as_a_message(caplog: pytest.LogCaptureFixture) -> None:
    async with opened("2025-03-26", roots=[], session=SESSION) as (client, server):
        calling = server.start(client.call_tool("ask"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(QUESTIONS)
        await (await server.hear()).answer(500, b"oh no")
        await asked.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}})
        await asked.end()
        await calling.outcome()
        pinging = server.start(client.ping())
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()

        assert ["the server did not accept a message"] == [
            each.getMessage().partition(":")[0] for each in caplog.records if each.levelname == "WARNING"
        ]


# --- parameters that headers repeat

TOOL = {
    "name": "sql",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "more": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
            "query": {"type": "string"},
        },
    },
}
LISTED = {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}


@spec(
    "2026-07-28",
    "basic/transports/streamable-http#server-behavior-for-custom-headers",
    "96cb5252",
    "4374d6c5",
    "3981f2ff",
)
@spec("2026-07-28", "basic/transports/streamable-http#custom-headers-from-tool-parameters", "95a72c7e", "cadadf66")
@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "ab79f989")
@spec("2026-07-28", "basic/transports/streamable-http#client-behavior", "c75afa9b", "945b41f6", "6655f2ed")
@spec("2026-07-28", "server/tools#x-mcp-header")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"region": "us-west1", "query": "SELECT 1"}, {"region": "us-west1"}),
        ({"limit": -7, "dry": True, "more": {"deep": "x"}}, {"limit": "-7", "dry": "true", "deep": "x"}),
        ({"limit": 42.0, "dry": False}, {"limit": "42", "dry": "false"}),
        ({"region": None, "more": {}}, {}),
        ({"more": {"region": "elsewhere"}}, {}),
        ({"region": "Hello, 世界"}, {"region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
        ({"region": " padded "}, {"region": "=?base64?IHBhZGRlZCA=?="}),
        ({"region": "line1\nline2"}, {"region": "=?base64?bGluZTEKbGluZTI=?="}),
        ({"region": "x\r\nMcp-Session-Id: 1\r\n\r\n"}, {"region": "=?base64?eA0KTWNwLVNlc3Npb24tSWQ6IDENCg0K?="}),
        ({"region": "=?base64?literal?="}, {"region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}),
        ({"region": ""}, {"region": ""}),
    ],
)
async def test_arguments_are_repeated_in_headers_as_the_listed_schema_says(
    arguments: dict[str, object], expected: dict[str, str]
) -> None:
    async with opened(NEWEST) as (client, server):
        listing = server.start(client.list_tools())
        await (await server.hear(method="tools/list")).result(LISTED)
        await listing.outcome()
        calling = server.start(client.call_tool("sql", arguments))
        asked = await server.hear(method="tools/call")
        await asked.result(text())
        await calling.outcome()

        assert {f"mcp-param-{name}": value for name, value in expected.items()} == {
            name: value for name, value in asked.headers.items() if name.startswith("mcp-param-")
        }
        assert "mcp-session-id" not in asked.headers


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
async def test_an_argument_that_no_header_can_carry_is_not_sent() -> None:
    async with opened(NEWEST) as (client, server):
        listing = server.start(client.list_tools())
        await (await server.hear(method="tools/list")).result(LISTED)
        await listing.outcome()

        with pytest.raises(UsageError, match="the argument 'region' cannot be put into the header Mcp-Param-Region"):
            await client.call_tool("sql", {"region": ["a", "b"]})

        assert [] == server.unheard


@spec("2026-07-28", "basic/index#meta")
async def test_who_asks_is_in_the_body_alone() -> None:
    async with opened(NEWEST, name="tests", version="3") as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.result(text())
        await calling.outcome()

        assert {"name": "tests", "version": "3"} == asked.message["params"]["_meta"][META + "clientInfo"]
        assert asked.headers["user-agent"].startswith("mcpgen/")
