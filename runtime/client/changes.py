"""Listening for changes, in the same way in every revision: `Changes` is what `Client.listen` returns.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import anyio
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled

from mcpgen.runtime.client.declared_methods import unsupported
from mcpgen.runtime.client.extensions import check_result_type
from mcpgen.runtime.client.pending_request import fresh_error
from mcpgen.runtime.client.subscriptions import Change
from mcpgen.runtime.errors import McpgenError, RequestLost, RequestRefused, RequestTimedOut, UsageError
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter, supported_filter
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.pending_request import PendingRequest
    from mcpgen.runtime.client.subscriptions import ChangeStream
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["Changes", "LISTEN", "OnBreak", "SUBSCRIBE", "UNSUBSCRIBE"]

LISTEN: Final = "subscriptions/listen"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"

T = TypeVar("T")

_LOG = logging.getLogger("mcpgen.client")

# A stream that breaks again and again is opened less and less often: at last about every 30 seconds.
_FIRST_DELAY_SECONDS: Final = 0.5
_MAX_DOUBLINGS: Final = 6
_MAX_ATTEMPTS: Final = 5

OnBreak: TypeAlias = "Callable[[Changes], None] | None"
"""Called when the stream of a stateless server breaks; for a caller that does not iterate."""


class Changes:
    """The changes that a server reports, within an ``async with`` block. One task iterates over them.

    The iteration ends when the server ends the stream. It raises `TransportClosed` when the connection is lost. If only
    the stream of a stateless server breaks, the iteration opens it again, and reports what may have changed meanwhile.
    After a restart of the server, it is opened again at once, also if nothing iterates just then. A caller with
    `on_break` or `event` opens it itself.

    Args:
        session: The session with the server.
        wanted: The changes to listen for.
        subscribe: Sends `resources/subscribe` to a server of a handshake revision.
        extensions: The members of the filter that belong to extensions.
        on_break: Called when the stream of a stateless server breaks; for a caller that never iterates.

    Attributes:
        event: None; a caller that never iterates assigns an event before the block. It is set at each change, and at
            the end of the stream, which is then not opened again.
    """

    def __init__(
        self,
        session: ClientSession,
        wanted: SubscriptionFilter,
        subscribe: Callable[[str], Awaitable[object]],
        extensions: Mapping[str, Any] | None = None,
        *,
        on_break: OnBreak = None,
    ) -> None:
        self._session = session
        self._wanted = wanted
        self._subscribe = subscribe
        self._extensions: Mapping[str, Any] = extensions or {}
        self._on_break = on_break
        self.event: AutoResetEvent | None = None
        self._opened: ChangeStream | None = None
        self._request: PendingRequest | None = None
        self._subscribed: list[str] = []
        self._is_awaited = False
        self._renewal: tuple[anyio.CancelScope, anyio.Event] | None = None
        self._breaks = 0  # how often the stream was opened again since the server last reported a change

    def __repr__(self) -> str:
        state = "not opened" if self._opened is None else "closed" if self.is_closed else "open"
        return f"<Changes of {msgspec.to_builtins(self._wanted)}, {state}>"

    @property
    def is_closed(self) -> bool:
        """Whether no more changes will come."""
        return self._stream.is_closed or (self._request is not None and self._request.is_done)

    @property
    def stream_id(self) -> RequestId | None:
        """The id of the stream of a stateless server."""
        return None if self._request is None else self._request.id

    @property
    def acknowledged(self) -> SubscriptionFilter:
        """The part of the requested changes that the server agreed to report."""
        return self._stream.acknowledged or SubscriptionFilter()

    @property
    def accepted(self) -> Mapping[str, Any]:
        """The accepted filter as the server wrote it, with the keys of extensions; empty for a handshake revision."""
        return self._stream.accepted

    async def __aenter__(self) -> Self:
        """Start to listen. Changes from now on are reported.

        Raises:
            RequestRefused: The server refused the subscription.
            RequestTimedOut: The server did not acknowledge it in time.
            TransportClosed: The connection is closed.
            UnsupportedByPeer: The server has not declared that it reports any of these changes, or changes of
                resources. Nothing was sent.
        """
        session = self._session
        if self._opened is not None:
            raise UsageError("this listen(…) was entered before; call listen(…) again for each block")
        if session.failure is not None:
            raise fresh_error(session.failure)
        if session.server is None:
            raise UsageError("the client is not connected")
        server = session.server
        supported = supported_filter(self._wanted, server.declared, server.revision)
        lacks_resources = self._wanted.resource_subscriptions and not supported.resource_subscriptions
        is_empty = supported == SubscriptionFilter() and not self._extensions
        if is_empty or lacks_resources or (self._extensions and server.era == "handshake"):
            what = LISTEN if server.era == "stateless" else SUBSCRIBE if lacks_resources else "listen(…)"
            changes = "updates of resources" if lacks_resources else "these changes"
            raise unsupported(server, what, f"the server has not declared that it reports {changes}")
        self._opened = self._new_stream(supported)
        try:
            if server.era == "stateless":
                await self._open_stream(self._opened, server.revision)
                if self._on_break is None and self.event is None:
                    session.subscriptions.renewals[self._renew_unread] = None
            else:
                await self._share_session(self._opened)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening."""
        self._leave()

    def __aiter__(self) -> Self:
        """Iterate over the changes, oldest first."""
        return self

    async def __anext__(self) -> Change:
        """Return the next change. Equal changes that wait are reported once.

        Raises:
            TransportClosed: The connection is lost.
            RequestRefused: The server ended the stream with an error.
            InvalidPayload: The server ended the stream with a result of an unknown type.
            UsageError: Another task is waiting for a change.
        """
        while self._renewal is not None:
            await self._renewal[1].wait()
        stream = self._stream
        while True:
            change = stream.take()
            if change is not None:
                return change
            if stream.failure is not None:
                if not _is_broken(stream.failure):
                    raise fresh_error(stream.failure)
                stream = await self._alone(self._open_again(stream.failure))
                continue
            if self._request is not None and self._request.is_done:
                response = self._request.response()
                if isinstance(response, ErrorResponse):
                    revision = self._session.revision or NEWEST
                    raise RequestRefused(
                        LISTEN, codec(NEWEST, revision, "client").outgoing_request(LISTEN).error(response)
                    )
                if self._session.server is not None:
                    check_result_type(response, LISTEN, self._session.server)
                raise StopAsyncIteration
            if stream.is_closed:
                raise StopAsyncIteration
            # anyio does not cancel a task whose future is done. A server that sends changes without end sets it again
            # in each turn of the event loop.
            await checkpoint_if_cancelled()
            await self._alone(stream.event.wait())

    async def renew(self) -> list[Change]:
        """Open the stream again if it has broken. This is for a caller that does not iterate.

        Returns:
            What may have changed meanwhile.

        Raises:
            RequestLost: It cannot be opened.
        """
        failure = self._stream.failure
        if failure is None or not _is_broken(failure) or self._is_awaited:
            return []
        await self._alone(self._open_again(failure))
        return [*_all_changes(self.acknowledged)]

    async def _renew_unread(self) -> None:
        """Open the stream again after a restart of the server, also if the program does not iterate now.

        Spec:
            2026-07-28, basic/patterns/subscriptions, "Graceful Closure".
        """
        scope, ended = self._renewal = anyio.CancelScope(), anyio.Event()
        self._breaks = 0  # a restart is not the fault of the stream
        try:
            with scope:
                await self.renew()
        except McpgenError as failure:
            _LOG.info("the stream of changes was not opened again; the next read tries again: %s", failure)
        finally:
            self._renewal = None
            ended.set()
        if scope.cancel_called:
            self._leave()  # once more: the request may have been sent after the first time

    async def _alone(self, waiting: Coroutine[Any, Any, T]) -> T:
        """Return what *waiting* returns; only one task may wait.

        Raises:
            UsageError: Another task is waiting.
        """
        if self._is_awaited:
            waiting.close()
            raise UsageError(
                "another asyncio or trio task, or another thread, is waiting for a change; give each of them a "
                "listen(…) of its own"
            )
        self._is_awaited = True
        try:
            return await waiting
        finally:
            self._is_awaited = False

    @property
    def _stream(self) -> ChangeStream:
        if self._opened is None:
            raise UsageError(
                "listen(…) was not entered; write `async with client.listen(…) as changes`, or `with` for a blocking "
                "client"
            )
        return self._opened

    def _new_stream(self, wanted: SubscriptionFilter) -> ChangeStream:
        return self._session.subscriptions.new_stream(wanted, self.event or auto_reset_event(), self._failed)

    def _failed(self, failure: Exception) -> None:
        opened = self._opened
        # `_open_stream` raises the failure of a stream that is not acknowledged.
        is_open = opened is not None and opened.failure is failure and opened.acknowledged is not None
        if self._on_break is not None and is_open and _is_broken(failure):
            self._on_break(self)

    async def _open_stream(self, stream: ChangeStream, revision: str) -> None:
        """Open a stream of a stateless server, and wait until the server acknowledges it."""
        session = self._session
        ask = codec(NEWEST, revision, "client").outgoing_request(LISTEN)
        params = {
            "_meta": session.features.meta(NEWEST),
            "notifications": {**msgspec.to_builtins(stream.wanted), **self._extensions},
        }
        peer_meta = session.features.meta(revision) if revision != NEWEST else None
        encoded = ask.params(params, peer_meta)
        stream.note_request(encoded)
        self._request = session.send(LISTEN, encoded, stream=stream)
        seconds = session.limits.call_seconds
        with anyio.move_on_after(seconds) as scope:
            while stream.acknowledged is None and not stream.is_closed and not self._request.is_done:
                await checkpoint_if_cancelled()  # as in `__anext__`
                await stream.event.wait()
        if scope.cancelled_caught:
            raise RequestTimedOut(LISTEN, seconds)
        if stream.failure is not None:
            raise fresh_error(stream.failure)
        if self._request.is_done and isinstance(response := self._request.response(), ErrorResponse):
            raise RequestRefused(LISTEN, ask.error(response))

    async def _open_again(self, failure: Exception) -> ChangeStream:
        """Open the stream of a stateless server again after *failure*, and queue what it may not have reported.

        Raises:
            RequestLost: It cannot be opened.

        Spec:
            2026-07-28, basic/patterns, "Subscribe and Notify": if the channel is lost, the client issues the request
            again; basic/patterns/subscriptions, "Graceful Closure".
        """
        import random  # noqa: PLC0415 (of use here only)

        session, wanted = self._session, self._stream.wanted
        if self._stream.has_reported:
            self._breaks = 0
        for attempt in range(_MAX_ATTEMPTS):
            delay = _FIRST_DELAY_SECONDS * 2 ** min(self._breaks, _MAX_DOUBLINGS) if self._breaks else 0
            self._breaks += 1
            _LOG.info("the stream of changes is opened again: %s", failure)
            await anyio.sleep(delay * random.uniform(0.5, 1))  # noqa: S311 (clients of one server must not return at once)
            stream = self._new_stream(wanted)
            try:
                await self._open_stream(stream, session.revision or NEWEST)
            except RequestLost as lost:
                if attempt == _MAX_ATTEMPTS - 1 or not lost.is_temporary:
                    raise
                failure = lost
            else:
                older, self._opened = self._stream, stream
                while (unread := older.take()) is not None:
                    stream.put(unread)
                for each in _all_changes(self.acknowledged):
                    session.changed(each)
                    stream.put(each)
                break
        return self._stream

    async def _share_session(self, stream: ChangeStream) -> None:
        """Listen to the session of a handshake server, and subscribe to the resources."""
        subscriptions = self._session.subscriptions
        stream.acknowledged = stream.wanted
        subscriptions.shared[stream] = None
        for uri in stream.wanted.resource_subscriptions:
            self._subscribed.append(uri)
            subscriptions.uri_counts[uri] = subscriptions.uri_counts.get(uri, 0) + 1
            try:
                await self._subscribe(uri)
            except RequestRefused:
                self._release(self._subscribed.pop())
                raise

    def _release(self, uri: str) -> bool:
        """Count one listener less for *uri*. Return whether it was the last."""
        counts = self._session.subscriptions.uri_counts
        counts[uri] -= 1
        if counts[uri]:
            return False
        del counts[uri]
        return True

    def _leave(self) -> None:
        session, stream = self._session, self._opened
        if stream is None:
            return
        stream.close()
        if self._renewal is not None:
            self._renewal[0].cancel()
        session.subscriptions.renewals.pop(self._renew_unread, None)
        session.subscriptions.shared.pop(stream, None)
        if self._request is not None:
            session.subscriptions.streams.pop(self._request.id, None)
            if not self._request.is_done:
                session.cancel(self._request, "the client stopped listening")
        for uri in self._subscribed:
            if self._release(uri):
                # The response is not awaited: this task may be cancelled, and the server may be slow.
                session.forget(session.send(UNSUBSCRIBE, msgspec.json.encode({"uri": uri})))
        self._subscribed.clear()


def _is_broken(failure: Exception) -> bool:
    """Whether only a stream has ended, and the connection may still be used."""
    return isinstance(failure, RequestLost) and not failure.is_general


def _all_changes(accepted: SubscriptionFilter) -> Iterator[Change]:
    """Return the changes that a stream can report of which *accepted* was acknowledged."""
    if accepted.tools_list_changed:
        yield Change("tools")
    if accepted.prompts_list_changed:
        yield Change("prompts")
    if accepted.resources_list_changed:
        yield Change("resources")
    for each in accepted.resource_subscriptions:
        yield Change("resource", each)
