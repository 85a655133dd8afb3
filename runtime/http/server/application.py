"""The ASGI application of a server: one endpoint for clients of every revision that is spoken over HTTP.

    app = server.asgi()

It can be served as it is, or mounted within another application.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypedDict

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.media_types import accepts, is_json
from mcpgen.runtime.http.server import cors, responses, session_endpoint
from mcpgen.runtime.http.server.app_state import AppState
from mcpgen.runtime.http.server.legacy_sse import LegacySse
from mcpgen.runtime.http.server.origin_check import OriginCheck
from mcpgen.runtime.http.server.post_request import PostRequest
from mcpgen.runtime.http.server.request_body import BodyRefused, Hungup, read_body
from mcpgen.runtime.limits import HttpLimits
from mcpgen.runtime.protocol.headers import headers_by_name
from mcpgen.runtime.server.functions.invocation import is_async

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from mcpgen.runtime.http.server.event_store import EventStore
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send
    from mcpgen.runtime.server.engine import Engine

__all__ = ["Application", "Options"]

_LOG = logging.getLogger("mcpgen.http")

# HTTP+SSE is what this revision says of HTTP.
_HTTP_AND_SSE: Final = "2024-11-05"


class Options(TypedDict, total=False):
    """What `Server.asgi` takes; `Application` says what each is."""

    path: str
    sse_path: str
    message_path: str
    allowed_origins: Sequence[str] | None
    allowed_hosts: Sequence[str] | None
    bound_to: str | None
    events: EventStore | None
    limits: HttpLimits | None
    user: Callable[[Scope], str] | None


class Application:
    """A server as an ASGI application, by `Server.asgi`.

    Args:
        engine: The server.
        path: Of the endpoint.
        sse_path: Where clients of 2024-11-05 open their stream; only if that revision is served.
        message_path: Where they post.
        allowed_origins: Whose pages may ask; see `OriginCheck`.
        allowed_hosts: What the server may be called; see `OriginCheck`.
        bound_to: The address that it listens on, if that is known.
        events: Where streams are kept for clients whose connection breaks; by default in memory, with bounds.
        limits: Bounds on what is held for all clients together.
        user: Returns who sends a request, by its scope, as far as that is known; empty for nobody in particular. What
            belongs to one user is not found by another.

    Attributes:
        limits: Those bounds.

    Raises:
        UsageError: The arguments make no sense together.
    """

    def __init__(  # noqa: PLR0913 (settings, each by its name)
        self,
        engine: Engine,
        *,
        path: str = "/mcp",
        sse_path: str = "/sse",
        message_path: str = "/messages",
        allowed_origins: Sequence[str] | None = None,
        allowed_hosts: Sequence[str] | None = None,
        bound_to: str | None = None,
        events: EventStore | None = None,
        limits: HttpLimits | None = None,
        user: Callable[[Scope], str] | None = None,
    ) -> None:
        self._paths = _checked_paths(path=path, sse_path=sse_path, message_path=message_path)
        self._guard = OriginCheck(allowed_origins=allowed_origins, allowed_hosts=allowed_hosts, bound_to=bound_to)
        _check(limits, user, events)
        self._engine = engine
        self.limits: HttpLimits = HttpLimits() if limits is None else limits
        self._events = events
        self._user = user
        self._begin()

    def _begin(self) -> None:
        self._desk = AppState(self._engine, self.limits, self._events)
        self._legacy = LegacySse(self._desk, self._paths["message_path"])

    def _begin_anew(self) -> None:
        self._desk.abandon()
        self._begin()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan, as ASGI 3 has it."""
        match scope["type"]:
            case "http":
                if self._desk.is_left:
                    self._begin_anew()
                try:
                    await self._serve(scope, receive, send)
                except responses.ClientDisconnected as gone:
                    _LOG.debug("%s", gone)
            case "lifespan":
                await self._lifespan(receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1000, "reason": "this server speaks HTTP"})
            case kind:
                raise UsageError(f"an application of ASGI was asked for {kind!r}, which it does not know")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Application]:
        """Keep the server's lifespan open within the block, and end all that is open at its end.

        For whoever mounts the application within another, whose lifespan is its own. Without it the server's begins
        with the first request, and ends with the event loop.
        """
        if self._desk.is_over:
            self._begin_anew()
        await self._desk.open()
        try:
            yield self
        finally:
            await self._desk.close()

    async def dismiss(self) -> None:
        """End all streams, and refuse what comes from now on: the process is about to end."""
        await self._desk.dismiss()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        if self._desk.is_over:
            self._begin_anew()
        for phase, do in (("startup", self._desk.open), ("shutdown", self._desk.close)):
            try:
                await do()
            except Exception as failure:  # the server's own code; whoever runs the application has to hear of it
                _LOG.exception("the server's lifespan failed (%s)", phase)
                await send({"type": f"lifespan.{phase}.failed", "message": repr(failure)})
                raise
            await send({"type": f"lifespan.{phase}.complete"})
            if phase == "startup":
                await receive()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = headers_by_name(scope["headers"])
        except ValueError as error:
            await responses.send_error(send, 400, str(error))
            return
        if "," in headers.get("host", ""):  # no name has one: it is there twice (RFC 9112, 3.2)
            await responses.send_error(send, 400, "the request has more than one Host")
            return
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :]
        handle = self._route(path)
        if handle is None:
            await responses.send_error(send, 404, f"there is nothing here; the endpoint is {root}{self._paths['path']}")
            return
        refusal = self._guard.refusal(headers)
        if refusal is not None:
            await responses.send_error(send, 403, refusal)
            return
        origin = headers.get("origin")
        if origin is not None:  # it is allowed, and its browser wants to hear so
            send = cors.with_cors_headers(send, origin)
            if cors.is_preflight(scope["method"], headers):
                await responses.send_empty(send, 204, cors.preflight_headers(headers))
                return
        user = "" if self._user is None else self._user(scope)
        await handle(scope, headers, user, receive, send)

    def _route(self, path: str) -> Callable[..., Awaitable[None]] | None:
        if path == self._paths["path"] or path.rstrip("/") == self._paths["path"].rstrip("/"):
            return self._endpoint
        if _HTTP_AND_SSE in self._engine.service.handshakes:
            if path == self._paths["sse_path"]:
                return self._sse
            if path == self._paths["message_path"]:
                return self._message
        return None

    async def _endpoint(
        self, scope: Scope, headers: Mapping[str, str], user: str, receive: Receive, send: Send
    ) -> None:
        method = scope["method"]
        if method == "POST":
            body = await self._body(headers, receive, send, accepted=("application/json", "text/event-stream"))
            if body is not None:
                await PostRequest(self._desk, headers, user, receive, send).serve(body)
        elif method not in ("GET", "DELETE") or not self._engine.service.handshakes:
            # 2026-07-28, basic/transports/streamable-http, "Earlier Streamable HTTP Revisions".
            allowed = b"GET, POST, DELETE" if self._engine.service.handshakes else b"POST"
            await responses.send_error(send, 405, f"{method} is not served here", headers=((b"allow", allowed),))
        elif method == "DELETE":
            await session_endpoint.delete(self._desk, headers, user, send)
        elif not accepts(headers.get("accept"), "text/event-stream"):
            await responses.send_error(
                send, 406, "this is the endpoint of an MCP server: clients post, or accept text/event-stream"
            )
        else:
            await session_endpoint.get(self._desk, headers, user, receive, send)

    async def _sse(self, scope: Scope, headers: Mapping[str, str], user: str, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            await responses.send_error(send, 405, "the stream is opened by GET", headers=((b"allow", b"GET"),))
        elif not accepts(headers.get("accept"), "text/event-stream"):
            await responses.send_error(send, 406, "the client has to accept text/event-stream")
        else:
            await self._legacy.stream(scope, user, receive, send)

    async def _message(self, scope: Scope, headers: Mapping[str, str], user: str, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await responses.send_error(send, 405, "messages are posted", headers=((b"allow", b"POST"),))
            return
        body = await self._body(headers, receive, send, accepted=())
        if body is not None:
            await self._legacy.post(scope, user, body, send)

    async def _body(
        self, headers: Mapping[str, str], receive: Receive, send: Send, *, accepted: tuple[str, ...]
    ) -> bytes | None:
        """Return the body of a POST; None if it was refused, or its client is gone."""
        if not is_json(headers.get("content-type")):
            await responses.send_error(send, 415, "the body has to be application/json")
            return None
        accept = headers.get("accept")
        for each in accepted:
            if not accepts(accept, each):
                await responses.send_error(send, 406, f"the client has to accept {' and '.join(accepted)}")
                return None
        most = self._engine.limits.max_frame_bytes
        try:
            seconds = self.limits.body_seconds
            return await read_body(receive, headers, most_bytes=most, seconds=seconds, hold=self._desk.hold)
        except BodyRefused as error:
            # What is left of the body is not read, so that no other request can come over this connection.
            await responses.send_error(send, error.status, error.reason, headers=((b"connection", b"close"),))
        except Hungup:
            _LOG.debug("a client went away before its request was complete")
        return None


def _check(limits: object, user: object, events: object) -> None:
    """Find arguments that would only fail when the first client comes.

    Raises:
        UsageError: One is not what it should be.
    """
    if limits is not None and not isinstance(limits, HttpLimits):
        raise UsageError(f"limits are an HttpLimits, such as HttpLimits(max_sessions=100), not {limits!r}")
    if user is not None and (not callable(user) or is_async(user)):
        raise UsageError(f"user is a plain function of the scope that returns a text, not {user!r}")
    if events is not None and not hasattr(events, "append"):
        raise UsageError(f"events are a store, such as MemoryEventStore(), not {events!r}")


def _checked_paths(**paths: str) -> Mapping[str, str]:
    for name, path in paths.items():
        if not path.startswith("/") or "?" in path or "#" in path:
            raise UsageError(f"{name} is {path!r}; it has to begin with /, and to have neither ? nor #")
    if len(set(paths.values())) < len(paths):
        raise UsageError(f"each of {', '.join(paths)} needs a path of its own, not {', '.join(paths.values())}")
    return paths
