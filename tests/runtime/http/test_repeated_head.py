"""A head that a connection repeats is parsed once, and its requests are what they would be if it were parsed again."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from mcpgen import Server
from mcpgen.runtime.http.server.read_turns import ReadTurns
from mcpgen.runtime.http.server.repeated_head import HEADERS, RepeatedHead
from mcpgen.runtime.http.server.repeating_protocol import RepeatingProtocol
from mcpgen.runtime.http.server.shared_task import SharedTask
from mcpgen.runtime.http.server.uvicorn_limits import BoundedProtocol
from mcpgen.runtime.protocol.headers import headers_by_name
from mcpgen.runtime.server.quota import Quota
from tests.runtime.http.test_request_cycle import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nMcp-Session-Id: 1\r\n\r\n%b"
HEADS = (
    PLAIN,
    b"POST /mcp?a=%%41 HTTP/1.1\r\nhost: a\r\naccept: a\r\naccept: b\r\ncontent-length: %d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 00%d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length:%d\r\n\r\n%b",
)
OTHERS = (
    b"POST /mcp HTTP/1.0\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\nContent-Length: %d\r\n\r\n%b",
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length:  %d \r\n\r\n%b",
    b"PUT /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b",
)
NO_REQUEST = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: +%d\r\n\r\n%b"
CHUNKED = b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
WITHOUT_BODY = b"GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n"

Answers = list[tuple[dict[str, Any], dict[str, str], bytes]]


def of(template: bytes, body: bytes) -> bytes:
    return template % (len(body), body)


class Peer:
    """A connection to an application that notes each request, and the messages that follow its body."""

    def __init__(self, make: Callable[..., BoundedProtocol], **options: Any) -> None:
        self.requests: Answers = []
        self.repeated = 0  # how many of them had a head that was not parsed
        self.state = ServerState()
        config = uvicorn.Config(self._app, interface="asgi3", lifespan="off", ws="none", log_config=None)
        self.protocol = make(
            write_seconds=10,
            heads=Quota(10**6, 10**6),
            bodies=Quota(10**6, 10**6),
            unread=Quota(10**6, 10**6),
            requests=SharedTask(),
            reads=ReadTurns(),
            config=config,
            server_state=self.state,
            app_state={"a": 1},
            **options,
        )
        self.wire = Wire()
        self.protocol.connection_made(self.wire)

    async def _app(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.repeated += HEADERS in scope["extensions"]
        told = {name: value for name, value in scope.items() if name not in ("extensions", "headers")}
        known = scope["extensions"].get(HEADERS, {"by_name": headers_by_name(scope["headers"])})
        self.requests.append(({**told, "lines": scope["headers"]}, known["by_name"], body))
        answer = b"%d bytes" % len(body)
        length = (b"content-length", b"%d" % len(answer))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": answer})

    async def end(self) -> None:
        while self.state.tasks:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0)


def repeating(quota: Quota | None = None) -> Peer:
    return Peer(RepeatingProtocol, repeated=Quota(10**6, 10**6) if quota is None else quota)


def pieces(random: Random) -> list[bytes]:
    """Return what a client sends: mostly a few heads again and again, whole or in parts, and now and then others."""
    sent = []
    usual = random.sample(HEADS if random.random() < 0.6 else (*HEADS, *OTHERS), random.choice([1, 2]))
    for _ in range(random.randrange(3, 20)):
        body = b"x" * random.choice([1, 2, 9, 10, 300])
        template = random.choice(usual) if random.random() < 0.8 else random.choice((*HEADS, *OTHERS, NO_REQUEST))
        data = of(template, body)
        match random.randrange(10):
            case 0:
                data = random.choice([CHUNKED, WITHOUT_BODY, data + data, b"\r\n" + data, data + b"\r\n"])
            case 1:
                data += random.choice([b"P", b"more", data[:30]])
            case 2:
                data = random.choice([data[:-1], of(template, b"")])
            case _:
                pass
        if random.random() < 0.2:
            cut = random.randrange(1, len(data))
            sent += [data[:cut], data[cut:]]
        else:
            sent.append(data)
    return sent


@pytest.mark.slow
def test_requests_are_the_same_as_if_each_head_were_parsed() -> None:
    async def outcome(peer: Peer, sent: list[bytes], pauses: list[bool]) -> tuple[Answers, bytes, bool, bool]:
        for data, pause in zip(sent, pauses, strict=True):
            if not peer.wire.is_closing():
                peer.protocol.data_received(data)
            if pause:
                await peer.end() if peer.protocol._is_complete else await asyncio.sleep(0)
        peer.protocol.connection_lost(None)
        await peer.end()
        return peer.requests, b"".join(peer.wire.writes), peer.wire.is_closing(), peer.wire.aborted.is_set()

    async def main() -> int:
        repeated = 0
        for seed in range(400):
            random = Random(seed)  # noqa: S311 (to be repeated)
            sent = pieces(random)
            pauses = [random.random() < 0.9 for _ in sent]
            ours = repeating()
            expected = await outcome(Peer(BoundedProtocol), sent, pauses)
            assert await outcome(ours, sent, pauses) == expected, f"seed {seed}: {sent}"
            repeated += ours.repeated
        return repeated

    assert asyncio.run(main()) > 200


@pytest.mark.parametrize("template", HEADS[:2] + HEADS[3:], ids=["plain", "query", "keep-alive"])
def test_the_parser_does_not_see_a_head_that_is_repeated(template: bytes) -> None:
    async def main() -> None:
        peer = repeating()
        for body in (b"a", b"bc", b"d" * 300):
            peer.protocol.data_received(of(template, body))
            await peer.end()
        parser, peer.protocol.parser = peer.protocol.parser, None  # type: ignore[assignment] # so that parsing fails
        peer.protocol.data_received(of(template, b"defgh"))
        await peer.end()
        lines, headers, body = peer.requests[-1][0]["lines"], peer.requests[-1][1], peer.requests[-1][2]
        assert (body, headers["content-length"], (b"content-length", b"5") in lines) == (b"defgh", "5", True)
        peer.protocol.parser = parser
        peer.protocol.data_received(of(b"POST /b HTTP/1.1\r\nHost: b\r\nContent-Length: %d\r\n\r\n%b", b"ij"))
        await peer.end()
        assert peer.requests[-1][1:] == ({"host": "b", "content-length": "2"}, b"ij")

    asyncio.run(main())


def test_a_request_that_waits_behind_another_is_parsed_and_counted() -> None:
    async def main() -> None:
        peer = repeating()
        for _ in range(3):
            peer.protocol.data_received(of(PLAIN, b"a"))
            await peer.end()
        for _ in range(3):
            peer.protocol.data_received(of(PLAIN, b"a"))
        await peer.end()
        assert (len(peer.requests), peer.repeated) == (6, 2)  # the third and the fourth

    asyncio.run(main())


def test_each_request_has_headers_and_a_state_of_its_own() -> None:
    async def main() -> None:
        peer = repeating()
        for _ in range(3):
            peer.protocol.data_received(of(PLAIN, b"a"))
            scope: Any = peer.protocol.scope
            await peer.end()
        scope["headers"].append((b"x-user", b"ann"))
        scope["state"]["user"] = "ann"
        peer.protocol.data_received(of(PLAIN, b"a"))
        scope = peer.protocol.scope
        await peer.end()
        assert scope["extensions"][HEADERS]["lines"] == scope["headers"] == peer.requests[1][0]["lines"]
        assert scope["state"] == {"a": 1}

    asyncio.run(main())


def test_no_head_is_remembered_if_a_task_factory_may_have_begun_the_request() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(lambda loop, coro, **more: asyncio.Task(coro, loop=loop, **more))
        peer = repeating()
        for _ in range(4):
            peer.protocol.data_received(of(PLAIN, b"a"))
            await peer.end()
        assert (len(peer.requests), peer.repeated) == (4, 0)

    asyncio.run(main())


def test_headers_that_an_application_around_ours_has_changed_count() -> None:
    async def status(*changes: tuple[bytes, bytes]) -> int:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"no JSON", "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        known = {"content-type": "application/json", "accept": "application/json, text/event-stream", "host": "a"}
        lines = [(name.encode(), value.encode()) for name, value in known.items()]
        extensions = {HEADERS: {"lines": lines.copy(), "by_name": {**known, "content-type": "text/plain"}}}
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [*lines, *changes]}
        await Server("a").asgi(allowed_hosts=["a"])({**scope, "extensions": extensions}, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(status()) == 415  # as the dict says
    assert asyncio.run(status((b"x-user", b"ann"))) == 400  # as the list says


def test_a_connection_remembers_a_short_head_of_16_and_the_quota_bounds_them_all() -> None:
    async def main() -> None:
        quota = Quota(10**6, 2 * 3600)
        peers = [repeating(quota) for _ in range(3)]
        for peer, owner in zip(peers, ("ann", "ann", "bob"), strict=True):
            peer.protocol.owner = owner
            for _ in range(3):
                peer.protocol.data_received(of(PLAIN, b"a"))
                await peer.end()
        assert [peer.protocol._known is None for peer in peers] == [True, False, False]  # Ann's oldest gave way
        for peer in peers:
            peer.protocol.connection_lost(None)
        assert quota.kept_bytes == 0

        peer = repeating()
        for number in range(20):
            peer.protocol.data_received(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na" % number)
            await peer.end()
        assert peer.protocol._known is not None
        assert peer.protocol._known.body_of(b"POST /16 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na") is not None

    asyncio.run(main())
    long = b"POST / HTTP/1.1\r\nA: %b\r\nContent-Length: 1\r\n\r\na" % (b"a" * 2048)
    lines = [(b"a", b"a" * 2048), (b"content-length", b"1")]
    assert RepeatedHead.of(long, b"/", {"headers": lines}) is None
