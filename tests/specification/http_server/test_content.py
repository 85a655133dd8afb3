"""What kinds of content are taken and given, and how much."""

from __future__ import annotations

import json

import pytest

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.limits import Limits
from tests.specification.http_server.http_clients import BOTH, JSON, Caller, caller, replaced, without
from tests.specification.http_server.revision_sets import everywhere, on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "563a3d1a")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "fbb9e28a")
@everywhere
async def test_one_response_and_nothing_before_it_is_one_object(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = await peer.call("echo", '{"text":"hi"}', identity="a").complete()

    assert (200, "application/json") == (answer.status, answer.header("content-type"))
    assert ("a", "hi") == (answer.json["id"], answer.json["result"]["content"][0]["text"])


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "fbb9e28a")
@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "563a3d1a")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@everywhere
@on_both_loops
async def test_what_is_told_before_the_response_makes_it_a_stream(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = peer.call("progress", meta='"progressToken":"p"', identity=7)
        *told, said = await answer.messages()

    assert (200, "text/event-stream") == (answer.status, answer.header("content-type"))
    assert ["notifications/progress"] * 2 == [each["method"] for each in told]
    assert (7, "done") == (said["id"], said["result"]["content"][0]["text"])


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@everywhere
async def test_a_stream_is_not_to_be_kept_by_anybody(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = peer.call("progress", meta='"progressToken":"p"')
        await answer.complete()

    assert "no-cache" in (answer.header("cache-control") or "")


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages", "908ffb13")
async def test_proxies_are_told_not_to_buffer_a_stream() -> None:
    async with caller(demo(), "2026-07-28") as peer:
        answer = peer.call("progress", meta='"progressToken":"p"')
        await answer.complete()

    assert "no" == answer.header("x-accel-buffering")


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@pytest.mark.parametrize(
    "accept",
    [
        "application/json,text/event-stream",
        "text/event-stream, application/json",
        "Application/JSON, Text/Event-Stream",
        "application/json;q=0.5, text/event-stream;q=0.9",
        "application/json; charset=utf-8, text/event-stream",
        "*/*",
        "application/*, text/*",
        "text/html, */*;q=0.1",
    ],
)
async def test_a_client_that_takes_both_kinds_is_served(accept: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, replaced(peer.lines(body), "Accept", accept)).complete()

    assert 200 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
async def test_a_client_that_does_not_say_what_it_takes_is_served(revision: str) -> None:
    """It MUST say so; but to HTTP, who says nothing takes anything, and nothing demands a refusal."""
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, without(peer.lines(body), "Accept")).complete()

    assert 200 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_kinds_may_come_on_several_lines(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        lines = [*without(peer.lines(body), "Accept"), ("Accept", "application/json"), ("Accept", "text/event-stream")]
        answer = await peer.post(body, lines).complete()

    assert 200 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@pytest.mark.parametrize(
    "accept", ["application/json", "text/event-stream", "text/html", "application/json, text/event-stream;q=0", "none"]
)
async def test_a_client_that_takes_one_kind_only_is_not_acceptable(accept: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, replaced(peer.lines(body), "Accept", accept)).complete()

    assert 406 == answer.status
    assert "error" in answer.json


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"'],
)
async def test_json_is_taken_however_it_is_called(kind: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, replaced(peer.lines(body), "Content-Type", kind)).complete()

    assert 200 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "text/plain; application/json",
        "application/json, text/plain",
    ],
)
async def test_other_content_is_not_supported(kind: str | None, revision: str) -> None:
    """What a page of any site can send without asking is of these kinds."""
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        lines = without(peer.lines(body), "Content-Type")
        answer = await peer.post(body, lines if kind is None else [*lines, ("Content-Type", kind)]).complete()

    assert 415 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
@pytest.mark.parametrize(
    ("encoding", "status"), [("gzip", 415), ("br", 415), ("gzip, identity", 415), ("Identity", 200), ("", 200)]
)
async def test_an_encoded_body_is_not_supported(encoding: str, status: int, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, [*peer.lines(body), ("Content-Encoding", encoding)]).complete()

    assert status == answer.status
    assert ("identity" if status == 415 else None) == answer.header("accept-encoding")


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_the_kind_of_content_is_looked_at_before_what_is_taken(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = await peer.post(peer.request(1, "tools/list"), peer.own_lines).complete()

    assert 415 == answer.status


@spec("2025-11-25", "basic/transports#streamable-http")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@on_both_loops
async def test_a_body_may_come_in_parts(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/call", '"name":"echo","arguments":{"text":"héllo"}')
        stream = peer.web.open("POST", "/mcp", peer.lines(body), [body[:1]], is_whole=False)
        for index in range(1, len(body)):
            stream.more(body[index : index + 1], is_last=False)
        stream.more(b"", is_last=True)
        (said,) = await stream.messages()

    assert "héllo" == said["result"]["content"][0]["text"]


@spec("2026-07-28", "basic/transports/index#messages", "2b576c5c")
@spec("2025-03-26", "basic/transports")
@spec("2025-11-25", "basic/transports", "76483a44")
@everywhere
async def test_messages_are_utf_8(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        body = peer.request(1, "tools/call", '"name":"echo","arguments":{"text":"ü"}')
        answer = await peer.post(body.replace("ü".encode(), b"\xfc"), peer.lines(body)).complete()

    assert 400 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
@pytest.mark.parametrize("says_so", [True, False])
async def test_a_body_over_the_limit_is_too_large(*, says_so: bool, revision: str) -> None:
    made = Server("demo", handlers=behaviour(), limits=Limits(max_frame_bytes=2000))
    async with caller(made, revision) as peer:
        body = peer.request(1, "tools/call", f'"name":"echo","arguments":{{"text":"{"x" * 3000}"}}')
        lines = peer.lines(body)
        if says_so:
            answer = await peer.post(body, lines).complete()
        else:
            answer = peer.web.open("POST", "/mcp", lines, [body[:1500]], is_whole=False)
            answer.more(body[1500:], is_last=True)
            await answer.complete()

    assert 413 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_a_length_over_the_limit_is_refused_before_anything_is_read(revision: str) -> None:
    made = Server("demo", handlers=behaviour(), limits=Limits(max_frame_bytes=2000))
    async with caller(made, revision) as peer:
        lines = [*peer.lines(peer.request(1, "tools/list")), ("Content-Length", "2001")]
        answer = await peer.web.open("POST", "/mcp", lines, is_whole=False).begun()

    assert 413 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_a_body_of_exactly_the_limit_is_taken(revision: str) -> None:
    made = Server("demo", handlers=behaviour(), limits=Limits(max_frame_bytes=2000))
    async with caller(made, revision) as peer:
        body = peer.request(1, "tools/call", '"name":"echo"')
        answer = await peer.post(body + b" " * (2000 - len(body)), peer.lines(body)).complete()
        longer = await peer.post(body + b" " * (2001 - len(body)), peer.lines(body)).complete()

    assert (200, 413) == (answer.status, longer.status)


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_who_leaves_in_the_middle_of_a_body_is_answered_by_nothing(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        body = peer.request(1, "tools/call", '"name":"wait"')
        stream = peer.web.open("POST", "/mcp", peer.lines(body), [body[:20]], is_whole=False)
        await peer.web.quiet()
        stream.leave()
        await stream.returned()

    assert (0, False) == (stream.status, own.waiting.is_set())


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/index#error-responses")
@everywhere
@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"{", b'"ping"', b"7", b"null", b"{}", b"[" * 20_000, b'{"jsonrpc":"2.0"}', b"\xff"]
)
async def test_a_body_that_is_no_message_is_a_bad_request(body: bytes, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = await peer.post(body, peer.lines(peer.request(1, "tools/list"))).complete()

        assert "tools" in await peer.result("tools/list")

    assert 400 == answer.status
    assert "id" not in answer.json


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@pytest.mark.parametrize("body", [b"nonsense", b"[]", b"{}"])
async def test_a_body_that_is_no_message_is_a_bad_request_without_a_session_as_well(body: bytes) -> None:
    async with caller(demo(), "2025-11-25") as peer:
        answer = await peer.web.ask("POST", "/mcp", [JSON, BOTH], body)

    assert 400 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
async def test_a_refusal_is_a_json_rpc_error_that_says_why() -> None:
    async with caller(demo(), "2025-11-25") as peer:
        answer = await Caller(peer.web, "2025-11-25").post(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}').complete()

    assert 400 == answer.status
    assert "session" in json.dumps(answer.json["error"]["message"]).lower()


@spec("2025-03-26", "basic/index#responses", "d2bdc721")
@spec("2025-11-25", "basic/index#error-responses", "73250b01")
@everywhere
async def test_a_refusal_by_status_has_the_id_of_the_request_if_it_can_be_read(revision: str) -> None:
    wrong = {
        406: ("Accept", "application/json"),
        415: ("Content-Type", "text/plain"),
        400: ("MCP-Protocol-Version", "1999-01-01"),
        404: ("Mcp-Session-Id", "unknown"),
    }
    async with caller(demo(), revision) as peer:
        if peer.is_stateless:
            del wrong[404]
        body = json.loads(peer.request("a", "tools/list", meta='"x":{"y":[1]}'))
        del body["id"]
        requested = json.dumps({**body, "id": "a"}).encode()  # behind what is not decoded
        said = {
            status: [
                await peer.post(each, replaced(peer.lines(requested), *header)).complete()
                for each in (requested, json.dumps(body).encode())
            ]
            for status, header in wrong.items()
        }

    assert dict.fromkeys(wrong, "a") == {each[0].status: each[0].json["id"] for each in said.values()}
    assert [] == [each for _, each in said.values() if "id" in each.json]
