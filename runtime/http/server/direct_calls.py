"""The fast path of tool calls over HTTP: the function starts in the task of its HTTP request.

Theory of operation. A task for the handler, a `ResponseBuffer` and a connection are needed for what a handler may do:
wait, report progress, send requests, outlive its request. Most calls are of functions that take no `Context`, so all
that they can do is wait; and most of these do not. Such a function starts at once, in the task that reads its request.
If it returns a result without waiting, that is the answer. If it waits, fails or requires input, the call goes on in
the same task, with the objects that every other call has.

This needs asyncio, whose tasks can be cancelled from outside.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import msgspec
from msgspec import Struct, UnsetType

from mcpgen.runtime.errors import McpgenError, RequestError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.spans import has_opentelemetry
from mcpgen.runtime.server.dispatcher import result_json
from mcpgen.runtime.server.fast_path import text_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange, MethodHandler
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["CALL", "DirectCall", "start_stateless_call", "start_session_call", "finish_call"]

CALL: Final = "tools/call"

_LOG = logging.getLogger("mcpgen.handlers")


class DirectCall:
    """A call whose function has run until it returned, failed or had to wait.

    Attributes:
        handler: How the call is served.
        params: The params of the function.
        peer: The client.
        is_waiting: Whether the function has to wait.
    """

    __slots__ = ("_failure", "_steps", "_value", "_waits_for", "handler", "is_waiting", "params", "peer")

    def __init__(self, handler: MethodHandler, params: Struct, peer: Peer) -> None:
        self.params: Struct = params
        self.peer: Peer = peer
        self.is_waiting: bool = False
        self._value: Any = None
        self._failure: BaseException | None = None
        self._steps: Generator[Any, Any, Any] | None = None
        self._waits_for: Any = None
        self.handler: MethodHandler = handler
        try:
            self._steps = handler.call(params, None).__await__()
            self._waits_for = next(self._steps)
            self.is_waiting = True
        except StopIteration as done:
            self._value = done.value
        except BaseException as failure:  # noqa: BLE001 (raised where the function is awaited)
            self._failure = failure

    def close(self) -> None:
        """Cancel the function where it waits."""
        if self.is_waiting and self._steps is not None:
            self._steps.close()

    def answer(self, request: Request, handlers: HandlerTable) -> bytes | None:
        """Return the answer to *request* if the function has returned a result that can be sent; None otherwise."""
        result = text_json(self.handler, self._value)
        if result is None and type(self._value) is models.CallToolResult:
            try:
                result = result_json(handlers, self.handler, self.peer, self._value)
            except McpgenError:  # it is raised again where it becomes an error response
                return None
        return None if result is None else envelope.encode_response(request.id, result)

    def as_handler(self) -> MethodHandler:
        """Return how the call is served, with a function that goes on from here."""
        return msgspec.structs.replace(self.handler, call=self._finish)

    async def _finish(self, _params: Any, _context: Any) -> Any:  # noqa: ANN401 (as of any handler)
        """Return the result of the function, which has its params already and takes no context."""
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            try:
                raise failure
            finally:
                del failure  # its traceback refers to this frame, and to the one of `__init__`
        if not self.is_waiting:
            return self._value
        return (yield from _with_wakers(self._steps, self._waits_for))


def start_stateless_call(engine: Engine, headers: Mapping[str, str], meta: RequestMeta) -> DirectCall | None:
    """Start a call of a stateless client; return None if it needs the general path, or must be refused there."""
    handlers, revision, name = engine.handlers, meta.revision, meta.name
    if isinstance(revision, UnsetType) or isinstance(name, UnsetType) or revision not in handlers.stateless_revisions:
        return None
    matches_headers = headers.get(http.REVISION) == revision and headers.get(http.METHOD) == CALL
    if not matches_headers or headers.get(http.NAME) != name:  # the name of a tool is never encoded
        return None
    if isinstance(meta.client_capabilities, UnsetType) or handlers.param_headers(name) is not None:
        return None
    try:
        peer = client_peer(revision, meta.client_capabilities, meta.client_info, engine.limits)
    except RequestError:
        return None
    return _start(handlers, meta, peer)


def start_session_call(session: ServerSession, request: Request, meta: RequestMeta) -> DirectCall | None:
    """Start a call in a session; return None as `start_stateless_call` does."""
    peer = session.peer
    if peer is None or not isinstance(meta.revision, UnsetType) or request.id in session.exchanges:
        return None
    if session.overload() is not None:
        return None
    if session.engine.tasks is not None or not session.has_declared(peer.revision, CALL):
        return None
    return _start(session.handlers, meta, peer)


def _start(handlers: HandlerTable, meta: RequestMeta, peer: Peer) -> DirectCall | None:
    handler = handlers.method_handlers(peer.revision).get(CALL)
    found = None if handler is None or handler.fast_path is None else handler.fast_path(meta)
    if found is None or found[0].takes_context or has_opentelemetry():  # `Connection.serve` opens the span
        return None
    return DirectCall(found[0], found[1], peer)


class _Waker(asyncio.Future[None]):
    """Is done when *awaited* is, but never has its exception."""

    def __init__(self, awaited: asyncio.Future[Any]) -> None:
        super().__init__(loop=awaited.get_loop())
        self._awaited = awaited
        awaited.add_done_callback(self._wake)

    def cancel(self, msg: Any = None) -> bool:  # noqa: ANN401 (of `Future`)
        return self._awaited.cancel(msg)

    def _wake(self, _: object) -> None:
        self.set_result(None)


def _with_wakers(steps: Any, waits_for: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401 (only the event loop knows)
    """Do *steps*, of which one waits already, and wait for each future by means of a `_Waker`.

    The event loop throws the exception of a future into the task that waits for it. GeneratorExit would close every
    coroutine of this task, those of the ASGI server too. After a waker, the function gets it from the future itself.
    """
    try:
        while True:
            value = None
            try:
                if asyncio.isfuture(waits_for):
                    waits_for._asyncio_future_blocking = False  # noqa: SLF001 (as a task does that waits for it)
                    yield from _Waker(waits_for)
                else:
                    value = yield waits_for
            except BaseException as error:  # noqa: BLE001 (the event loop throws a cancellation into the function)
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(value)
    except StopIteration as done:
        return done.value


class _RequestTask:
    """The `Handle` of a handler that runs in the task of its HTTP request."""

    def __init__(self) -> None:
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())  # a request always has one
        self._has_ended = False
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancel the handler where it waits next; do nothing if it has ended."""
        if not self._has_ended and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def run(self, handler: Coroutine[Any, Any, None]) -> None:
        """Run *handler* to its end, or until `cancel`."""
        cancelled: asyncio.CancelledError | None = None
        try:
            await handler
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException as error:  # noqa: BLE001 (the boundary: a handler fails alone, whatever it raises)
            _LOG.exception("a handler raised %s", type(error).__name__)
        finally:
            self._has_ended = True
        # Undo the cancellation, even if the function ignored it: the task goes on to send the answer.
        others = self._task.uncancel() if self._is_cancelled else self._task.cancelling()
        try:
            if cancelled is not None and others > 0:
                raise cancelled
        finally:
            cancelled = None  # its traceback refers to this frame, and they would keep the request in a cycle


async def finish_call(  # noqa: PLR0913 (the call, its connection, and two callbacks)
    state: AppState,
    connection: Connection,
    exchange: Exchange,
    call: DirectCall,
    *,
    send_all: Callable[[], Awaitable[None]],
    sent: Callable[[], None],
) -> None:
    """Finish a call that has started in this task, and send its response.

    Args:
        state: The state of the application.
        connection: The connection of the call.
        exchange: The call, for the session.
        call: The call, as it has started.
        send_all: Sends the response.
        sent: Called after that, which may be before the call has ended.
    """
    handle = _RequestTask()
    exchange.handle = handle
    connection.session.register(exchange)
    connection.handler_started(exchange)
    if not call.is_waiting:
        await handle.run(connection.serve(exchange))
        await send_all()
        return
    has_sent = anyio.Event()
    failure: Exception | None = None

    async def send_meanwhile() -> None:
        nonlocal failure
        try:
            await send_all()
        except Exception as error:  # noqa: BLE001 (raised below, in the task of the request)
            failure = error
        finally:
            sent()
            has_sent.set()

    (await state.open()).start(send_meanwhile)
    await handle.run(connection.serve(exchange))
    await has_sent.wait()
    if failure is not None:
        raise failure
