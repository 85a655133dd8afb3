"""Sessions as raw bytes on sockets: of Streamable HTTP, and of HTTP+SSE."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from tests.bounds.hostile_messages import initialize
from tests.faults import http_raw_client
from tests.faults.http_raw_client import Closed, head, message, mirrored, posted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.faults.http_raw_client import Line, Reply


class Place(Protocol):
    """Where connections can be made."""

    def line(self, receive_bytes: int | None = None, source: str | None = None) -> Line: ...


# How many requests are on their way on one connection.
_PIPELINED = 32


def stateless(body: bytes, method: str = "tools/call", name: str | None = "") -> bytes:
    """Return the POST of a raw body of 2026-07-28, with the headers that repeat it."""
    if name == "":
        name = body.partition(b'"name":"')[2].partition(b'"')[0].decode()
    return posted(body, *mirrored(method, name))


def joined(http: Place, revision: str = "2025-11-25", source: str | None = None) -> tuple[Line, tuple[str, ...], str]:
    """Start a session; return its connection, the headers of its requests, and where to post."""
    line = http.line(source=source)
    own = http_raw_client.joined(line, revision)
    return line, (own[:1] if revision == "2025-03-26" else own), "/mcp"


def streamed(http: Place) -> tuple[Line, tuple[str, ...], str]:
    """Start a session of HTTP+SSE; return its stream, the headers of its requests, and where to post."""
    line = http.line()
    line.send(head("GET", "/sse", "Accept: text/event-stream"))
    assert 200 == line.head().status
    target = line.events()[0]["data"]
    for body in (initialize("2024-11-05"), message("notifications/initialized")):
        (accepted,) = post_all(http, [posted(body, target=target)])
        assert 202 == accepted.status
    return line, (), target


def post_all(http: Place, requests: Iterable[bytes]) -> list[Reply]:
    """Send *requests* on one connection, some at once, and return the replies; stop if the server hangs up."""
    replies: list[Reply] = []
    line, waiting = http.line(), 0
    with suppress(Closed, OSError):
        for each in requests:
            line.send(each)
            waiting += 1
            if waiting == _PIPELINED or len(each) > 1 << 20:
                replies += [line.reply() for _ in range(waiting)]
                waiting = 0
        replies += [line.reply() for _ in range(waiting)]
    line.close()
    return replies


def whole(line: Line, *parts: bytes) -> bytes:
    """Return all that is sent until the server hangs up, which it does if the request says so."""
    for each in parts:
        line.send(each)
    return b"".join(iter(lambda: line.socket.recv(1 << 20), b""))
