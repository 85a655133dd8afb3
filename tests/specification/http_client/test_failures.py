"""What servers, and what stands between us and them, do wrong over HTTP: it costs the request, and nothing else."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import traceback
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from mcpgen import (
    ClientLimits,
    Http,
    HttpRefused,
    RequestLost,
    RequestRefused,
    RequestTimedOut,
    ServerUnreachable,
    TransportClosed,
    connect,
)
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.error_responses import read_error_reply
from mcpgen.runtime.http.client.httpx_exchange import HttpxResponse
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import spec
from tests.specification.client.scripted_server import discovered, initialized, on_both_loops
from tests.specification.http_client.scripted_http_server import (
    NEWEST,
    Exchange,
    Played,
    closed,
    greeted,
    opened,
    played,
    text,
)

if TYPE_CHECKING:
    from tests.specification.client.scripted_server import Errand

pytestmark = pytest.mark.anyio

URL = "http://example.com/mcp"
SMALL = ClientLimits(max_frame_bytes=2000, max_batch_length=10)


def start(server: Played, target: Any = None, **options: Any) -> Errand:
    async def run() -> Any:
        return await connect(server.url if target is None else target, **options)

    return server.start(run())


async def still_there(client: Any, server: Played) -> None:
    """Fail unless the next call is made, and answered, as if nothing had been."""
    calling = server.start(client.call_tool("next"))
    await (await server.hear(method="tools/call")).result(text())

    assert "ok" == (await calling.outcome()).content[0].text


# --- bodies that are no answers

STOPPING = b'{"jsonrpc":"2.0","error":{"code":-32603,"message":"the server is shutting down"}}'


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (200, b"<html>\n<b>Login</b>", "text/html", "200 OK: the body is text/html, not application/.*: <html> <b>"),
        (200, b"", "text/html", "200 OK: the body is empty"),
        (202, b"", None, "202 Accepted: the body is empty"),
        (204, b"", None, "204 No Content: the body is empty"),
        (200, b"{}", None, "200 OK: the response has no Content-Type; the response says: {}"),
        (200, b'{"jsonrpc":"2.0"}', "text/plain", "the body is text/plain, not application/json"),
        (200, b"{}", "text/html\t\x1b[2J", "200 OK: "),
        (500, b"Traceback (most recent call last)\x1b[31m", "text/plain", r"response says: Traceback .*\\x1b\[31m"),
        (599, b"", None, "answered 599$"),
        (413, b"", None, "413 .*: the message is longer than the server accepts"),
    ],
)  # fmt: skip
@on_both_loops
async def test_a_body_that_is_no_message_is_shown_and_costs_one_request(
    status: int, body: bytes, kind: str | None, said: str
) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        if status == 204:
            await asked.raw(b"HTTP/1.1 204 No Content\r\n\r\n")
            asked.sent.set()
        else:
            await asked.answer(status, body, **({} if kind is None else {"content_type": kind.split("\t")[0]}))

        with pytest.raises(HttpRefused, match=said) as refused:
            await calling.outcome()

        assert status == refused.value.status
        assert "\x1b" not in str(refused.value)
        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"null", b'{"jsonrpc":"2.0","id":99,"result":{}}', b'{"jsonrpc":"2.0","method":"x"}', b"\xff"]
)
async def test_json_that_is_no_answer_costs_one_request(body: bytes) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(200, body, content_type="application/json")

        with pytest.raises(RequestLost, match="replied to tools/call with a body that is not the response to it"):
            await calling.outcome()

        await still_there(client, server)


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("status", [200, 400, 404, 405, 500])
@pytest.mark.parametrize("given", ['"id": null, ', "", '"id": "server-error", '])
async def test_an_error_that_names_no_request_is_about_the_one_that_it_answers(status: int, given: str) -> None:
    if status == 200 and "server" in given:
        pytest.skip("that names another")
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        body = f'{{"jsonrpc": "2.0", {given}"error": {{"code": -32600, "message": "what?", "data": [1]}}}}'
        await (await server.hear(method="tools/call")).answer(status, body.encode(), content_type="application/json")

        with pytest.raises(RequestRefused, match=r"what\?") as refused:
            await calling.outcome()

        assert (-32600, [1]) == (refused.value.code, refused.value.data)
        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("how", ["length", "chunks", "event", "endless"])
async def test_an_answer_over_the_limit_costs_one_request_and_no_memory(how: str) -> None:
    async with opened(NEWEST, limits=SMALL) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        if how == "length":
            await asked.raw(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999999\r\n\r\n"
            )
        elif how == "chunks":
            await asked.begin(content_type="application/json")
            await asked.chunk(b"{" * 3000)
        elif how == "event":
            await asked.begin()
            await asked.event(said="x" * 3000)
        else:
            await asked.begin()
            await asked.chunk(b"data: " + b"x" * 3000)

        with pytest.raises(
            RequestLost, match=r"is longer than max_frame_bytes=2000|is longer than the limit of 2000 bytes"
        ):
            await calling.outcome()

        await asked.gone()
        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_of_an_error_page_only_the_head_is_read() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.begin(500, content_type="text/html")
        await asked.chunk(b"<html>" + b"x" * 40_000)

        with pytest.raises(HttpRefused) as refused, anyio.fail_after(PATIENCE_SECONDS):
            await calling.outcome()

        assert len(str(refused.value)) < 500
        await asked.gone()
        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_a_compressed_page_is_not_called_empty() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.answer(200, gzip.compress(b"<html>"), content_type="text/html", content_encoding="gzip")

        with pytest.raises(HttpRefused, match="200 OK: the body is text/html, not application/json"):
            await calling.outcome()


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("encoding", ["gzip", "br", "x-unheard-of"])
async def test_a_compressed_answer_was_not_asked_for_and_is_not_unpacked(encoding: str) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        body = gzip.compress(b"{" + b" " * 10_000_000)
        await asked.answer(200, body, content_type="application/json", content_encoding=encoding)

        with pytest.raises(RequestLost, match="compressed"):
            await calling.outcome()

        assert "identity" == asked.headers["accept-encoding"]
        await still_there(client, server)


# --- statuses that say what to do


@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint")
@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (401, {"www_authenticate": "Bearer"}, "401 Unauthorized: the server requires valid credentials; pass Http"),
        (401, {"www_authenticate": 'Bearer error="invalid_token"'}, "the server refused the access token"),
        (401, {"www_authenticate": 'Bearer resource_metadata="https://a.invalid/m"'}, "requires a login; pass Http"),
        (403, {}, "403 Forbidden: the server does not allow this"),
        (429, {"retry_after": "7"}, "429 Too Many Requests: .*try again in 7 seconds"),
        (503, {"retry_after": "Fri, 31 Dec 2027 23:59:59 GMT"}, "503 Service Unavailable: .*again at Fri, 31 Dec"),
        (502, {}, "502 Bad Gateway: a gateway cannot reach the server"),
        (301, {"location": "/other/"}, r"301 .*: it redirects to http://127.0.0.1:\d+/other/; only 307 and 308"),
        (307, {"location": "https://user:secret@else.invalid/?k=secret"}, r"to https://else.invalid/\?…, which has"),
        (308, {"location": "secret://else.invalid"}, "it redirects, but not to a URL of http or https"),
        (308, {"location": f"/?{'secret' * 1500}"}, "to a URL of 9,002 characters; a URL may have at most 8,192"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("body", [b"", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"the reason"}}'])
async def test_a_status_that_any_request_would_get_is_told_at_once_with_what_to_do(
    status: int, headers: dict[str, str], said: str, body: bytes
) -> None:
    async with played() as server:
        connecting = start(server)
        kind = {"content_type": "application/json"} if body else {}
        await (await server.hear(method="server/discover")).answer(status, body, **kind, **headers)

        with pytest.raises(HttpRefused, match=said) as refused:
            await connecting.outcome()

        assert "secret" not in str(refused.value)
        assert bool(body) == ("the reason (-32001)" in str(refused.value))
        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_a_web_page_is_named_with_the_usual_path() -> None:
    async with played() as server:
        connecting = start(server)
        asked = await server.hear(method="server/discover")
        await asked.answer(403, b"<!DOCTYPE HTML>", content_type="text/html;charset=utf-8")

        with pytest.raises(HttpRefused, match=r"the response is a web page, .* which is often /mcp"):
            await connecting.outcome()


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("status", [413, 429, 502, 503, 504])
async def test_a_page_of_a_gateway_does_not_mean_that_the_url_is_wrong(status: int) -> None:
    async with played() as server:
        connecting = start(server)
        asked = await server.hear(method="server/discover")
        await asked.answer(status, b"<html>nginx</html>", content_type="text/html")
        if status == 413:  # another request may be shorter
            asked = await server.hear(method="initialize")
            await asked.answer(status, b"<html>nginx</html>", content_type="text/html")

        with pytest.raises(HttpRefused, match="; the response says: <html>nginx") as refused:
            await connecting.outcome()

        assert "web page" not in str(refused.value)


@spec("2025-11-25", "basic/transports#session-management")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<h1>Oh no</h1>", ": there is nothing at this URL; the response says: <h1>Oh no</h1>"),
        (
            b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such session"}}',
            "; the response says: no such session (-32600)",
        ),
    ],
)
async def test_a_server_that_says_what_it_does_not_find_is_not_contradicted(body: bytes, said: str) -> None:
    response = HttpxResponse(httpx.Response(404, content=body), URL)
    refused = await read_error_reply(response, None, parse_address(URL))

    assert f"http://example.com/mcp answered 404 Not Found{said}" == str(refused.failure)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    ("retry_after", "body", "said"),
    [
        ("", b"", ": the server is not ready, or overloaded"),
        ("", STOPPING, "; the response says: the server is shutting down (-32603)"),
        ("1", STOPPING, ": try again in 1 second; the response says: the server is shutting down (-32603)"),
        ("9", b"", ": the server is not ready, or overloaded; try again in 9 seconds"),
    ],
)
async def test_a_server_that_says_why_it_is_unavailable_is_quoted_without_a_guess(
    retry_after: str, body: bytes, said: str
) -> None:
    headers = {"retry-after": retry_after} if retry_after else {}
    response = HttpxResponse(httpx.Response(503, content=body, headers=headers), URL)
    refused = await read_error_reply(response, None, parse_address(URL))

    assert f"http://example.com/mcp answered 503 Service Unavailable{said}" == str(refused.failure)


@spec("2025-11-25", "basic/transports#backwards-compatibility")
@pytest.mark.parametrize("status", [401, 403, 429])
async def test_whoever_must_not_ask_does_not_ask_in_other_ways(status: int) -> None:
    async with played() as server:
        connecting = start(server, revisions=["2025-11-25"])
        await (await server.hear(method="initialize")).answer(status)

        with pytest.raises(HttpRefused):
            await connecting.outcome()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management", "36ed2aba")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_to_another_origin_are_not_followed_whatever_a_callers_client_would_do(status: int) -> None:
    async with played() as server, played() as other, httpx.AsyncClient(follow_redirects=True) as ours:
        connecting = start(server, Http(server.url, client=ours, headers={"X-Key": "secret"}))
        await (await server.hear(method="server/discover")).answer(status, location=other.url)

        with pytest.raises(HttpRefused, match="another origin, so it is not followed"):
            await connecting.outcome()

        assert [] == other.exchanges


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("is_absolute", [False, True])
async def test_a_redirect_within_the_origin_is_followed_and_remembered(status: int, *, is_absolute: bool) -> None:
    async with played() as server:
        server.is_judged = False  # it gets a message twice
        url = server.url.replace("http://", "http://name:p%40ss@")
        connecting = start(server, Http(url, headers={"X-Key": "secret"}), revisions=["2025-11-25"])
        first = await server.hear(method="initialize")
        place = f"{server.path}/"
        await first.answer(status, location=server.url + "/" if is_absolute else place)
        second = await server.hear(method="initialize")
        await second.result(initialized("2025-11-25"), mcp_session_id="s")
        server.manners.session = "s"
        await (await server.hear(method="notifications/initialized")).accepted()
        listening = await server.hear("GET")
        await listening.answer(405)
        client = await connecting.outcome()
        calling = server.start(client.call_tool("a"))
        call = await server.hear(method="tools/call")
        await call.result({"content": []})
        await calling.outcome()
        closing = server.start(client.close())
        ending = await server.hear("DELETE")
        await ending.answer(204)
        await closing.outcome()

        assert first.body == second.body
        assert [server.path, *[place] * 5] == [each.target for each in server.exchanges]
        assert {"Basic bmFtZTpwQHNz"} == {each.headers["authorization"] for each in server.exchanges}
        assert {"secret"} == {each.headers["x-key"] for each in server.exchanges}


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
async def test_redirects_in_a_circle_end_with_an_error() -> None:
    async with played() as server:
        server.is_judged = False
        connecting = start(server, revisions=[NEWEST])
        for number in range(6):
            await (await server.hear(method="server/discover")).answer(307, location=f"{server.path}?{number}")

        with pytest.raises(HttpRefused, match="after 5 redirects that were followed"):
            await connecting.outcome()

        assert 6 == len(server.exchanges)


# --- connections that break


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@pytest.mark.parametrize(
    "sent", [b'data: {"jsonrpc"', b"data: {}\n", b"event: mess", b"\xf0\x9f", b"id: 1\ndata: {}\r"]
)
@on_both_loops
async def test_half_an_event_is_no_event(sent: bytes) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.chunk(sent)
        await asked.cut()

        with pytest.raises(RequestLost, match="before tools/call was answered"):
            await calling.outcome()

        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"]
)
async def test_a_connection_that_breaks_before_there_is_an_answer_costs_one_request(sent: bytes) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.raw(sent)
        await asked.cut()

        with pytest.raises(RequestLost):
            await calling.outcome()

        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_a_lost_request_does_not_keep_what_was_read_of_its_answer() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.chunk(b"data: {")
        await asked.cut()
        with pytest.raises(RequestLost) as caught:
            await calling.outcome()

    frames = [each for each, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert "runtime/http/" not in "".join(each.f_code.co_filename for each in frames)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_headers_without_an_end_cost_one_request() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a"))
        asked = await server.hear(method="tools/call")
        await asked.raw(b"HTTP/1.1 200 OK\r\n")
        with anyio.move_on_after(5):
            try:
                for _ in range(200):
                    await asked.raw(b"x-more: " + b"x" * 10_000 + b"\r\n")
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass

        with pytest.raises(RequestLost):
            await calling.outcome()

        await still_there(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:{port}/mcp", "Connection refused"),
        ("http://mcpgen.invalid/mcp", "not known|No address|resolution|nodename"),
        ("https://user:secret@127.0.0.1:{open}/mcp?k=secret", "SSL.*; the server may use http instead of https$"),
    ],
)
@on_both_loops
async def test_a_server_that_cannot_be_reached_is_named_at_once(url: str, said: str) -> None:
    async with played() as gone:
        gone.stop()
    async with played() as server:
        server.is_judged = False
        target = url.format(port=gone.port, open=server.port)
        with pytest.raises(ServerUnreachable, match=f"cannot connect to http.*: .*({said})") as error:
            with anyio.fail_after(PATIENCE_SECONDS):
                await connect(target)

        assert "secret" not in str(error.value)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.slow
async def test_a_server_that_accepts_and_is_silent_is_waited_for_as_long_as_connecting_may_take() -> None:
    async with played() as server:
        connecting = start(server, limits=ClientLimits(connect_seconds=0.3, probe_seconds=0.05))

        with pytest.raises(RequestTimedOut, match=f"the server '{server.url}' was not ready within 0.3 seconds"):
            await connecting.outcome()


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
@pytest.mark.slow
async def test_a_server_may_be_restarted_under_its_client() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (client, server):
        server.is_judged = False
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.event(said="", id="1", retry=50)
        calling = server.start(client.call_tool("during"))
        asked = await server.hear(method="tools/call")
        server.stop()
        await stream.cut()
        await asked.cut()

        with pytest.raises(RequestLost):
            await calling.outcome()
        with pytest.raises(RequestLost):  # unreachable, or reset: the system accepts until the listener is closed
            await client.call_tool("away")

        await server.listen()
        calling = server.start(client.call_tool("after"))
        while not calling.is_over:  # by the call, or by the stream, whichever finds it first
            asked = await _next(server)
            if asked.method == "initialize":
                server.manners.session = "t"
                await asked.result(initialized("2025-11-25"), mcp_session_id="t")
            elif asked.headers.get("mcp-session-id") != "t":
                await asked.answer(404)
            elif asked.verb == "GET":
                await asked.begin()
            elif asked.method == "tools/call":
                await asked.result({"content": []})
            else:
                await asked.accepted()
            await anyio.wait_all_tasks_blocked()
        await calling.outcome()
        for each in server.exchanges:
            each.is_heard = each.is_heard or each.verb == "GET"


async def _next(server: Played) -> Exchange:
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            for each in server.exchanges:
                if not each.is_heard:
                    each.is_heard = True
                    return each
            await anyio.sleep(0.005)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_a_stateless_server_may_be_restarted_under_its_client() -> None:
    async with opened(NEWEST) as (client, server):
        await still_there(client, server)
        server.stop()
        await anyio.wait_all_tasks_blocked()

        with pytest.raises(RequestLost):
            await client.call_tool("away")

        await server.listen()
        await still_there(client, server)


# --- proxies


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_proxy_may_hold_a_stream_back_or_cut_it_into_pieces(size: int) -> None:
    heard: list[float] = []
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("a", on_progress=lambda *now: heard.append(now[0])))
        asked = await server.hear(method="tools/call")
        message, token = asked.message, asked.message["params"]["_meta"]["progressToken"]
        progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}'
        answer = '{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[{"type":"text","text":"ż"}]}}'
        whole = "".join(f": x\r\nevent: message\r\ndata: {progress % (token, each)}\r\n\r\n" for each in (1, 2))
        data = f"{whole}data: {answer % message['id']}\n\n".encode()
        await asked.begin()
        for at in range(0, len(data), size):
            await asked.chunk(data[at : at + size])
        await asked.end()

        assert "ż" == (await calling.outcome()).content[0].text
        assert [1, 2] == heard


@spec("2025-11-25", "basic/transports#backwards-compatibility")
async def test_a_proxy_that_holds_the_first_event_back_does_not_hold_us() -> None:
    async with played() as server:
        connecting = start(server, revisions=["2024-11-05"], limits=ClientLimits(probe_seconds=0.05))
        await (await server.hear(method="initialize")).answer(405)
        stream = await server.hear("GET")

        with pytest.raises(HttpRefused, match="405 Method Not Allowed"):
            await connecting.outcome()

        await stream.gone()


# --- ourselves


@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@on_both_loops
@pytest.mark.slow
async def test_nothing_is_left_of_clients_that_are_gone(caplog: pytest.LogCaptureFixture) -> None:
    async with played() as server:
        server.is_judged = False
        for revision in ("2025-11-25", NEWEST) * 5:
            connecting = start(server, revisions=[revision])
            if revision == NEWEST:
                await (await server.hear(method="server/discover")).result(discovered())
            else:
                await greeted(server, revision, listens=True)
            client = await connecting.outcome()
            calls = [server.start(client.call_tool("a")) for _ in range(5)]
            asked = [await server.hear(method="tools/call") for _ in calls]
            await asked[0].begin()
            await closed(client, server)
            for each in asked:
                await each.gone()
            for call in calls:
                with pytest.raises(TransportClosed, match="the client was closed"):
                    await call.outcome()
        for each in server.exchanges:
            if each.verb == "GET":
                await each.gone()
        gc.collect()  # what was left open says so now, which fails the test

        assert [] == [each for each in caplog.records if each.levelno >= logging.ERROR]


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_credentials_that_cannot_be_had_cost_one_request(caplog: pytest.LogCaptureFixture) -> None:
    from mcpgen import bearer

    tokens = iter(["one", None, "two"])

    async def token() -> str:
        found = next(tokens)
        if found is None:
            raise LookupError("the keyring is locked")
        return found

    async with played() as server:
        connecting = start(server, Http(server.url, auth=bearer(token)), revisions=[NEWEST])
        asked = await server.hear(method="server/discover")
        await asked.result(discovered())
        client = await connecting.outcome()

        assert "Bearer one" == asked.headers["authorization"]

        with pytest.raises(RequestLost, match="the keyring is locked") as lost:
            await client.call_tool("a")

        assert isinstance(lost.value.__cause__, LookupError)
        await still_there(client, server)
        await closed(client, server)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_credentials_that_cannot_be_had_are_asked_for_once(caplog: pytest.LogCaptureFixture) -> None:
    from mcpgen import bearer

    asked: list[str] = []

    def token() -> str:
        asked.append("once")
        raise LookupError("the keyring is locked")

    async with played() as server:
        with pytest.raises(RequestLost, match=r"could not be made: LookupError.*the keyring is locked"):
            await connect(Http(server.url, auth=bearer(token)))

        assert [] == server.exchanges
    assert ["once"] == asked
    assert [] == [each.message for each in caplog.records if each.levelno >= logging.WARNING]


class _Reading(httpx.Auth):
    """Looks at what comes back, as one does that renews its token when it has to."""

    requires_response_body = True


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_a_body_that_was_read_before_is_read_again() -> None:
    def serve(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        if asked["method"] == "server/discover":
            return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": discovered()})
        if asked["method"] == "tools/list":
            return httpx.Response(500, text="Oh no")
        said = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": text()})
        return httpx.Response(200, text=f"data: {said}\n\n", headers={"content-type": "text/event-stream"})

    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(serve)) as library,
        connect(Http("http://example.com/mcp", client=library, auth=_Reading())) as client,
    ):
        (said,) = (await client.call_tool("a")).content
        assert "ok" == getattr(said, "text", None)
        with pytest.raises(HttpRefused, match="the response says: Oh no"):
            await client.list_tools()
