"""Exchanges as text, for the judge of HTTP to be judged: what a client sends, and what an application makes of it.

A script is a list of steps. Each is a request and the response to it; or, if the response is `HELD`, one that stays
open until the end of the script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from mcpgen.runtime.transports.spawner import open_group
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import LABELS
from tests.specification.http_server.asgi_exchange import Web
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, STREAM, initialize
from tests.specification.http_server.http_recorder import Overseer
from tests.specification.server.revision_server import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.specification.http_server.asgi_exchange import Lines

KIND_JSON = ("content-type", "application/json")
EVENTS = (("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("x-accel-buffering", "no"))
AGREED = (
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"%s","capabilities":'
    '{"logging":{},"tools":{"listChanged":true},"resources":{"subscribe":true}},'
    '"serverInfo":{"name":"s","version":"1"}}}'
)


class Reply(NamedTuple):
    """What an application sends.

    Attributes:
        status: 0 for nothing at all.
        then: ``end``, ``hold`` until the client leaves, ``return`` in the middle, ``fail``, or ``go on``: send
            something more after the client has left.
    """

    status: int = 202
    lines: Sequence[tuple[str, str]] = ()
    body: str | bytes = ""
    then: str = "end"


class Step(NamedTuple):
    """One request, and the reply to it."""

    method: str
    target: str
    lines: Lines
    body: str
    reply: Reply


def json_reply(body: str, status: int = 200, *lines: tuple[str, str]) -> Reply:
    return Reply(status, (KIND_JSON, *lines), body)


def events(*blocks: str, then: str = "end", lines: Sequence[tuple[str, str]] = EVENTS) -> Reply:
    return Reply(200, lines, "".join(f"{each}\n\n" for each in blocks), then)


def post(body: str, reply: Reply, *, session: str | None = "S", lines: Lines | None = None) -> Step:
    own: Lines = [JSON, BOTH] if lines is None else lines
    return Step("POST", "/mcp", [*own, *([] if session is None else [("Mcp-Session-Id", session)])], body, reply)


def get(reply: Reply, *, session: str = "S", last: str | None = None) -> Step:
    resumed = [] if last is None else [("Last-Event-ID", last)]
    return Step("GET", "/mcp", [STREAM, ("Mcp-Session-Id", session), *resumed], "", reply)


def old(reply: Reply) -> Step:
    return Step("GET", "/sse", [STREAM], "", reply)


def begin(revision: str, session: str = "S", capabilities: str = "{}") -> list[Step]:
    """Return the steps of a handshake without fault."""
    agreed = json_reply(AGREED % revision, 200, ("mcp-session-id", session))
    return [
        post(initialize(revision, capabilities).decode(), agreed, session=None),
        post('{"jsonrpc":"2.0","method":"notifications/initialized"}', Reply(), session=session),
    ]


def call(identity: Any = 1, method: str = "ping", marker: str | None = None) -> str:
    meta = "" if marker is None else f'"_meta":{{"progressToken":"{marker}"}}'
    return f'{{"jsonrpc":"2.0","id":{identity},"method":"{method}","params":{{{meta}}}}}'


def modern(method: str = "tools/list", identity: Any = 1, params: str = "", more: str = "") -> str:
    """Return a stateless request."""
    meta = (
        f'"_meta":{{"io.modelcontextprotocol/protocolVersion":"{STATELESS}",'
        f'"io.modelcontextprotocol/clientCapabilities":{{}}{more}}}'
    )
    members = f"{params},{meta}" if params else meta
    return f'{{"jsonrpc":"2.0","id":{identity},"method":"{method}","params":{{{members}}}}}'


def tools(identity: Any = 1) -> str:
    """Return a valid stateless answer to `tools/list`."""
    return (
        f'{{"jsonrpc":"2.0","id":{identity},"result":{{"resultType":"complete","tools":[],"ttlMs":0,'
        '"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}'
    )


class Application:
    """Sends the replies of a script, one for each request."""

    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        reply = self._replies.pop(0)
        while (await receive()).get("more_body"):
            pass
        if reply.then == "fail":
            raise KeyError("doctored")
        if reply.status:
            headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.lines]
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            body = reply.body.encode() if isinstance(reply.body, str) else reply.body
            await send({"type": "http.response.body", "body": body, "more_body": reply.then != "end"})
        if reply.then in ("hold", "go on"):
            while (await receive())["type"] != "http.disconnect":
                pass
        if reply.then == "go on":
            await send({"type": "http.response.body", "body": b"data: {}\n\n", "more_body": True})


async def judged(script: list[Step]) -> list[str]:
    """Return what is wrong with a script."""
    overseer = Overseer(LABELS, lambda _: CAPABILITIES)
    async with open_group() as group:
        web = Web(Application([each.reply for each in script]), group, overseer, "")
        for each in script:
            exchange = web.open(each.method, each.target, each.lines, each.body.encode())
            await web.quiet()
        for exchange in web.exchanges:
            exchange.leave()
        with anyio.fail_after(PATIENCE_SECONDS):
            for exchange in web.exchanges:
                await exchange.returned()
    return [each.reason for each in overseer.violations]
