"""The ASGI application of a server: one endpoint for clients of every revision.

    app = server.asgi()

An ASGI server can serve it, and a framework can mount it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.media_types import EVENT_STREAM, accepts
from mcpgen.runtime.http.server import cors, get_delete_request, responses
from mcpgen.runtime.http.server.app_state import AppState
from mcpgen.runtime.http.server.application_options import check_options, check_paths, user_name
from mcpgen.runtime.http.server.client_address import Client, ClientAddresses
from mcpgen.runtime.http.server.health_check import HealthCheck
from mcpgen.runtime.http.server.legacy_sse import LegacySse
from mcpgen.runtime.http.server.origin_check import OriginCheck
from mcpgen.runtime.http.server.post_request import PostRequest, refusal
from mcpgen.runtime.http.server.refused_bodies import RefusedBodies
from mcpgen.runtime.http.server.repeated_head import HEADERS
from mcpgen.runtime.http.server.request_body import BodyRefused, Uploads, read_body
from mcpgen.runtime.limits import HttpLimits
from mcpgen.runtime.protocol.headers import headers_by_name
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.server.functions.worker_threads import CALLER, Caller
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from mcpgen.runtime.http.server.auth.protection import Protect
    from mcpgen.runtime.http.server.auth.resource_metadata import ResourceMetadata
    from mcpgen.runtime.http.server.auth.token_check import TokenCheck
    from mcpgen.runtime.http.server.post_request import Refusal
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send
    from mcpgen.runtime.server.cluster.cluster import Cluster
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.event_store import EventStore

__all__ = ["Application"]

_LOG = traceback_logger("mcpgen.http")

# The one revision with the transport HTTP+SSE.
_LEGACY_SSE_REVISION: Final = "2024-11-05"


class Application:
    """A server as an ASGI application; `Server.asgi` returns it.

    Args:
        engine: The server.
        path: The path of the endpoint.
        sse_path: The path at which clients of 2024-11-05 open their stream, if the server serves that revision.
        message_path: The path to which these clients post their messages.
        allowed_origins: The origins whose web pages are allowed to use the server. `OriginCheck` in
            `mcpgen.runtime.http.server.origin_check` describes the entries and the defaults.
        allowed_hosts: The names that are allowed in the Host header; see `OriginCheck`, too.
        bound_to: The address that the server listens on, if known.
        events: Stores the messages of streams, so that clients can resume broken streams; by default a
            `MemoryEventStore`.
        limits: The limits of this application.
        user: A function that takes the ASGI scope of a request, and returns the name of the user; empty for an unknown
            user. Each session, task and request state (see `Server`) belongs to one user. Other users get the same
            error as if it did not exist.
        trusted_proxies: Addresses and networks of the reverse proxies whose header ``X-Forwarded-For`` or ``Forwarded``
            is believed. Clients share the limits by user, or else by address.
        cluster: What this process shares with the other workers of the server, such as ``Redis("redis://…")``; by
            default nothing, since there is one worker.
        auth: Demands access tokens of all requests; their issuer, client and subject are the user. Excludes `user`.
        health: The path, such as ``/health``, at which balancers and orchestrators ask whether this process lives
            (``/health/live``) and can serve (``/health/ready``); by default there is none.

    Attributes:
        limits: The limits of this application.

    Raises:
        UsageError: An argument is invalid, or contradicts another one.
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
        trusted_proxies: Sequence[str] | None = None,
        cluster: Cluster | None = None,
        auth: Protect | None = None,
        health: str | None = None,
    ) -> None:
        self._path, self._message_path = path, message_path
        self._sse_path = sse_path if _LEGACY_SSE_REVISION in engine.handlers.handshake_revisions else None
        optional = {} if health is None else {"health": health}
        check_paths(path=path, sse_path=sse_path, message_path=message_path, **optional)
        self._health = None if health is None else HealthCheck(health)
        self._refused_bodies = RefusedBodies()
        self._origin_check = OriginCheck(
            allowed_origins=allowed_origins, allowed_hosts=allowed_hosts, bound_to=bound_to
        )
        check_options(limits, user, events, auth, cluster)
        self._engine = engine
        self.limits: HttpLimits = HttpLimits() if limits is None else limits
        self._events = events
        self._cluster = cluster
        self._user = user
        self._auth = auth
        self._addresses = ClientAddresses(trusted_proxies)
        ledger = engine.ledger
        ledger.add_store("messages", lambda: self._state.unread.kept_bytes)
        ledger.add_store("events", lambda: getattr(self._state.store, "held_bytes", 0))
        self._start()
        if auth is not None:
            ledger.add_store("tokens", lambda: 0 if self._tokens is None else self._tokens.kept_bytes)

    @property
    def kept_bytes(self) -> dict[str, int]:
        """What the server keeps in memory for its clients: bytes by kind, estimated."""
        return {kind: size for kind, size in self._engine.ledger.by_kind().items()}  # noqa: C416 (a dict of str)

    def __repr__(self) -> str:
        return f"Application(name={self._engine.name!r}, path={self._path!r})"

    def _start(self) -> None:
        self._state = AppState(self._engine, self.limits, self._events)
        uploads = self._engine.ledger.account("uploads")
        self._uploads = Uploads(self._state.open_quota, uploads, self._engine.turns)
        self._legacy_sse = LegacySse(self._state, self._message_path)
        self._tokens = None if self._auth is None else self._token_check(self._auth)
        if self._cluster is not None:
            # One process without a cluster does not import this.
            from mcpgen.runtime.http.server.cluster.http_cluster import HttpCluster  # noqa: PLC0415

            shared = self._state.cluster = HttpCluster(self._state, self._cluster)
            shared.serve_messages_with(self._legacy_sse)

    def _token_check(self, auth: Protect) -> TokenCheck:
        from mcpgen.runtime.http.server.auth.token_check import TokenCheck  # noqa: PLC0415 (most servers take no tokens)

        check = self._state.tokens = TokenCheck(auth, self._path, self._sse_path)
        return check

    @property
    def metadata(self) -> ResourceMetadata:
        """The protected-resource metadata as an ASGI application, for the framework that mounts this one.

        Clients look for it at ``/.well-known/oauth-protected-resource`` of the host, so mount it there.

        Raises:
            UsageError: The application has no `auth`.
        """
        if self._tokens is None:
            raise UsageError("the application has no metadata; pass `auth=Protect(…)` to asgi()")
        return self._tokens.metadata

    def _restart(self) -> None:
        self._state.disconnect_all()
        self._engine.turns = FairTurns()  # the old ones belong to an event loop that has ended
        self._start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, or the lifespan, as ASGI 3 defines."""
        if scope["type"] != "http":
            await self._serve_scope(scope, receive, send)
            return
        if self._state.has_stopped():
            if self._state.has_failed:
                await self._state.open()  # raises what the lifespan has raised
            self._restart()
        try:
            response, send = self._response(scope, receive, send)
            try:
                await response
            except BodyRefused as error:
                await self._refused_bodies.refuse(receive, send, error)
            except ClusterUnavailable as error:
                await responses.send_unreachable(send, error)
        except responses.ClientDisconnected as disconnected:
            _LOG.debug("%s", disconnected)

    async def _serve_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._lifespan(receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1000, "reason": "this server accepts HTTP only"})
            case kind:
                raise UsageError(f"`scope` has the type {kind!r}; this ASGI application accepts http and lifespan")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Application]:
        """Keep the server's lifespan open within the block, and shut down at its end.

        If a framework mounts the application, enter `running()` in the lifespan of the framework: frameworks do not
        start the lifespan of a mounted application. Without `running()`, the server's lifespan starts with the first
        request and ends with the event loop.
        """
        if self._state.has_ended:
            self._restart()
        await self._state.open()
        try:
            yield self
        finally:
            await self._state.close()

    @property
    def grace_seconds(self) -> float:
        """The time that running handlers have to finish after `shutdown` is called (`Limits`)."""
        return self._engine.limits.grace_seconds

    async def shutdown(self) -> None:
        """End all streams, and refuse new requests with status 503, since the process is about to exit."""
        await self._state.shutdown()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        if self._state.has_ended:
            self._restart()
        for phase, run in (("startup", self._state.open), ("shutdown", self._state.close)):
            try:
                await run()
            except Exception as failure:  # raised by the server's own lifespan; the ASGI server must learn of it
                _LOG.exception("the server's lifespan failed (%s)", phase)
                await send({"type": f"lifespan.{phase}.failed", "message": repr(failure)})
                raise
            await send({"type": f"lifespan.{phase}.complete"})
            if phase == "startup":
                await receive()

    def _response(self, scope: Scope, receive: Receive, send: Send) -> tuple[Awaitable[None], Send]:
        """Return what answers a request, and the `send` of the response, which may add headers.

        Nothing waits here, unless a token is to be verified: each coroutine takes 1 % of a call.
        """
        try:
            known, lines = scope.get("extensions", {}).get(HEADERS), scope["headers"]
            headers = headers_by_name(lines) if known is None or known["lines"] != lines else known["by_name"]
        except ValueError as error:
            return responses.send_error(send, 400, str(error)), send
        if "," in headers.get("host", ""):  # two Host headers, since no host name has a comma (RFC 9112, 3.2)
            return responses.send_error(send, 400, "the request has more than one Host header"), send
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :]
        handle = self._serve_endpoint if path == self._path else self._route(path)
        if handle is None:
            return self._serve_other(scope, headers, path, send), send
        refusal = self._origin_check.refusal(headers)
        if refusal is not None:
            return responses.send_error(send, 403, refusal), send
        origin = headers.get("origin")
        if origin is not None:  # an allowed one, of a browser
            send = cors.with_cors_headers(send, origin)
            if cors.is_preflight(scope["method"], headers):
                return responses.send_empty(send, 204, cors.preflight_headers(headers)), send
        if self._tokens is None:
            client = self._addresses.client(scope, headers, "" if self._user is None else user_name(self._user(scope)))
        else:
            known = self._tokens.known_client(headers)
            if known is None or scope["method"] != "POST":  # what a POST needs is in its body
                return self._serve_authorized(self._tokens, handle, scope, headers, receive, send), send
            client = known
        return handle(scope, headers, client, receive, send), send

    async def _serve_authorized(  # noqa: PLR0913, PLR0917 (of `_response`)
        self,
        tokens: TokenCheck,
        handle: Callable[..., Awaitable[None]],
        scope: Scope,
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a request if its token allows it; refuse it otherwise."""
        is_sse, owner = handle != self._serve_endpoint, self._addresses.client(scope, headers, "").owner
        client = await tokens.client(headers, send, owner=owner, is_sse=is_sse)
        if client is None:
            return
        access = None if scope["method"] == "POST" else client.access  # what a POST needs is in its body
        if access is None or not await tokens.refuse_scopes(send, access, (), is_sse=is_sse):
            await handle(scope, headers, client, receive, send)

    async def _serve_other(self, scope: Scope, headers: Mapping[str, str], path: str, send: Send) -> None:
        """Serve health checks and the public metadata about access tokens; refuse other paths."""
        if self._health is not None and self._health.has(path):
            await self._health.serve(self._state, scope["method"], path, send)
            return
        document = None if self._tokens is None else self._tokens.metadata.document(path)
        # The metadata is for pages of any origin, but its Host is checked.
        checked = headers if document is None else {name: headers[name] for name in headers if name != "origin"}
        refusal = self._origin_check.refusal(checked)
        if refusal is not None:
            await responses.send_error(send, 403, refusal)
            return
        if self._tokens is None or document is None:
            reason = f"nothing is served at this path; the endpoint is {scope.get('root_path', '')}{self._path}"
            await responses.send_error(send, 404, reason)
            return
        await self._tokens.metadata.serve(scope, document, send)

    def _route(self, path: str) -> Callable[..., Awaitable[None]] | None:
        if _is_same(path, self._path):
            return self._serve_endpoint
        if self._sse_path is not None and _is_same(path, self._sse_path):
            return self._serve_sse
        if self._sse_path is not None and path == self._message_path:
            return self._serve_message
        return None

    def _serve_endpoint(
        self, scope: Scope, headers: Mapping[str, str], client: Client, receive: Receive, send: Send
    ) -> Awaitable[None]:
        method = scope["method"]
        if method == "POST":
            refused = refusal(headers.get("content-type"), headers.get("content-encoding"), headers.get("accept"))
            if refused is not None:
                return self._refuse_post(refused, headers, client, receive, send)
            return self._serve_post(scope, headers, client, receive, send)
        if method not in ("GET", "DELETE") or not self._engine.handlers.handshake_revisions:
            # 2026-07-28, basic/transports/streamable-http, "Earlier Streamable HTTP Revisions".
            allowed = "GET, POST, DELETE" if self._engine.handlers.handshake_revisions else "POST"
            return _refuse_method(send, f"the endpoint does not accept {method}, only {allowed}", allowed)
        if method == "DELETE":
            return get_delete_request.delete(self._state, headers, client, send)
        if not accepts(headers.get("accept"), EVENT_STREAM):
            reason = "this is the endpoint of an MCP server; send a POST, or a GET that accepts text/event-stream"
            return responses.send_error(send, 406, reason)
        return get_delete_request.get(self._state, headers, client, receive, send, responses.abort_of(scope))

    async def _serve_post(
        self, scope: Scope, headers: Mapping[str, str], client: Client, receive: Receive, send: Send
    ) -> None:
        body = self._read_body(receive, headers, client)  # awaited below, so that only the request keeps it
        request = PostRequest(self._state, headers, client, receive, send, scope, await body)
        token = CALLER.set(Caller(client.owner, self._engine.turns))
        await request.serve()
        CALLER.reset(token)  # its task may serve other requests, unless it fails

    async def _refuse_post(
        self, refused: Refusal, headers: Mapping[str, str], client: Client, receive: Receive, send: Send
    ) -> None:
        # The error has the id of the request, unless the client first asks whether to send it (RFC 9110, 10.1.1).
        body = b"" if "expect" in headers else await self._read_body(receive, headers, client)
        await responses.send_error(send, refused.status, refused.reason, headers=refused.headers, body=body)

    async def _serve_sse(
        self, scope: Scope, headers: Mapping[str, str], client: Client, receive: Receive, send: Send
    ) -> None:
        if scope["method"] != "GET":
            await _refuse_method(send, "this path accepts only GET, which opens the stream", "GET")
        elif not accepts(headers.get("accept"), EVENT_STREAM):
            await responses.send_error(send, 406, f"the Accept header must allow {EVENT_STREAM}")
        else:
            await self._legacy_sse.stream(scope, headers, client, receive, send)

    async def _serve_message(
        self, scope: Scope, headers: Mapping[str, str], client: Client, receive: Receive, send: Send
    ) -> None:
        if scope["method"] != "POST":
            await _refuse_method(send, "this path accepts only POST, which sends a message", "POST")
            return
        refused = refusal(headers.get("content-type"), headers.get("content-encoding"))
        if refused is not None:
            await self._refuse_post(refused, headers, client, receive, send)
            return
        body = await self._read_body(receive, headers, client)
        CALLER.set(Caller(client.owner, self._engine.turns))
        await self._legacy_sse.post(scope, headers, client, body, send)

    def _read_body(self, receive: Receive, headers: Mapping[str, str], client: Client) -> Awaitable[bytes]:
        return read_body(
            receive,
            headers,
            client.owner,
            self._uploads,
            max_bytes=self._engine.limits.max_frame_bytes,
            seconds=self.limits.body_seconds,
            is_on_asyncio=self._state.is_on_asyncio,
        )


def _is_same(path: str, served: str) -> bool:
    return path.rstrip("/") == served.rstrip("/")


async def _refuse_method(send: Send, reason: str, allowed: str) -> None:
    await responses.send_error(send, 405, reason, headers=((b"allow", allowed.encode()),))
