"""The state that all requests of one application share: its server, sessions, open responses and their bounds."""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol

import anyio
from msgspec import UNSET

from mcpgen.runtime.http.server.handler_host import HandlerHost
from mcpgen.runtime.http.server.http_session import HttpSession
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES, TOO_MANY, Ticket, headers_bytes
from mcpgen.runtime.http.server.rate_limit import RateLimiter
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.session_table import SessionTable, random_id
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.message_size import memory_bytes
from mcpgen.runtime.protocol.metrics import has_metrics
from mcpgen.runtime.server.event_store import MemoryEventStore
from mcpgen.runtime.server.ledger import HANDLER_BYTES
from mcpgen.runtime.server.quota import Quota
from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from msgspec import UnsetType

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.responses import Send
    from mcpgen.runtime.http.server.shared_state import SharedState
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.connection import Connection
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.event_store import EventStore
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["AppState"]

_SHUTTING_DOWN: Final = "the server is shutting down"


class ScopeCheck(Protocol):
    """What refuses requests whose access token lacks a scope: `auth.token_check.TokenCheck`."""

    def allows(self, access: Access, scopes: Iterable[str]) -> bool:
        """Return whether *access* has *scopes*, and those that all requests need."""
        ...

    async def refuse_scopes(
        self,
        send: Send,
        access: Access,
        scopes: Iterable[str],
        *,
        request_id: RequestId | UnsetType = UNSET,
        is_sse: bool = False,
    ) -> bool:
        """Refuse a request that needs *scopes*, and return True, if *access* lacks one of them."""
        ...


class AppState:
    """The state that all requests of one application share.

    Args:
        engine: The server.
        limits: Bounds of the application.
        store: Stores the events of sessions' streams; by default in memory.

    Attributes:
        sessions: The sessions of handshake revisions.
        connections: The connections that end with one HTTP request: of stateless requests, and of HTTP+SSE.
        open_responses: The responses that are being sent.
        open_quota: Counts requests and streams, and the handlers that outlive them, for each client.
        unread: Counts what was written for clients that have not read it.
        rates: Limits the calls of each client; None if nothing does.
        small_bytes: No part of a message of this size is too large.
        tokens: Checks the access tokens of requests; None if the server takes none.
        is_shutting_down: Whether new requests are refused.
        is_on_asyncio: Whether the handlers run on asyncio; False before `open`.
        cluster: What is shared with other workers of the server; None if there are none.
    """

    def __init__(self, engine: Engine, limits: HttpLimits, store: EventStore | None) -> None:
        clock = engine.clock
        self.cluster: SharedState | None = None
        self.engine: Engine = engine
        self.limits: HttpLimits = limits
        self.store: EventStore = MemoryEventStore(clock=clock) if store is None else store
        self.sessions: SessionTable = SessionTable(limits, clock)
        self.connections: dict[Connection, None] = {}
        self.open_responses: dict[ResponseBuffer, None] = {}
        self.is_shutting_down: bool = False
        self.tokens: ScopeCheck | None = None
        self.unread: Quota = Quota(limits.max_open, limits.max_unread_bytes)
        rate_limit = limits.rate_limit
        self.rates: RateLimiter | None = None if rate_limit is None else RateLimiter(rate_limit, clock)
        self.open_quota: Quota = Quota(limits.max_open, limits.max_open_bytes)
        self.small_bytes: int = engine.small_bytes - HANDLER_BYTES
        self.is_on_asyncio: bool = False
        self._runs_inline = False
        self._tag_key = secrets.token_bytes(16)
        self._host = HandlerHost(engine, self.sessions.expire)

    async def open(self) -> Spawner:
        """Return the spawner of handlers, once the server's lifespan has started.

        Raises:
            Exception: The exception that the server's lifespan raised.
        """
        if self._host.spawner is not None:
            return self._host.spawner
        spawner = await self._host.open()
        # There, a function gets no context, which says whether errors name the exception.
        self.is_on_asyncio = is_asyncio()
        self._runs_inline = self.is_on_asyncio and not self.engine.debug
        if self.cluster is not None:
            await self.cluster.open(spawner)
        if has_metrics():
            from mcpgen.runtime.http.server.server_metrics import observe  # noqa: PLC0415 (few programs measure)

            observe(self)
        return spawner

    @property
    def spawner(self) -> Spawner | None:
        """What starts handlers; None before `open`, and after the end."""
        return self._host.spawner

    # These two are methods since each request asks: a property takes longer.

    def may_run_inline(self) -> bool:
        """Return whether a handler may start in the task of its request; see `direct_calls`."""
        return self._runs_inline and self._host.spawner is not None

    def has_stopped(self) -> bool:
        """Return whether the event loop or the server's lifespan has ended without a shutdown."""
        return self._host.has_ended and not self.is_shutting_down

    @property
    def has_failed(self) -> bool:
        """Whether the server's lifespan has failed."""
        return self._host.has_failed

    @property
    def has_ended(self) -> bool:
        """Whether no handler can run any more: after a shutdown, a failed lifespan, or the end of the event loop."""
        return self.is_shutting_down or self._host.has_ended

    def disconnect_all(self) -> None:
        """Have the engine forget all connections, which belong to an event loop that has ended."""
        for each in (*self.connections, *self.sessions):
            self.engine.remove(each)

    def unsupported_revision(self, headers: Mapping[str, str]) -> str | None:
        """Return the revision that *headers* name, if the server does not serve it; None otherwise."""
        revision = headers.get(http.REVISION, "").strip()
        return revision if http.REVISION in headers and revision not in self.engine.handlers.served else None

    def tag(self, client: Client) -> str:
        """Return a label for *client* in names of streams, which says nothing about it to others."""
        owner = client.owner.encode("utf-8", "surrogatepass")
        return blake2b(owner, key=self._tag_key, digest_size=8).hexdigest()

    def share_tags(self, key: bytes) -> None:
        """Make the labels with *key*, as the other workers of the server do."""
        self._tag_key = key

    @property
    def problem(self) -> str:
        """Why this process should get no requests now; empty if it should."""
        if self.is_shutting_down:
            return _SHUTTING_DOWN
        return "" if self.cluster is None or self.cluster.is_reachable else "the cluster cannot be reached"

    @property
    def refusal(self) -> str:
        """Why a request gets no ticket."""
        return _SHUTTING_DOWN if self.is_shutting_down else TOO_MANY

    def open_ticket(  # noqa: PLR0913 (what a request keeps)
        self,
        client: Client,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        session: str = "",
        count: int = 1,
        is_stream: bool = False,
    ) -> Ticket | None:
        """Return a ticket for a request, for *count* in one body, or for a stream; None if it is refused."""
        if self.is_shutting_down:
            return None
        ticket = Ticket()
        size = OPEN_REQUEST_BYTES * count + headers_bytes(headers) + client.access_bytes
        if body:
            size += memory_bytes(body, self.engine.handlers.json_costs)
        give_way = ticket.give_way
        ticket.entry = self.open_quota.admit(
            client.owner, size, session=session, count=count, rank=int(is_stream), give_way=give_way
        )
        return None if ticket.entry is None else ticket

    def new_session(self, client: Client, spawner: Spawner) -> HttpSession:
        """Return a session that *client* starts."""
        if self.cluster is not None:
            return self.cluster.new_session(client, spawner)
        return HttpSession(
            self.engine,
            spawner,
            self.store,
            self.limits,
            self.open_quota,
            session_id=random_id(),
            streams_id=f"{self.tag(client)}.{random_id()}",
            client=client,
        )

    def has_scopes(self, client: Client) -> bool:
        """Return whether *client* has the scopes that all requests need."""
        return self.tokens is None or client.access is None or self.tokens.allows(client.access, ())

    def new_response(self, client: Client, on_abort: Callable[[], object] | None) -> ResponseBuffer:
        """Return a new response to *client*."""
        limit = self.engine.limits.max_buffered_bytes
        return ResponseBuffer(limit, unread=self.unread, owner=client.owner, on_abort=on_abort)

    def add_response(self, response: ResponseBuffer) -> None:
        """Note an open response."""
        self.open_responses[response] = None

    def remove_response(self, response: ResponseBuffer) -> None:
        """Note that it is open no longer, and discard what was not sent."""
        del self.open_responses[response]
        response.close()

    async def close(self) -> None:
        """Shut down, and end the server's lifespan.

        Raises:
            Exception: The exception that the server's lifespan raised at its end.
        """
        await self.shutdown()
        if self.cluster is not None:
            await self.cluster.close()
        await self._host.close()

    async def shutdown(self) -> None:
        """Give running handlers the server's grace period, then cancel them and end all streams."""
        if self.is_shutting_down:
            return
        self.is_shutting_down = True
        if self.cluster is not None:
            await self.cluster.start_leaving()
        connections = [*self.connections, *self.sessions]
        for each in connections:
            each.end_of_input()
        with anyio.move_on_after(self.engine.limits.grace_seconds):
            for each in connections:
                await each.wait_finished()
        for session in self.sessions:
            self.sessions.end(session)
        for each in connections:
            each.close()
        for response in self.open_responses:
            response.end()
