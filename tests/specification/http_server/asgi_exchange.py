"""An application of ASGI without sockets: requests in, what it sends out, and a client that may leave at any time.

async with site(server) as web:
    answer = await web.ask("POST", "/mcp", headers, body)   # until the response is complete
    stream = web.open("GET", "/mcp", headers)               # without waiting for anything
    event = await stream.event()                            # one at a time, while the response is open
    stream.leave()

Every wait ends after a few seconds. At the end of the block an `Overseer` judges all that was exchanged.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import anyio
from anyio.lowlevel import checkpoint

from tests.patience import PATIENCE_SECONDS
from tests.specification.http_server.strict_events import EventText

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.specification.http_server.strict_events import Event

    Scope = dict[str, Any]
    Message = dict[str, Any]
    App = Callable[[Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

# A handler that waits for nothing but us is through after a few turns of the event loop; this many without a new byte
# mean that it is.
_QUIET_TURNS = 40

Lines = list[tuple[str, str]]


class Watcher(Protocol):
    """What hears of every step of an exchange."""

    def asked(self, exchange: Exchange) -> None: ...
    def started(self, exchange: Exchange) -> None: ...
    def sent(self, exchange: Exchange, data: bytes) -> None: ...
    def ended(self, exchange: Exchange) -> None: ...
    def returned(self, exchange: Exchange) -> None: ...


class Exchange:
    """One request, and the response to it, as far as it has come.

    Attributes:
        lines: The headers of the request, as sent.
        request: Its body.
        status: 0 until the response has begun.
        response_lines: Its headers, as sent.
        body: What has come of its body.
        is_ended: Whether the response is complete.
        has_left: Whether the client is gone.
        knows: Whether the application has been told so.
        is_held: Whether the client does not read.
    """

    def __init__(self, method: str, target: str, lines: Lines, parts: Sequence[bytes], watcher: Watcher) -> None:
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.lines = lines
        self.request = b"".join(parts)
        self.status = 0
        self.response_lines: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.is_ended = self.has_left = self.knows = self.is_held = self.has_returned = False
        self.failure: BaseException | None = None
        self.is_whole = True
        self._parts = list(parts) or [b""]
        self._next = 0
        self._watcher = watcher
        self._text = EventText()
        self._events: list[Event] = []
        self._changed = anyio.Event()

    # --- what the client sees

    def header(self, name: str) -> str | None:
        """Return a header of the response; the name in lower case."""
        found = [value.decode("latin-1") for each, value in self.response_lines if each == name.encode()]
        return ", ".join(found) if found else None

    def sent_header(self, name: str) -> str | None:
        """Return a header of the request; the name in lower case."""
        found = [value for each, value in self.lines if each.lower() == name]
        return ", ".join(found) if found else None

    @property
    def is_stream(self) -> bool:
        return (self.header("content-type") or "").partition(";")[0].strip() == "text/event-stream"

    @property
    def json(self) -> Any:
        """The body, which has to be JSON and to say so."""
        assert "application/json" == (self.header("content-type") or "").partition(";")[0].strip(), self
        return json.loads(self.body)

    @property
    def pending(self) -> list[Event]:
        """The events that nobody has taken; takes them."""
        found, self._events = self._events, []
        return found

    async def begun(self) -> Exchange:
        """Return when there is a status."""
        await self._until(lambda: self.status or self.has_returned)
        self._check()
        return self

    async def complete(self) -> Exchange:
        """Return when the response is complete, and the application through with it."""
        await self._until(lambda: self.has_returned)
        self._check()
        assert self.is_ended, f"the response is not complete: {self}"
        return self

    async def returned(self) -> Exchange:
        """Return when the application is through, in whatever way."""
        await self._until(lambda: self.has_returned)
        return self

    async def event(self) -> Event:
        """Return the next event."""
        await self._until(lambda: self._events or self.has_returned)
        self._check()
        assert self._events, f"the stream has ended: {self}"
        return self._events.pop(0)

    async def message(self) -> Any:
        """Return the next event's data, which is JSON; those that prime the client are passed over."""
        while True:
            event = await self.event()
            if event.data:
                return json.loads(event.data)

    async def messages(self) -> list[Any]:
        """Return what has been said when the response is complete, be it one object or a stream."""
        await self.complete()
        if not self.is_stream:
            return [self.json] if self.body else []
        return [json.loads(each.data) for each in self.pending if each.data]

    async def commented(self, times: int) -> None:
        """Return when there were so many comments."""
        await self._until(lambda: self._text.comments >= times or self.has_returned)
        assert self._text.comments >= times, self

    async def seen(self) -> Event:
        """Return the next event that is a message."""
        event = await self.event()
        return event if event.data else await self.seen()

    def leave(self) -> None:
        """Close the connection from the client's side."""
        self.has_left = True
        self.is_held = False
        self._tell()

    def more(self, *parts: bytes, is_last: bool) -> None:
        """Send more of a body that was begun with ``is_whole=False``."""
        self._parts.extend(parts)
        self.request += b"".join(parts)
        self.is_whole = is_last
        self._tell()

    def __repr__(self) -> str:
        told = self.body[:2000].decode(errors="replace")
        return f"{self.method} {self.path}?{self.query} {self.lines} {self.request[:500]!r} -> {self.status} {told}"

    # --- what the application sees

    async def receive(self) -> Message:
        if self._next < len(self._parts):
            part = self._parts[self._next]
            self._next += 1
            is_last = self.is_whole and self._next == len(self._parts)
            if is_last:
                self._watcher.asked(self)
            await checkpoint()
            return {"type": "http.request", "body": part, "more_body": not is_last}
        # As servers do: after the body, the next is always the end of the connection.
        while not self.has_left and not self.is_ended and self._next >= len(self._parts):
            await self._change()
        if self._next < len(self._parts) and not self.has_left:
            return await self.receive()
        self.knows = True
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            assert not self.status, "a second status"
            self.status = message["status"]
            self.response_lines = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
            self._watcher.started(self)
        else:
            assert kind == "http.response.body", kind
            assert self.status, "a body before its status"
            assert not self.is_ended, "a body behind the end"
            self._take(bytes(message.get("body", b"")))
            if not message.get("more_body", False):
                self.is_ended = True
                self._watcher.ended(self)
        self._tell()
        await checkpoint()
        while self.is_held:
            await self._change()

    def _take(self, data: bytes) -> None:
        if data:
            self._watcher.sent(self, data)
        if not self.has_left:
            self.body += data
            if self.is_stream:
                self._events += self._text.feed(data)

    async def run(self, app: App, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
        except Exception as error:  # noqa: BLE001 (the test is told)
            self.failure = error
        finally:
            self.has_returned = True
            self._watcher.returned(self)
            self._tell()

    def _check(self) -> None:
        if self.failure is not None:
            raise AssertionError(f"the application failed: {self}") from self.failure

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _change(self) -> None:
        await self._changed.wait()

    async def _until(self, is_so: Callable[[], object]) -> None:
        try:
            with anyio.fail_after(PATIENCE_SECONDS):
                while not is_so():
                    await self._change()
        except TimeoutError:
            raise AssertionError(f"nothing came: {self}") from None


class Web:
    """A running application.

    Attributes:
        app: It.
        exchanges: All, oldest first.
        root_path: Where it is mounted.
        address: Where the client of the next request is.
        quiet_seconds: How long nothing must come before it is certain that nothing will.
    """

    address = "127.0.0.1"
    quiet_seconds: float = 0

    def __init__(self, app: App, group: anyio.abc.TaskGroup, watcher: Watcher, root_path: str) -> None:
        self.app = app
        self.exchanges: list[Exchange] = []
        self.root_path = root_path
        self.watcher = watcher
        self._group = group

    def open(  # noqa: PLR0913 (the parts of a request)
        self,
        method: str,
        target: str,
        lines: Lines | None = None,
        body: bytes | Sequence[bytes] = b"",
        *,
        is_whole: bool = True,
        host: str | None = "127.0.0.1:8000",
    ) -> Exchange:
        """Send a request, and wait for nothing."""
        lines = ([] if host is None else [("Host", host)]) + list(lines or [])
        parts = [body] if isinstance(body, bytes) else list(body)
        exchange = Exchange(method, target, lines, parts, self.watcher)
        exchange.is_whole = is_whole
        if is_whole and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in lines) and body:
            lines.append(("Content-Length", str(len(exchange.request))))
        self.exchanges.append(exchange)
        self._group.start_soon(exchange.run, self.app, self.scope(exchange))
        return exchange

    async def ask(self, method: str, target: str, lines: Lines | None = None, body: bytes = b"") -> Exchange:
        """Send a request, and return when the response is complete."""
        return await self.open(method, target, lines, body).complete()

    def scope(self, exchange: Exchange) -> Scope:
        """Return what a server of ASGI says about a request."""
        path = self.root_path + exchange.path
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": exchange.method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": exchange.query.encode(),
            "root_path": self.root_path,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in exchange.lines],
            "client": (self.address, 50000),
            "server": ("127.0.0.1", 8000),
            "state": {},
        }

    async def quiet(self) -> None:
        """Return when the application waits for something."""
        with anyio.fail_after(PATIENCE_SECONDS):
            turns, heard, since = 0, self._heard(), anyio.current_time()
            while turns < _QUIET_TURNS or anyio.current_time() < since + self.quiet_seconds:
                await (anyio.sleep(0.001) if self.quiet_seconds else checkpoint())
                if heard != self._heard():
                    turns, since = 0, anyio.current_time()
                turns += 1
                heard = self._heard()

    def _heard(self) -> int:
        # Comments keep silent streams alive.
        bodies = (each.body.replace(b":\n\n", b"") if self.quiet_seconds else each.body for each in self.exchanges)
        return sum(map(len, bodies)) + sum(each.status + each.has_returned for each in self.exchanges)


class Lifespan:
    """The lifespan of an application, driven by hand."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._inbox: list[Message] = []
        self.said: list[Message] = []
        self.has_returned = False
        self.failure: BaseException | None = None
        self._changed = anyio.Event()

    async def run(self) -> None:
        try:
            await self._app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 (the test is told)
            self.failure = error
        finally:
            self.has_returned = True
            self._tell()

    async def ask(self, kind: str) -> Message:
        """Send *kind*, ``startup`` or ``shutdown``, and return what the application says to that."""
        count = len(self.said)
        self._inbox.append({"type": f"lifespan.{kind}"})
        self._tell()
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(self.said) == count and not self.has_returned:
                await self._changed.wait()
        assert len(self.said) > count, f"no answer to {kind}: {self.failure!r}"
        return self.said[-1]

    async def _receive(self) -> Message:
        while not self._inbox:
            await self._changed.wait()
        return self._inbox.pop(0)

    async def _send(self, message: Message) -> None:
        self.said.append(message)
        self._tell()
        await checkpoint()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
