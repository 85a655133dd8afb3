"""The short way of tool calls over HTTP: a function that waits for nothing is answered in its request's task.

Theory of operation. A task for each handler, an outlet and a connection for each request are there for what handlers
may do: wait, tell of progress, ask, outlive their request. Most calls are of functions that take no `Context`, so that
they can do nothing of that but wait; and most of those do not wait. So such a function is begun at once, where its
request is being read. If it returns text, that is the answer. If it has to wait, or fails, or returns something else,
it goes on in the same task, with everything there that a call can need.

Only asyncio's tasks can be cancelled by whoever knows them, so that elsewhere there is no short way.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import msgspec
from msgspec import Struct, UnsetType

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.server.timeouts import ResumedAwaitable
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.capabilities import client_peer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection
    from mcpgen.runtime.server.exchange import Entry, Exchange
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.service import HandlerTable

__all__ = ["CALL", "DirectCall", "start_stateless_call", "start_session_call", "finish_call"]

CALL: Final = "tools/call"

_LOG = logging.getLogger("mcpgen.handlers")

_encode: Final = msgspec.json.Encoder().encode


class DirectCall:
    """A call whose function has been run until it was over, or waited.

    Attributes:
        entry: How it is served; calling it goes on with this one.
        params: What the function takes.
        peer: Who calls.
        text: What it has returned, if it is over and that is text.
        waits: Whether it is not over.
    """

    __slots__ = ("_failure", "_steps", "_value", "_waits_for", "entry", "params", "peer", "text", "waits")

    def __init__(self, entry: Entry, params: Struct, peer: Peer) -> None:
        self.params: Struct = params
        self.peer: Peer = peer
        self.text: str | None = None
        self.waits: bool = False
        self._value: Any = None
        self._failure: BaseException | None = None
        self._steps: Generator[Any, Any, Any] | None = None
        self._waits_for: Any = None
        self.entry: Entry = entry
        try:
            self._steps = entry.call(params, None).__await__()
            self._waits_for = next(self._steps)
            self.waits = True
        except StopIteration as over:
            self._value = over.value
            self.text = over.value if type(over.value) is str else None
        except BaseException as failure:  # noqa: BLE001 (raised where the function is awaited)
            self._failure = failure

    def answer(self, request: Request) -> bytes | None:
        """Return the answer to *request*, if this was all."""
        frame = self.entry.frame
        if self.text is None or frame is None:
            return None
        return envelope.encode_response(request.id, frame[0] + _encode(self.text) + frame[1])

    def as_entry(self) -> Entry:
        """Return how the call is served that has begun."""
        return msgspec.structs.replace(self.entry, call=self._go_on)

    async def _go_on(self, params: Any, context: Any) -> Any:  # noqa: ANN401 (as of any handler)
        """Return what the function returns; it gets no other params, and no context."""
        del params, context
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._failure is not None:
            raise self._failure
        if not self.waits:
            return self._value
        return (yield from ResumedAwaitable[Any](self._steps, self._waits_for).__await__())


def start_stateless_call(service: HandlerTable, headers: Mapping[str, str], meta: RequestMeta) -> DirectCall | None:
    """Begin a call of a stateless client; None if it has to take the long way, which finds out what is wrong."""
    revision, name = meta.revision, meta.name
    if isinstance(revision, UnsetType) or isinstance(name, UnsetType) or revision not in service.stateless:
        return None
    says_the_same = headers.get(http.REVISION) == revision and headers.get(http.METHOD) == CALL
    if not says_the_same or headers.get(http.NAME) != name or not http.is_plain(name):
        return None
    if isinstance(meta.client_capabilities, UnsetType) or service.mirror(name) is not None:
        return None
    try:
        peer = client_peer(revision, meta.client_capabilities, meta.client_info)
    except RequestError:
        return None
    return _begin(service, meta, peer)


def start_session_call(session: ServerSession, request: Request, meta: RequestMeta) -> DirectCall | None:
    """Begin a call within a session; None likewise."""
    peer = session.peer
    if peer is None or not isinstance(meta.revision, UnsetType) or session.is_busy or request.id in session.exchanges:
        return None
    if session.service.tasking is not None or not session.has_declared(peer.revision, CALL):
        return None
    return _begin(session.service, meta, peer)


def _begin(service: HandlerTable, meta: RequestMeta, peer: Peer) -> DirectCall | None:
    long = service.entries(peer.revision).get(CALL)
    found = None if long is None or long.short is None else long.short(meta)
    if found is None or not found[0].is_alone:
        return None
    return DirectCall(found[0], found[1], peer)


class _RequestTask:
    """A handle of what runs in the task of its request."""

    def __init__(self) -> None:
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())  # a request is always served by one
        self._is_over = False
        self._is_cancelled = False

    def cancel(self) -> None:
        """Have it cancelled where it waits next; nothing happens if it is over."""
        if not self._is_over and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def run(self, handler: Coroutine[Any, Any, None]) -> None:
        """Run *handler* to its end, or until it is cancelled here."""
        cancelled: asyncio.CancelledError | None = None
        try:
            await handler
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:  # noqa: BLE001 (the boundary: a handler fails alone, whatever it raises)
            _LOG.exception("a handler failed")
        finally:
            self._is_over = True
        # Taken back even if the function did not heed it: the task goes on to send an answer.
        others = self._task.uncancel() if self._is_cancelled else self._task.cancelling()
        if cancelled is not None and others > 0:
            raise cancelled


async def finish_call(  # noqa: PLR0913 (what is served, and what sends what comes out of it)
    desk: AppState,
    connection: Connection,
    exchange: Exchange,
    begun: DirectCall,
    *,
    reply: Callable[[], Awaitable[None]],
    end: Callable[[], None] | None = None,
) -> None:
    """Go on with a call that has begun in this task.

    Args:
        desk: Of the application.
        connection: Where it is served.
        exchange: The call.
        begun: It, too.
        reply: Sends what comes out.
        end: Called when that has ended, before the call may have.
    """
    handle = _RequestTask()
    exchange.handle = handle
    connection.session.begin(exchange)
    connection.enter(exchange)
    if not begun.waits:
        await handle.run(connection.serve(exchange))
        await reply()
        return
    over = anyio.Event()
    failure: Exception | None = None

    async def reply_meanwhile() -> None:
        nonlocal failure
        try:
            await reply()
        except Exception as error:  # noqa: BLE001 (raised below, in the task of the request)
            failure = error
        finally:
            if end is not None:
                end()
            over.set()

    (await desk.open()).start(reply_meanwhile)
    await handle.run(connection.serve(exchange))
    await over.wait()
    if failure is not None:
        raise failure
