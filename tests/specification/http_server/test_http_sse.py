"""HTTP+SSE of 2024-11-05: a stream for all that the server says, and an address for what the client does."""

from __future__ import annotations

import json

import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.specification.http_server.http_clients import (
    INITIALIZED,
    JSON,
    STATELESS,
    STREAM,
    OldCaller,
    cancellation,
    initialize,
    joined,
    old_joined,
)
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import NEWEST, on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

SERVED = pytest.mark.parametrize("revisions", [None, ["2024-11-05"]], ids=["all", "2024-11-05 alone"])


@spec("2024-11-05", "basic/transports#security-warning", "5bd70c18", "4c8156c2")
@spec("2024-11-05", "basic/transports#http-with-sse")
@SERVED
@on_both_loops
async def test_a_stream_begins_with_where_to_post(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        stream = web.open("GET", "/sse", [STREAM])
        first = await stream.event()

    assert (200, "text/event-stream") == (stream.status, stream.header("content-type"))
    assert "endpoint" == first.name
    assert (first.data or "").startswith("/messages?")


@spec("2024-11-05", "basic/transports#security-warning", "71c887e2")
@spec("2024-11-05", "basic/transports#http-with-sse")
@SERVED
@on_both_loops
async def test_a_conversation_goes_over_posts_and_message_events(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = OldCaller(web, "2024-11-05")
        await peer.connect()
        accepted = await peer.tell(initialize("2024-11-05", identity="i"))
        event = await peer.stream.event()
        await peer.tell(INITIALIZED)
        said = await peer.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}')

    agreed = json.loads(event.data or "")
    assert (202, "message", "i") == (accepted.status, event.name, agreed["id"])
    assert "2024-11-05" == agreed["result"]["protocolVersion"]
    assert "hi" == said["result"]["content"][0]["text"]


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_what_is_told_and_asked_comes_on_the_stream_too() -> None:
    async with site(demo()) as web:
        peer = await old_joined(web, '{"roots":{}}')
        await peer.tell(peer.request("a", "tools/call", '"name":"progress"', '"progressToken":"p"'))
        told = [await peer.stream.message() for _ in range(3)]
        await peer.tell(peer.request("b", "tools/call", '"name":"roots"'))
        question = await peer.stream.message()
        await peer.answer(question, '{"roots":[{"uri":"file:///a"}]}')
        said = await peer.stream.message()
        await web.server.tools_changed()
        changed = await peer.stream.message()

    assert ["notifications/progress", "notifications/progress", "a"] == [
        each.get("method", each.get("id")) for each in told
    ]
    assert ("roots/list", "b") == (question["method"], said["id"])
    assert "notifications/tools/list_changed" == changed["method"]


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_a_slash_at_the_end_of_the_path_makes_no_difference() -> None:
    async with site(demo()) as web:
        stream = web.open("GET", "/sse/", [STREAM])
        target = (await stream.event()).data or ""
        accepted = await web.ask("POST", target, [JSON], b'{"jsonrpc":"2.0","id":1,"method":"ping"}')

        assert 1 == (await stream.message())["id"]
    assert (200, 202) == (stream.status, accepted.status)


@spec("2024-11-05", "basic/transports#http-with-sse")
@on_both_loops
async def test_several_clients_have_conversations_of_their_own() -> None:
    own = behaviour()
    async with site(demo(own)) as web:
        peers = [await old_joined(web) for _ in range(3)]
        for index, each in enumerate(peers):
            call = each.request(
                1, "tools/call", f'"name":"steps","arguments":{{"say":"{index}"}}', '"progressToken":"p"'
            )
            await each.tell(call)
            await each.stream.message()
        own.gate.set()
        found = [[await each.stream.message() for _ in range(2)][-1] for each in peers]

    assert ["0", "1", "2"] == [each["result"]["content"][0]["text"] for each in found]
    assert 3 == len({each.target for each in peers})


@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
async def test_a_request_is_cancelled_by_notification() -> None:
    own = behaviour()
    async with site(demo(own)) as web:
        peer = await old_joined(web)
        await peer.tell(peer.request(5, "tools/call", '"name":"steps"', '"progressToken":"p"'))
        await peer.stream.message()
        await peer.tell(cancellation(5))
        await web.quiet()

        assert 1 == own.given_up
        assert [] == peer.stream.pending


@spec("2024-11-05", "basic/transports#http-with-sse")
@pytest.mark.parametrize("target", ["/messages", "/messages?session=", "/messages?session=nobody", "/messages?other=1"])
async def test_a_post_to_nobody_is_not_found(target: str) -> None:
    async with site(demo()) as web:
        await old_joined(web)
        answer = await web.ask("POST", target, [JSON], initialize("2024-11-05"))

    assert answer.status in (400, 404)


@spec("2024-11-05", "basic/transports#http-with-sse")
@on_both_loops
async def test_when_the_stream_is_closed_the_conversation_is_over() -> None:
    own = behaviour()
    async with site(demo(own)) as web:
        peer = await old_joined(web)
        await peer.tell(peer.request(5, "tools/call", '"name":"steps"', '"progressToken":"p"'))
        await peer.stream.message()
        peer.stream.leave()
        await peer.stream.returned()
        await web.quiet()
        answer = await peer.post(peer.request(6, "ping")).complete()

        assert (404, 1) == (answer.status, own.given_up)


@spec("2024-11-05", "basic/transports#http-with-sse")
@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("POST", "/sse", "GET"),
        ("DELETE", "/sse", "GET"),
        ("GET", "/messages", "POST"),
        ("DELETE", "/messages", "POST"),
    ],
)
async def test_other_methods_are_not_allowed(method: str, target: str, allowed: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask(method, target, [JSON, STREAM], b"{}" if method == "POST" else b"")

    assert (405, allowed) == (answer.status, answer.header("allow"))


@spec("2024-11-05", "basic/transports#http-with-sse")
@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b"{}", b"null", b'{"jsonrpc":"2.0"}'])
async def test_what_is_no_message_is_a_bad_request(body: bytes) -> None:
    async with site(demo()) as web:
        peer = await old_joined(web)
        answer = await peer.post(body).complete()

        assert {} == (await peer.ask("ping"))["result"]

    assert 400 == answer.status


@spec("2024-11-05", "basic/transports#http-with-sse")
@pytest.mark.parametrize(
    "lines", [[], [("Accept", "text/event-stream")], [("Accept", "*/*")], [("Accept", "text/event-stream, */*")]]
)
async def test_whatever_takes_a_stream_gets_one(lines: list[tuple[str, str]]) -> None:
    """2024-11-05 asks for no Accept at all."""
    async with site(demo()) as web:
        first = await web.open("GET", "/sse", lines).event()

    assert "endpoint" == first.name


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_the_message_endpoint_demands_no_accept() -> None:
    async with site(demo()) as web:
        peer = await old_joined(web)
        accepted = await peer.post(peer.request(1, "ping"), [JSON]).complete()

    assert 202 == accepted.status


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_the_endpoints_may_be_elsewhere() -> None:
    async with site(demo(), sse_path="/old/stream", message_path="/old/post") as web:
        peer = OldCaller(web, "2024-11-05")
        await peer.connect("/old/stream")
        await peer.tell(initialize("2024-11-05"))
        said = await peer.stream.message()
        nothing = await web.ask("GET", "/sse", [STREAM])

    assert "/old/post?" in peer.target
    assert "result" in said
    assert 404 == nothing.status


@spec("2025-03-26", "basic/transports#backwards-compatibility")
@spec("2025-11-25", "basic/transports#backwards-compatibility")
@spec("2026-07-28", "basic/transports/streamable-http#http-sse-transport-2024-11-05")
async def test_the_old_endpoints_stand_beside_the_new_one() -> None:
    async with site(demo()) as web:
        old = await old_joined(web)
        peers = [await joined(web, each) for each in ("2025-03-26", "2025-11-25", STATELESS)]
        found = [(await old.ask("tools/list"))["result"]]
        found += [await each.result("tools/list") for each in peers]

    assert ["echo"] * 4 == [each["tools"][0]["name"] for each in found]


@spec("2025-03-26", "basic/transports#backwards-compatibility")
@spec("2026-07-28", "basic/transports/streamable-http#http-sse-transport-2024-11-05")
async def test_a_client_that_tries_the_new_transport_first_at_the_old_address_is_sent_on() -> None:
    """It posts there, is refused with 405, and opens the stream."""
    async with site(demo()) as web:
        tried = await web.ask(
            "POST", "/sse", [JSON, ("Accept", "application/json, text/event-stream")], initialize("2025-11-25")
        )
        first = await web.open("GET", "/sse", [STREAM]).event()

    assert 405 == tried.status
    assert "endpoint" == first.name


@spec("2024-11-05", "basic/transports#http-with-sse")
@on_both_loops
async def test_a_server_that_ends_closes_the_stream() -> None:
    async with site(demo()) as web:
        peer = await old_joined(web)
        await web.shutdown()
        await peer.stream.complete()


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    async with site(demo(), limits=HttpLimits(keep_alive_seconds=0.02)) as web:
        peer = await old_joined(web)
        await peer.stream.commented(3)

        assert {} == (await peer.ask("ping"))["result"]


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_the_address_under_a_mount_is_one_that_the_client_can_use() -> None:
    async with site(demo(), root_path="/api/mcp") as web:
        stream = web.open("GET", "/sse", [STREAM])
        first = await stream.event()

    assert (first.data or "").startswith("/api/mcp/messages?")


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_a_session_of_the_one_transport_is_none_of_the_other() -> None:
    async with site(demo()) as web:
        modern = await joined(web, "2025-11-25")
        old = await old_joined(web)
        crossed = await web.ask("POST", f"/messages?session={modern.session}", [JSON], modern.request(1, "ping"))
        talk = old.target.partition("=")[2]
        lines = [JSON, ("Accept", "application/json, text/event-stream"), ("Mcp-Session-Id", talk)]
        across = await web.ask("POST", "/mcp", lines, old.request(1, "ping"))

    assert (404, 404) == (crossed.status, across.status)


@spec("2024-11-05", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("offered", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_a_version_is_agreed_on_as_elsewhere(offered: str) -> None:
    async with site(demo()) as web:
        peer = await OldCaller(web, offered).connect()
        await peer.tell(initialize(offered))
        said = await peer.stream.message()

    assert offered == said["result"]["protocolVersion"]


@spec("2026-07-28", "basic/transports/streamable-http#http-sse-transport-2024-11-05")
@pytest.mark.parametrize("revisions", [[NEWEST], ["2025-03-26", "2025-06-18", "2025-11-25", NEWEST]])
async def test_who_does_not_serve_2024_11_05_has_no_such_stream(revisions: list[str]) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = await web.ask("GET", "/sse", [STREAM])

    assert 404 == answer.status
