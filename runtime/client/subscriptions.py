"""What a client wants to hear of, and what it has heard and not yet looked at.

Theory of operation. Whoever listens has a `ChangeStream`: what is wanted, and a line of changes that wait to be
taken. A
change that waits already is not put there twice, so that a flood of equal ones is one. A server without sessions tells
each stream by its id; one with a session tells them all at once, and each takes what it wants.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.

Hearing of changes, the same way in both eras: a block in which they come, one after the other.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio
import msgspec
from msgspec import Struct

from mcpgen.runtime.errors import RequestRefused, RequestTimedOut, TransportClosed, UnsupportedByPeer, UsageError
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.protocol.subscriptions import LIST_CHANGES, RESOURCE_UPDATED, SubscriptionFilter, supported_filter
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.pending_request import PendingRequest
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["Change", "Changes", "KINDS", "Kind", "LISTEN", "Subscriptions", "SUBSCRIBE", "ChangeStream", "UNSUBSCRIBE"]

Kind: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

KINDS: Final[dict[str, Kind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    RESOURCE_UPDATED: "resource",
}

_LOG = logging.getLogger("mcpgen.session")


class Change(Struct, frozen=True):
    """Something at the server is not what it was.

    Attributes:
        kind: What: the list of ``tools``, of ``prompts`` or of ``resources``, or one ``resource``.
        uri: Of the resource; None for a list.
    """

    kind: Kind
    uri: str | None = None


class ChangeStream:
    """What one listener wants to hear, and what waits for it.

    Attributes:
        wanted: What it asked for.
        honoured: What of that its server agreed to tell; None until it did.
        waker: Woken when there is something to take, or the state of the stream has changed.
        is_over: Whether nothing more will come.
        failure: Why that is, if it is a failure.
    """

    def __init__(self, wanted: SubscriptionFilter, auto_reset_event: AutoResetEvent, most: int) -> None:
        self.wanted: SubscriptionFilter = wanted
        self.honoured: SubscriptionFilter | None = None
        self.waker: AutoResetEvent = auto_reset_event
        self.is_over: bool = False
        self.failure: Exception | None = None
        self._most = most
        self._has_dropped = False
        self._waiting: dict[Change, None] = {}

    def put(self, change: Change) -> None:
        """Add *change* to what waits, unless it waits already, or too much does."""
        if len(self._waiting) >= self._most and change not in self._waiting:
            if not self._has_dropped:  # once: a server may tell of many
                self._has_dropped = True
                _LOG.warning("changes are dropped: nobody looks at those that were told before")
            return
        self._waiting[change] = None
        self.waker.wake()

    def take(self) -> Change | None:
        """Return the oldest change that waits; None if there is none."""
        if not self._waiting:
            return None
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change

    def end(self, failure: Exception | None = None) -> None:
        """Take it that nothing more will come."""
        if not self.is_over:
            self.is_over = True
            self.failure = failure
            self.waker.wake()


class Subscriptions:
    """All that one connection wants to hear of.

    Attributes:
        streams: Those of a server without sessions, by the id of the request that opened each.
        sharing: Those that share the session.
        uris: How many of those watch each resource.
    """

    def __init__(self, most: int) -> None:
        self.streams: dict[RequestId, ChangeStream] = {}
        self.sharing: dict[ChangeStream, None] = {}
        self.uris: dict[str, int] = {}
        self._most = most

    def stream(self, wanted: SubscriptionFilter, auto_reset_event: AutoResetEvent) -> ChangeStream:
        """Return a new stream."""
        return ChangeStream(wanted, auto_reset_event, self._most)

    def acknowledge(self, stream: RequestId, agreed: dict[str, Any]) -> None:
        """Note what the server agreed to tell on *stream*."""
        found = self.streams[stream]
        found.honoured = msgspec.convert(agreed, SubscriptionFilter)
        found.waker.wake()

    def tell(self, change: Change, method: str, stream: RequestId | None) -> bool:
        """Hand *change* to whoever wants to hear of it; return whether its server may tell it: a stream is for some."""
        if stream is not None and not _wants(self.streams[stream].wanted, change, method):
            return False
        for each in self.sharing if stream is None else [self.streams[stream]]:
            if _wants(each.wanted, change, method):
                each.put(change)
        return True

    def end(self, stream: RequestId) -> None:
        """Take it that the server has ended *stream*."""
        found = self.streams.pop(stream, None)
        if found is not None:
            found.end()

    def fail(self, failure: Exception) -> None:
        """End all streams: the connection is lost."""
        for each in [*self.streams.values(), *self.sharing]:
            each.end(failure)
        self.streams.clear()
        self.sharing.clear()


def _wants(wanted: SubscriptionFilter, change: Change, method: str) -> bool:
    if change.uri is None:
        return bool(getattr(wanted, LIST_CHANGES[method]))
    # 2025-11-25, server/resources, "Subscriptions", and the schema: it may be a part of the resource that is watched.
    uri = change.uri
    return any(uri == each or uri.startswith(each.rstrip("/") + "/") for each in wanted.resource_subscriptions)


LISTEN = "subscriptions/listen"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"


class Changes:
    """The changes that a server tells of, within an ``async with`` block; one task iterates.

    The iteration ends when the server ends the stream. It raises `TransportClosed` when the connection is lost.

    Args:
        session: Of the server.
        wanted: What to hear of.
        subscribe: Sends `resources/subscribe` to a server with sessions.
    """

    def __init__(
        self, session: ClientSession, wanted: SubscriptionFilter, subscribe: Callable[[str], Awaitable[object]]
    ) -> None:
        self._session = session
        self._wanted = wanted
        self._subscribe = subscribe
        self._stream: ChangeStream | None = None
        self._call: PendingRequest | None = None
        self._subscribed: list[str] = []
        self._is_awaited = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be told."""
        return self._open.is_over or (self._call is not None and self._call.is_settled)

    @property
    def honoured(self) -> SubscriptionFilter:
        """What of all that was asked for the server tells: what is missing, it cannot."""
        return self._open.honoured or SubscriptionFilter()

    async def __aenter__(self) -> Self:
        """Begin to listen; what happens from now on is told.

        Raises:
            RequestRefused: The server does not want that.
            RequestTimedOut: It does not say whether it does.
            TransportClosed: It is gone.
            UnsupportedByPeer: The server has not declared that it tells of any of that, or of resources; nothing was
                sent.
        """
        session = self._session
        if self._stream is not None:
            raise UsageError("each block needs a listen(…) of its own")
        if session.failure is not None:
            raise _again(session.failure)
        if session.server is None:
            raise UsageError("the client is not connected")
        server = session.server
        can = supported_filter(self._wanted, server.declared, server.revision)
        if can == SubscriptionFilter() or (self._wanted.resource_subscriptions and not can.resource_subscriptions):
            what = SUBSCRIBE if self._wanted.resource_subscriptions else LISTEN
            raise UnsupportedByPeer(
                revision=server.revision, what=what, reason="it has not declared that it tells this"
            )
        self._stream = session.listening.stream(can, auto_reset_event())
        if server.era == "stateless":
            await self._open_stream(self._stream, server.revision)
        else:
            await self._share_session(self._stream)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Listen no more."""
        self._leave()

    def __aiter__(self) -> Self:
        """Iterate over the changes, those first that came first."""
        return self

    async def __anext__(self) -> Change:
        """Return the next change; several equal ones that wait are one.

        Raises:
            TransportClosed: The connection is lost.
            RequestRefused: The server ended the stream with an error.
            UsageError: Another task waits for one.
        """
        stream = self._open
        while True:
            change = stream.take()
            if change is not None:
                return change
            if stream.failure is not None:
                raise _again(stream.failure)
            if self._call is not None and self._call.is_settled:
                answer = self._call.outcome()
                if isinstance(answer, ErrorResponse):
                    raise RequestRefused(LISTEN, codec(NEWEST, self._revision, "client").ask(LISTEN).error(answer))
                raise StopAsyncIteration
            if stream.is_over:
                raise StopAsyncIteration
            if self._is_awaited:
                raise UsageError("another task waits for the next change; each needs a listen(…) of its own")
            self._is_awaited = True
            try:
                await stream.waker.wait()
            finally:
                self._is_awaited = False

    @property
    def _open(self) -> ChangeStream:
        if self._stream is None:
            raise UsageError("changes come within a block: async with client.listen(…) as changes")
        return self._stream

    @property
    def _revision(self) -> str:
        return self._session.revision or NEWEST

    async def _open_stream(self, stream: ChangeStream, revision: str) -> None:
        session = self._session
        ask = codec(NEWEST, revision, "client").ask(LISTEN)
        wanted = {"_meta": session.offering.meta(NEWEST), "notifications": msgspec.to_builtins(stream.wanted)}
        peer = session.offering.meta(revision) if revision != NEWEST else None
        self._call = session.send(LISTEN, ask.params(wanted, peer), stream=stream)
        seconds = session.limits.call_seconds
        failure: Exception | None = None
        try:
            with anyio.move_on_after(seconds) as scope:
                while stream.honoured is None and not stream.is_over and not self._call.is_settled:
                    await stream.waker.wait()
        except BaseException:
            self._leave()
            raise
        if scope.cancelled_caught:
            failure = RequestTimedOut(LISTEN, seconds)
        elif stream.failure is not None:
            failure = _again(stream.failure)
        elif self._call.is_settled:
            answer = self._call.outcome()
            failure = RequestRefused(LISTEN, ask.error(answer)) if isinstance(answer, ErrorResponse) else None
        if failure is not None:
            self._leave()
            raise failure

    async def _share_session(self, stream: ChangeStream) -> None:
        listening = self._session.listening
        stream.honoured = stream.wanted
        listening.sharing[stream] = None
        try:
            for uri in stream.wanted.resource_subscriptions:
                self._subscribed.append(uri)
                listening.uris[uri] = listening.uris.get(uri, 0) + 1
                await self._subscribe(uri)
        except RequestRefused:
            self._forget(self._subscribed.pop())
            self._leave()
            raise
        except BaseException:
            self._leave()
            raise

    def _forget(self, uri: str) -> bool:
        """Note that one listener fewer watches *uri*; return whether it was the last."""
        uris = self._session.listening.uris
        uris[uri] -= 1
        if uris[uri]:
            return False
        del uris[uri]
        return True

    def _leave(self) -> None:
        session, stream = self._session, self._stream
        if stream is None:
            return
        stream.end()
        session.listening.sharing.pop(stream, None)
        if self._call is not None:
            session.listening.streams.pop(self._call.id, None)
            if not self._call.is_settled:
                session.cancel(self._call, "nobody listens any more")
        for uri in self._subscribed:
            if self._forget(uri):
                # Nobody waits for the answer: whoever leaves may be cancelled, and a server need not be quick.
                session.drop(session.send(UNSUBSCRIBE, msgspec.json.encode({"uri": uri})))
        self._subscribed.clear()


def _again(failure: Exception) -> Exception:
    return failure.again() if isinstance(failure, TransportClosed) else failure
