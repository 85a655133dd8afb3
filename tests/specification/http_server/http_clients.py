"""Clients of any revision over HTTP, each of which writes its requests as its revision wants them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpgen.generated import registry
from tests.specification.http_server.http_site import site

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.api.server import Server
    from tests.specification.http_server.asgi_exchange import Exchange, Lines
    from tests.specification.http_server.http_site import Site

JSON = ("Content-Type", "application/json")
BOTH = ("Accept", "application/json, text/event-stream")
STREAM = ("Accept", "text/event-stream")
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
META = "io.modelcontextprotocol/"
STATELESS = "2026-07-28"

_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def initialize(revision: str, capabilities: str = "{}", identity: int | str = 0) -> bytes:
    """Return the request that begins a session."""
    return (
        f'{{"jsonrpc":"2.0","id":{json.dumps(identity)},"method":"initialize","params":{{"protocolVersion":'
        f'"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"client","version":"1"}}}}}}'
    ).encode()


def cancellation(identity: int | str) -> bytes:
    """Return what says that a request is not needed any more."""
    return (
        f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{json.dumps(identity)}}}}}'
    ).encode()


def without(lines: Lines, *names: str) -> Lines:
    """Return *lines* without the headers *names*."""
    return [each for each in lines if each[0].lower() not in {name.lower() for name in names}]


def replaced(lines: Lines, name: str, value: str) -> Lines:
    """Return *lines* with one header changed, or added."""
    return [*without(lines, name), (name, value)]


def mirrored(body: Any) -> Lines:
    """Return the headers that repeat a request of 2026-07-28 (basic/transports/streamable-http, Request Metadata)."""
    params = body.get("params", {})
    stated = params.get("_meta", {}).get(META + "protocolVersion")
    found: Lines = [("MCP-Protocol-Version", stated)] if isinstance(stated, str) else []
    found.append(("Mcp-Method", body["method"]))
    name = params.get(_NAMES.get(body["method"], ""))
    return [*found, ("Mcp-Name", name)] if isinstance(name, str) else found


class Caller:
    """A client of Streamable HTTP.

    Attributes:
        web: Where its server runs.
        revision: What it speaks.
        session: The id of its session; None in the stateless era, and before the handshake.
        initialized: The result of its handshake.
    """

    def __init__(self, web: Site, revision: str, capabilities: str = "{}", *, path: str = "/mcp") -> None:
        self.web = web
        self.revision = revision
        self.capabilities = capabilities
        self.path = path
        self.session: str | None = None
        self.initialized: Any = None
        self._last = 0

    @property
    def is_stateless(self) -> bool:
        """Whether it says who it is with each request."""
        return registry.revision(self.revision).era == "stateless"

    @property
    def own_lines(self) -> Lines:
        """The headers that go with each of its requests."""
        found: Lines = [] if self.session is None else [("Mcp-Session-Id", self.session)]
        if self.session is not None and self.revision != "2025-03-26":
            found.append(("MCP-Protocol-Version", self.revision))
        return found

    def lines(self, body: bytes) -> Lines:
        """Return the headers that go with *body*."""
        own = [JSON, BOTH, *self.own_lines]
        message = json.loads(body)
        return [*own, *mirrored(message)] if self.is_stateless and "method" in message else own

    async def shake_hands(self) -> Caller:
        """Begin a session."""
        answer = await self.web.ask("POST", self.path, [JSON, BOTH], initialize(self.revision, self.capabilities))
        assert 200 == answer.status, answer
        (said,) = await answer.messages()
        self.initialized = said["result"]
        self.session = answer.header("mcp-session-id")
        accepted = await self.post(INITIALIZED).complete()
        assert 202 == accepted.status, accepted
        return self

    def request(self, identity: int | str, method: str, params: str = "", meta: str = "") -> bytes:
        """Return the bytes of a request; *params* and *meta* are the members of objects, as JSON."""
        if self.is_stateless:
            own = (
                f'"{META}protocolVersion":"{self.revision}",'
                f'"{META}clientInfo":{{"name":"client","version":"1"}},'
                f'"{META}clientCapabilities":{self.capabilities}'
            )
            meta = f"{own},{meta}" if meta else own
        members = [each for each in (params, f'"_meta":{{{meta}}}' if meta else "") if each]
        return (
            f'{{"jsonrpc":"2.0","id":{json.dumps(identity)},"method":"{method}","params":{{{",".join(members)}}}}}'
        ).encode()

    def post(self, body: bytes, lines: Lines | None = None) -> Exchange:
        """Post *body*, and wait for nothing."""
        return self.web.open("POST", self.path, self.lines(body) if lines is None else lines, body)

    def send(self, method: str, params: str = "", meta: str = "", *, identity: int | str | None = None) -> Exchange:
        """Post a request, and wait for nothing."""
        self._last += 1
        return self.post(self.request(self._last if identity is None else identity, method, params, meta))

    def call(self, tool: str, arguments: str = "{}", meta: str = "", *, identity: int | str | None = None) -> Exchange:
        """Call a tool, and wait for nothing."""
        return self.send("tools/call", f'"name":"{tool}","arguments":{arguments}', meta, identity=identity)

    async def ask(self, method: str, params: str = "", meta: str = "") -> Any:
        """Send a request, and return its response."""
        return (await self.send(method, params, meta).messages())[-1]

    async def result(self, method: str, params: str = "", meta: str = "") -> Any:
        """Send a request, and return its result; errors fail the test."""
        said = await self.ask(method, params, meta)
        assert "result" in said, said
        return said["result"]

    async def tell(self, body: bytes) -> Exchange:
        """Post what has no answer, and see it accepted."""
        answer = await self.post(body).complete()
        assert 202 == answer.status, answer
        return answer

    async def answer(self, request: Any, result: str) -> Exchange:
        """Post the answer to a request of the server."""
        return await self.tell(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{result}}}'.encode())

    def listen(self, last: str | None = None, lines: Lines | None = None) -> Exchange:
        """Open the stream of the session, or come back to one."""
        found = [STREAM, *self.own_lines] if lines is None else lines
        if last is not None:
            found = [*found, ("Last-Event-ID", last)]
        return self.web.open("GET", self.path, found)

    async def delete(self) -> Exchange:
        """End the session."""
        return await self.web.ask("DELETE", self.path, self.own_lines)


@asynccontextmanager
async def caller(server: Server, revision: str, capabilities: str = "{}", **options: Any) -> AsyncGenerator[Caller]:
    """Connect a client of *revision*, and let it shake hands if it has to."""
    async with site(server, **options) as web:
        yield await joined(web, revision, capabilities)


async def joined(web: Site, revision: str, capabilities: str = "{}") -> Caller:
    """Return a client of *revision*, which has shaken hands if it has to."""
    made = Caller(web, revision, capabilities)
    return made if made.is_stateless else await made.shake_hands()


class OldCaller(Caller):
    """A client of HTTP+SSE.

    Attributes:
        stream: Where everything comes.
        target: Where everything is posted.
    """

    stream: Exchange
    target: str

    async def connect(self, sse_path: str = "/sse") -> OldCaller:
        """Open the stream, and wait to be told where to post."""
        self.stream = self.web.open("GET", sse_path, [STREAM])
        told = await self.stream.event()
        assert "endpoint" == told.name
        self.target = told.data or ""
        return self

    async def shake_hands(self) -> OldCaller:
        """Begin the conversation."""
        await self.connect()
        await self.tell(initialize("2024-11-05", self.capabilities))
        self.initialized = (await self.stream.message())["result"]
        await self.tell(INITIALIZED)
        return self

    def post(self, body: bytes, lines: Lines | None = None) -> Exchange:
        return self.web.open("POST", self.target, [JSON] if lines is None else lines, body)

    async def ask(self, method: str, params: str = "", meta: str = "") -> Any:
        self._last += 1
        await self.tell(self.request(self._last, method, params, meta))
        return await self.stream.message()


async def old_joined(web: Site, capabilities: str = "{}") -> OldCaller:
    """Return a client of HTTP+SSE, which has shaken hands."""
    return await OldCaller(web, "2024-11-05", capabilities).shake_hands()
