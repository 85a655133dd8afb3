"""Hearing of changes, the same way in both eras: a block in which they come, one after the other.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import msgspec

from mcpgen.runtime.clients.waking import waker
from mcpgen.runtime.engine.listening import Filter, honoured
from mcpgen.runtime.errors import RequestRefused, RequestTimedOut, TransportClosed, UnsupportedByPeer, UsageError
from mcpgen.runtime.newest import NEWEST
from mcpgen.runtime.peers.codec import codec
from mcpgen.runtime.wire.messages import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.clients.calls import Call
    from mcpgen.runtime.clients.changes import Change, Stream
    from mcpgen.runtime.clients.session import ClientSession

__all__ = ["LISTEN", "SUBSCRIBE", "UNSUBSCRIBE", "Changes"]

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

    def __init__(self, session: ClientSession, wanted: Filter, subscribe: Callable[[str], Awaitable[object]]) -> None:
        self._session = session
        self._wanted = wanted
        self._subscribe = subscribe
        self._stream: Stream | None = None
        self._call: Call | None = None
        self._subscribed: list[str] = []
        self._is_awaited = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be told."""
        return self._open.is_over or (self._call is not None and self._call.is_settled)

    @property
    def honoured(self) -> Filter:
        """What of all that was asked for the server tells: what is missing, it cannot."""
        return self._open.honoured or Filter()

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
        can = honoured(self._wanted, server.declared, server.revision)
        if can == Filter() or (self._wanted.resource_subscriptions and not can.resource_subscriptions):
            what = SUBSCRIBE if self._wanted.resource_subscriptions else LISTEN
            raise UnsupportedByPeer(
                revision=server.revision, what=what, reason="it has not declared that it tells this"
            )
        self._stream = session.listening.stream(can, waker())
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
    def _open(self) -> Stream:
        if self._stream is None:
            raise UsageError("changes come within a block: async with client.listen(…) as changes")
        return self._stream

    @property
    def _revision(self) -> str:
        return self._session.revision or NEWEST

    async def _open_stream(self, stream: Stream, revision: str) -> None:
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

    async def _share_session(self, stream: Stream) -> None:
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
