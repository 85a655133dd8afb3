"""Servers of HTTP that a test plays itself: it hears each request, and answers as it likes, byte by byte if it must.

    async with opened("2025-11-25", session="s") as (client, server):
        errand = server.start(client.ping())
        asked = await server.hear(method="ping")
        await asked.result({})
        await errand.outcome()

What the client says is judged twice: by a `ClientRecorder`, as on any wire, and by `Manners`, which knows what HTTP
demands of every request, by the text of the specification and not by our code. Both give their verdict at the end.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import SocketAttribute

from mcpgen import connect
from mcpgen.runtime.transports.spawner import open_group
from tests.harness.client_recorder import ClientRecorder
from tests.specification.client.scripted_server import ERAS, META, PATIENCE_SECONDS, Errand, discovered, initialized

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from anyio.abc import SocketStream

NEWEST = "2026-07-28"
_NUMBERS = count(1)
_HANDSHAKE = b"\x16"  # of TLS, which is not spoken here
_PHRASES = {200: "OK", 202: "Accepted"}


class Exchange:
    """One request, and what the test answers.

    Attributes:
        verb: The method of HTTP.
        target: What is asked for, with the query.
        headers: By name, in lower case; one that is there twice fails the test.
        body: As it came.
        sent: Whether the answer is complete.
        left: Set when the client has closed the connection.
    """

    def __init__(self, server: Played, stream: SocketStream, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.verb, self.target, _ = first.split(" ")
        self.headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            assert name.lower() not in self.headers, line
            self.headers[name.lower()] = value.strip()
        self.body = body
        self.sent = anyio.Event()
        self.left = anyio.Event()
        self.is_heard = False
        self._server = server
        self._stream = stream

    @property
    def message(self) -> Any:
        """The message in the body."""
        return json.loads(self.body)

    @property
    def method(self) -> str:
        """The method of that; empty if there is none."""
        message = self.message if self.body else None
        return str(message.get("method", "")) if isinstance(message, dict) else ""

    async def answer(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """Answer all at once; ``content_type`` and the like are headers."""
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Whatever')}", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        self.sent.set()

    async def json(self, message: object, status: int = 200, **headers: str) -> None:
        """Answer with *message*."""
        self._server.say(self, message)
        await self.answer(status, json.dumps(message).encode(), **{"content_type": "application/json", **headers})

    async def result(self, result: object, **headers: str) -> None:
        """Answer the message with a result."""
        await self.json({"jsonrpc": "2.0", "id": self.message["id"], "result": result}, **headers)

    async def error(self, code: int, message: str = "no", *, status: int = 400, **more: object) -> None:
        """Answer the message with an error; *more* is its ``data``."""
        error = {"code": code, "message": message, **more}
        await self.json({"jsonrpc": "2.0", "id": self.message["id"], "error": error}, status)

    async def accepted(self) -> None:
        """Take what is no request."""
        await self.answer(202)

    async def begin(self, status: int = 200, **headers: str) -> None:
        """Begin a stream of events."""
        lines = [f"HTTP/1.1 {status} OK", "transfer-encoding: chunked"]
        headers = {"content_type": "text/event-stream", **headers}
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def event(self, message: object = None, *, said: str | None = None, **fields: object) -> None:
        """Send *message*, or whatever is *said*, as an event; ``id``, ``event`` and ``retry`` are its other fields."""
        text = "".join(f"{name}: {value}\n" for name, value in fields.items())
        if message is not None:
            self._server.say(self, message)
            said = json.dumps(message)
        await self.chunk(f"{text}data: {said or ''}\n\n".encode())

    async def chunk(self, data: bytes) -> None:
        """Send a part of the body as it is."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """End the body."""
        await self.raw(b"0\r\n\r\n")
        self.sent.set()

    async def raw(self, data: bytes) -> None:
        """Send anything."""
        await self._stream.send(data)

    async def cut(self) -> None:
        """Close the connection, whatever the client waits for."""
        await self._stream.aclose()

    async def gone(self) -> None:
        """Return when the client has closed the connection."""
        with anyio.fail_after(PATIENCE_SECONDS):
            await self.left.wait()


class Manners:
    """What HTTP demands of a client, whatever its messages say."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.session: str | None = None
        self.revision: str | None = None

    def look(self, asked: Exchange) -> None:
        """Judge a request."""
        accept = {each.strip() for each in asked.headers.get("accept", "").split(",")}
        if asked.verb == "POST":
            self._demand(asked, "content-type" in asked.headers, "a POST says what it brings")
            self._demand(asked, asked.headers.get("content-type") == "application/json", "and brings JSON")
            self._demand(asked, {"application/json", "text/event-stream"} <= accept, "both kinds of answer are taken")
            message = asked.message
            if isinstance(message, dict) and message.get("method") == "initialize":
                self._demand(asked, "mcp-session-id" not in asked.headers, "a session begins without an id")
                self.session = self.revision = None
                return
            self._stateless(asked, message)
        elif asked.verb == "GET":
            self._demand(asked, "text/event-stream" in accept, "a GET takes a stream of events")
        self._demand(asked, asked.headers.get("mcp-session-id") == self.session, "every request names the session")
        if self.revision is not None:
            expected = self.revision if self.revision >= "2025-06-18" else None
            self._demand(asked, asked.headers.get("mcp-protocol-version") == expected, "and the revision")

    def _stateless(self, asked: Exchange, message: Any) -> None:
        meta = message.get("params", {}).get("_meta", {}) if isinstance(message, dict) else {}
        if META + "protocolVersion" in meta and "id" in message:
            stated = meta[META + "protocolVersion"]
            self._demand(asked, asked.headers.get("mcp-protocol-version") == stated, "the header repeats the revision")
            self._demand(asked, asked.headers.get("mcp-method") == message["method"], "and the method")

    def _demand(self, asked: Exchange, is_met: bool, rule: str) -> None:  # noqa: FBT001 (a condition)
        if not is_met:
            self.problems.append(f"{rule}: {asked.verb} {asked.headers} {asked.body[:300]!r}")


class Played:
    """A server; what it does, the test does.

    Attributes:
        url: Where it is.
        exchanges: All requests, in the order in which they came.
        is_judged: Whether what the client says is judged.
        connections: How many there were.
        live: How many there are.
    """

    def __init__(self, start: Callable[..., object]) -> None:
        self.port = 0
        self.path = f"/mcp/{next(_NUMBERS)}"  # what was learnt of a URL is remembered, and ports come back
        self.exchanges: list[Exchange] = []
        self.is_judged = True
        self.manners = Manners()
        self.connections = 0
        self.live = 0
        self._recorders: list[ClientRecorder] = []
        self._start = start
        self._came = anyio.Event()
        self._scope: anyio.CancelScope | None = None

    @property
    def url(self) -> str:
        """Where the endpoint is."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    async def listen(self) -> None:
        """Listen; again at the same port, if it did before."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self.port, reuse_port=False)
        self.port = listener.extra(SocketAttribute.local_port)  # noqa: S610 (of sockets, not of databases)
        self._scope = anyio.CancelScope()

        async def serve(scope: anyio.CancelScope) -> None:
            try:
                with scope:
                    await listener.serve(self._connected)
            finally:
                with anyio.CancelScope(shield=True):
                    await listener.aclose()

        self._start(serve, self._scope)

    def stop(self) -> None:
        """Close the listener, and all connections."""
        assert self._scope is not None

        self._scope.cancel()

    def start(self, work: Coroutine[Any, Any, Any]) -> Errand:
        """Do *work* in a task of its own."""
        errand = Errand()
        self._start(errand.run, work)
        return errand

    async def hear(self, verb: str = "POST", method: str | None = None) -> Exchange:
        """Return the first request that was not heard yet, of this *verb* and with this *method* in its body."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                for each in self.exchanges:
                    if not each.is_heard and each.verb == verb and method in (None, each.method):
                        each.is_heard = True
                        return each
                self._came = anyio.Event()
                await self._came.wait()

    @property
    def unheard(self) -> list[str]:
        """What came and was not looked at."""
        return [f"{each.verb} {each.method}".strip() for each in self.exchanges if not each.is_heard]

    def say(self, asked: Exchange, message: object) -> None:
        """Note what the client is told."""
        if self._recorders and self.is_judged:
            self._recorders[-1].heard(json.dumps(message).encode())
        if asked.method == "initialize" and isinstance(message, dict) and "result" in message:
            self.manners.revision = message["result"].get("protocolVersion")

    def verify(self) -> None:
        """Give the verdict."""
        if self.is_judged:
            assert [] == self.manners.problems

            for each in self._recorders:
                each.verify()

    async def _connected(self, stream: SocketStream) -> None:
        self.connections += 1
        self.live += 1
        reader = _Reader(stream)
        try:
            async with stream:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                    await self._serve(stream, reader)
        finally:
            self.live -= 1

    async def _serve(self, stream: SocketStream, reader: _Reader) -> None:
        while True:
            head = await reader.until(b"\r\n\r\n")
            asked = Exchange(self, stream, head, b"")
            asked.body = await reader.exactly(int(asked.headers.get("content-length", "0")))
            self._judge(asked)
            self.exchanges.append(asked)
            self._came.set()
            async with open_group() as group:
                group.start_soon(self._watch, reader, asked)
                with anyio.CancelScope() as scope:
                    group.start_soon(_when, asked.left, scope)
                    await asked.sent.wait()
            if asked.left.is_set():
                return

    async def _watch(self, reader: _Reader, asked: Exchange) -> None:
        if await reader.ended():
            asked.left.set()

    def _judge(self, asked: Exchange) -> None:
        if not self.is_judged:
            return
        self.manners.look(asked)
        if asked.verb == "POST":
            if not self._recorders:
                self._recorders.append(ClientRecorder())
            self._recorders[-1].said(asked.body)


class _Reader:
    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._data = b""

    async def until(self, mark: bytes) -> bytes:
        while mark not in self._data:
            self._data += await self._stream.receive()
            if self._data.startswith(_HANDSHAKE):
                await self._stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                raise anyio.EndOfStream
        found, _, self._data = self._data.partition(mark)
        return found

    async def exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            self._data += await self._stream.receive()
        found, self._data = self._data[:size], self._data[size:]
        return found

    async def ended(self) -> bool:
        """Return when the client has closed the connection, or (False) has sent something else."""
        try:
            self._data += await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return True
        return False


async def _when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


@asynccontextmanager
async def played() -> AsyncGenerator[Played]:
    """Listen on this machine; the block ends with the verdict on what the client has said."""
    async with open_group() as group:
        server = Played(group.start_soon)
        await server.listen()
        yield server
        server.stop()
    server.verify()


async def greeted(
    server: Played, revision: str, session: str | None = None, can: object = None, *, listens: bool = False
) -> Exchange:
    """Shake hands, and return the request for the server's own stream, which is begun, or refused."""
    asked = await server.hear(method="initialize")
    server.manners.session = session
    await asked.result(initialized(revision, can), **({} if session is None else {"mcp_session_id": session}))
    await (await server.hear(method="notifications/initialized")).accepted()
    stream = await server.hear("GET")
    await (stream.begin() if listens else stream.answer(405))
    return stream


@asynccontextmanager
async def opened(
    revision: str, *, session: str | None = None, can: object = None, listens: bool = False, **options: Any
) -> AsyncGenerator[tuple[Any, Played]]:
    """Connect a client of *revision* to a server that the test plays from then on; it is closed at the end."""
    async with played() as server:
        connecting = server.start(_connected(server.url, revisions=[revision], **options))
        if ERAS[revision] == "stateless":
            await (await server.hear(method="server/discover")).result(discovered(can))
        else:
            await greeted(server, revision, session, can, listens=listens)
        client = await connecting.outcome()
        try:
            yield client, server
        finally:
            await closed(client, server, session)


async def closed(client: Any, server: Played, session: str | None = None) -> None:
    """Close *client*, whose good-bye is answered, if it says one."""
    closing = server.start(client.close())
    if session is not None and server.manners.session is not None:
        with anyio.move_on_after(PATIENCE_SECONDS):
            await (await server.hear("DELETE")).answer(200)
    await closing.outcome()


async def _connected(target: Any, **options: Any) -> Any:
    return await connect(target, **options)


def text(said: str = "ok", **members: object) -> dict[str, object]:
    """Return the result of a tool of the stateless era."""
    return {"resultType": "complete", "content": [{"type": "text", "text": said}], **members}
