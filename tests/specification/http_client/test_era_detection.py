"""Finding out what a server at a URL is: of today, of before, or of HTTP+SSE; and what is remembered of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import ClientLimits, HttpRefused, NoCommonRevision, RequestLost, RequestRefused, TransportClosed, connect
from tests.specification.citation import HANDSHAKES, spec
from tests.specification.client.scripted_server import discovered, initialized, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, Exchange, Played, closed, greeted, played

if TYPE_CHECKING:
    from tests.specification.client.scripted_server import Errand

pytestmark = pytest.mark.anyio

BODIES = [
    b"",
    b"Bad Request",
    b"<html>no</html>",
    b'{"error": "unsupported"}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}',
    b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Missing session ID"}}',
    b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"unsupported version"}}',
    b"\xff\xfe{",
]


def start(server: Played, **options: Any) -> Errand:
    async def run() -> Any:
        return await connect(server.url, **options)

    return server.start(run())


# --- of today


@spec("2026-07-28", "basic/transports/streamable-http#backward-compatibility")
@on_both_loops
async def test_a_server_of_today_is_asked_and_nothing_else() -> None:
    async with played() as server:
        connecting = start(server)
        asked = await server.hear(method="server/discover")
        await asked.result(discovered())
        client = await connecting.outcome()
        await closed(client, server)

        assert (NEWEST, "stateless") == (client.revision, client.era)
        assert "server/discover" == asked.headers["mcp-method"]
        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#backward-compatibility", "e83527a1")
@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_an_error_of_today_is_no_reason_to_greet(code: int) -> None:
    async with played() as server:
        connecting = start(server)
        await (await server.hear(method="server/discover")).error(code, "no", data={"supported": ["2099-01-01"]})

        with pytest.raises((NoCommonRevision, RequestRefused)):
            await connecting.outcome()

        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#backward-compatibility")
async def test_a_revision_with_a_handshake_that_is_listed_is_shaken_hands_for() -> None:
    async with played() as server:
        connecting = start(server)
        asked = await server.hear(method="server/discover")
        await asked.error(-32022, "no", data={"supported": ["2025-06-18"], "requested": NEWEST})
        greeting = await greeted_with(server, "2025-06-18")
        await closed(await connecting.outcome(), server)

        assert "2025-06-18" == greeting.message["params"]["protocolVersion"]


async def greeted_with(server: Played, revision: str) -> Exchange:
    await greeted(server, revision)
    return next(each for each in server.exchanges if each.method == "initialize")


# --- of before


@spec("2026-07-28", "basic/transports/streamable-http#backward-compatibility")
@spec("2025-11-25", "basic/lifecycle#initialization")
@pytest.mark.parametrize(
    ("status", "body"),
    [*((400, body) for body in BODIES), *((status, BODIES[4]) for status in (404, 405, 406, 415, 422, 500, 200))],
)
async def test_whatever_is_no_error_of_today_leads_to_a_greeting_on_the_spot(status: int, body: bytes) -> None:
    async with played() as server:
        connecting = start(server)
        kind = "application/json" if body.startswith(b"{") else "text/plain"
        await (await server.hear(method="server/discover")).answer(status, body, content_type=kind)
        await greeted(server, "2025-11-25", "s")
        server.is_judged = not body.startswith(b"{")
        client = await connecting.outcome()
        await closed(client, server, "s")

        assert ("2025-11-25", "handshake") == (client.revision, client.era)
        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#backward-compatibility")
async def test_the_probe_is_given_up_when_the_greeting_is_answered_first() -> None:
    async with played() as server:
        connecting = start(server, limits=ClientLimits(probe_seconds=0.5))  # `initialize` has five times as long
        probe = await server.hear(method="server/discover")
        await greeted(server, "2025-11-25")
        client = await connecting.outcome()
        await probe.gone()
        await closed(client, server)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions", "d882b8ce")
async def test_the_era_is_remembered_of_the_url_and_asked_for_again_when_that_was_wrong() -> None:
    async with played() as server:
        for number in range(2):
            connecting = start(server)
            if number == 0:
                await (await server.hear(method="server/discover")).answer(400)
            await greeted(server, "2025-11-25")
            await closed(await connecting.outcome(), server)
            server._recorders.clear()
        connecting = start(server)  # and now there is another
        await (await server.hear(method="initialize")).answer(400)
        await (await server.hear("GET")).answer(405)
        server._recorders.clear()
        await (await server.hear(method="server/discover")).result(discovered())
        await closed(await connecting.outcome(), server)
        connecting = start(server)
        await (await server.hear(method="server/discover")).result(discovered())
        await closed(await connecting.outcome(), server)

        assert [] == server.unheard


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_server_of_today_that_has_become_one_of_before_is_greeted() -> None:
    async with played() as server:
        connecting = start(server)
        await (await server.hear(method="server/discover")).result(discovered())
        await closed(await connecting.outcome(), server)
        server._recorders.clear()
        connecting = start(server)
        await (await server.hear(method="server/discover")).answer(404)
        await greeted(server, "2025-11-25")
        client = await connecting.outcome()
        await closed(client, server)

        assert "2025-11-25" == client.revision


# --- of HTTP+SSE


async def paired(server: Played, endpoint: str = "/messages?session=1") -> Exchange:
    """Begin the stream of HTTP+SSE, and name the other endpoint."""
    stream = await server.hear("GET")
    await stream.begin()
    await stream.event(said=endpoint, event="endpoint")
    return stream


async def greeted_by(server: Played, stream: Exchange, revision: str = "2024-11-05") -> Exchange:
    """Shake hands over HTTP+SSE."""
    asked = await server.hear(method="initialize")
    await asked.accepted()
    server.say(asked, {"jsonrpc": "2.0", "id": asked.message["id"], "result": initialized(revision)})
    server.is_judged, judged = False, server.is_judged
    await stream.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": initialized(revision)})
    server.is_judged = judged
    await (await server.hear(method="notifications/initialized")).accepted()
    return asked


@spec("2024-11-05", "basic/transports#http-with-sse")
@spec("2025-11-25", "basic/transports#backwards-compatibility")
@spec("2025-06-18", "basic/transports#backwards-compatibility")
@spec("2025-03-26", "basic/transports#backwards-compatibility")
@spec("2026-07-28", "basic/transports/streamable-http#http-sse-transport-2024-11-05")
@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_greeting_that_meets_nobody_leads_to_http_with_sse(status: int, revision: str) -> None:
    async with played() as server:
        server.is_judged = False  # the greeting comes twice
        connecting = start(server)
        await (await server.hear(method="server/discover")).answer(status)
        first = await server.hear(method="initialize")
        await first.answer(status)
        stream = await paired(server)
        second = await greeted_by(server, stream, revision)
        client = await connecting.outcome()
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.answer(202, b"Accepted", content_type="text/plain")
        await stream.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": []}})
        await calling.outcome()
        await closed(client, server)
        await stream.gone()

        assert revision == client.revision
        assert first.body == second.body
        assert ["/messages?session=1"] * 2 == [second.target, asked.target]
        assert {"text/event-stream"} == {stream.headers["accept"]}
        assert [] == server.unheard


@spec("2024-11-05", "basic/transports#http-with-sse")
@pytest.mark.parametrize(
    ("named", "target"),
    [
        ("messages/1", "/mcp/messages/1"),
        ("?s=1", "{path}?s=1"),
        ("http://127.0.0.1:{port}/x", "/x"),
        ("//127.0.0.1:{port}/y", "/y"),
    ],
)
async def test_the_other_endpoint_may_be_relative_or_not(named: str, target: str) -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=["2024-11-05"])
        await (await server.hear(method="initialize")).answer(405)
        stream = await paired(server, named.format(port=server.port))
        asked = await greeted_by(server, stream)
        await closed(await connecting.outcome(), server)

        assert target.format(path=server.path) == asked.target


@spec("2024-11-05", "basic/transports#security-warning")
@pytest.mark.parametrize(
    "named",
    [
        "http://evil.invalid/x",
        "https://127.0.0.1:{port}/x",
        "http://127.0.0.1:1/x",
        "//evil.invalid",
        "ftp://127.0.0.1:{port}/x",
        "http://127.0.0.1:{port}@evil.invalid/",
        "file:///etc/passwd",
        "http://localhost:{port}/x",
    ],
)
async def test_an_endpoint_of_another_origin_gets_nothing(named: str) -> None:
    async with played() as server:
        connecting = start(server, revisions=["2024-11-05"])
        await (await server.hear(method="initialize")).answer(405)
        stream = await paired(server, named.format(port=server.port))

        with pytest.raises(RequestLost, match="as its message endpoint"):
            await connecting.outcome()

        await stream.gone()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#backwards-compatibility")
@pytest.mark.parametrize("how", ["405", "json", "other event", "silence", "end", "cut"])
async def test_what_is_no_http_with_sse_either_says_why_the_greeting_failed(how: str) -> None:
    async with played() as server:
        connecting = start(server, revisions=["2025-11-25"], limits=ClientLimits(probe_seconds=0.05))
        await (await server.hear(method="initialize")).answer(404, b"no such page", content_type="text/plain")
        stream = await server.hear("GET")
        match how:
            case "405":
                await stream.answer(405)
            case "json":
                await stream.answer(200, b"{}", content_type="application/json")
            case "other event":
                await stream.begin()
                await stream.event(said="/messages")
            case "silence":
                await stream.begin()
            case "end":
                await stream.begin()
                await stream.end()
            case _:
                await stream.begin()
                await stream.cut()

        with pytest.raises(
            HttpRefused, match="404 Not Found: there is nothing at this URL; the response says: no such page"
        ):
            await connecting.outcome()


@spec("2025-11-25", "basic/transports#backwards-compatibility")
async def test_a_json_rpc_error_that_is_no_reason_stays_the_reason() -> None:
    async with played() as server:
        connecting = start(server, revisions=["2025-11-25"])
        await (await server.hear(method="initialize")).error(-32602, "I do not like your capabilities", status=400)
        await (await server.hear("GET")).answer(405)

        with pytest.raises(RequestRefused, match="I do not like your capabilities"):
            await connecting.outcome()


@spec("2026-07-28", "basic/transports/streamable-http#http-sse-transport-2024-11-05")
async def test_an_error_of_today_to_a_greeting_is_no_reason_to_try_http_with_sse() -> None:
    async with played() as server:
        connecting = start(server, revisions=["2025-11-25"])
        asked = await server.hear(method="initialize")
        await asked.error(-32022, "no", data={"supported": [NEWEST], "requested": "?"})

        with pytest.raises(NoCommonRevision, match=NEWEST):
            await connecting.outcome()

        assert [] == server.unheard


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@spec("2025-11-25", "basic/transports#backwards-compatibility")
async def test_a_server_of_http_with_sse_is_never_probed_again() -> None:
    async with played() as server:
        server.is_judged = False
        for number in range(3):
            connecting = start(server)
            if number == 0:
                await (await server.hear(method="server/discover")).answer(405)
                await (await server.hear(method="initialize")).answer(405)
            stream = await paired(server)
            await greeted_by(server, stream)
            await closed(await connecting.outcome(), server)

        assert [] == server.unheard


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_server_of_http_with_sse_that_has_become_another_is_looked_at_anew() -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=["2024-11-05", "2025-11-25"])
        await (await server.hear(method="initialize")).answer(405)
        await greeted_by(server, await paired(server))
        await closed(await connecting.outcome(), server)
        connecting = start(server, revisions=["2024-11-05", "2025-11-25"])
        await (await server.hear("GET")).answer(405)
        await greeted(server, "2025-11-25", "s")
        await closed(await connecting.outcome(), server, "s")
        connecting = start(server, revisions=["2024-11-05", "2025-11-25"])
        await greeted(server, "2025-11-25")
        await closed(await connecting.outcome(), server)

        assert [] == server.unheard


@spec("2024-11-05", "server/utilities/pagination#implementation-guidelines", "f5b6f5c0")
@spec("2024-11-05", "basic/transports#http-with-sse")
@pytest.mark.parametrize("how", ["end", "cut"])
@on_both_loops
async def test_the_end_of_the_stream_of_http_with_sse_is_the_end_of_the_conversation(how: str) -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=["2024-11-05"])
        await (await server.hear(method="initialize")).answer(405)
        stream = await paired(server)
        await greeted_by(server, stream)
        client = await connecting.outcome()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).accepted()
        await (stream.end() if how == "end" else stream.cut())

        with pytest.raises(TransportClosed, match="stream"):
            await calling.outcome()
        with pytest.raises(TransportClosed, match="stream"):
            await client.ping()

        await client.close()


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_a_stream_that_ends_just_after_the_endpoint_ends_the_connection() -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=["2024-11-05"])
        await (await server.hear(method="initialize")).answer(405)
        stream = await server.hear("GET")
        body = b"event: endpoint\ndata: /messages\n\n"
        await stream.answer(200, body, content_type="text/event-stream")  # in one part

        with pytest.raises(TransportClosed, match="ended its stream of messages"):
            await connecting.outcome()


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_a_message_that_http_with_sse_does_not_take_is_lost_alone() -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=["2024-11-05"])
        await (await server.hear(method="initialize")).answer(405)
        stream = await paired(server)
        await greeted_by(server, stream)
        client = await connecting.outcome()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(500, b"broken", content_type="text/plain")

        with pytest.raises(HttpRefused, match=r"/messages.*500 Internal Server Error; the response says: broken"):
            await calling.outcome()

        pinging = server.start(client.ping())
        asked = await server.hear(method="ping")
        await asked.accepted()
        await stream.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}})
        await pinging.outcome()
        await closed(client, server)


@spec("2024-11-05", "basic/transports#security-warning", "d6efef0b")
@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_requests_of_the_server_are_answered_at_the_other_endpoint() -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=["2024-11-05"], roots=[])
        await (await server.hear(method="initialize")).answer(405)
        stream = await paired(server)
        await greeted_by(server, stream)
        client = await connecting.outcome()
        await stream.event({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})
        answer = await server.hear()
        await answer.accepted()
        await closed(client, server)

        assert ("/messages?session=1", {"jsonrpc": "2.0", "id": "r", "result": {"roots": []}}) == (
            answer.target,
            answer.message,
        )
