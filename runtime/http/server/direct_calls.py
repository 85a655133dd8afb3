"""The fast path of tool calls over HTTP: the function starts in the task of its HTTP request.

Theory of operation. A task for the handler, a stream and a ticket are needed for what a handler may do: wait, report
progress, send requests, outlive its request. Most functions do none of that. So a function starts at once, in the task
that reads its request. If it returns a result without waiting, that is the answer. If it waits, fails or requires
input, the call goes on in the same task, with the objects that every other call has.

A function that takes a `Context` starts so only if it has no ``await``: it then cannot wait, and cannot send anything,
since all that sends has to be awaited. Any other may send something at once, and goes on when its client disconnects.
So it gets a stream and a task of its own first.

This needs asyncio, whose tasks can be cancelled from outside.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import msgspec
from msgspec import Struct, UnsetType

from mcpgen.runtime.errors import McpgenError, RequestError
from mcpgen.runtime.http.server.first_step import Waiting, first_step
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.spans import has_opentelemetry
from mcpgen.runtime.server.context import Context
from mcpgen.runtime.server.dispatcher import result_json
from mcpgen.runtime.server.exchange import Exchange, OpenRequest
from mcpgen.runtime.server.fast_path import plain_json
from mcpgen.runtime.server.functions.results import StructuredJson
from mcpgen.runtime.transports.spawner import cancel_task
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import MethodHandler
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["CALL", "DirectCall", "finish_call", "open_request", "start_session_call", "start_stateless_call"]

CALL: Final = "tools/call"

_LOG = traceback_logger("mcpgen.handlers")


class DirectCall:
    """A call whose function has run until it returned, failed or had to wait.

    Attributes:
        handler: How the call is served.
        params: The params of the function.
        peer: The client.
        exchange: What the `Context` of the function is about; None if it takes none.
        is_waiting: Whether the function has to wait.
    """

    __slots__ = ("_failure", "_outcome", "exchange", "handler", "is_waiting", "params", "peer")

    def __init__(
        self,
        handler: MethodHandler,
        params: Struct,
        peer: Peer,
        context: Context[Any] | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self.handler: MethodHandler = handler
        self.params: Struct = params
        self.peer: Peer = peer
        self.exchange: Exchange | None = exchange
        self._failure: BaseException | None = None
        self._outcome: Any = None  # the result, or the rest of the call
        try:
            self._outcome = first_step(handler.call(params, context))
        except BaseException as failure:  # noqa: BLE001 (raised where the function is awaited)
            self._failure = failure
        self.is_waiting: bool = type(self._outcome) is Waiting

    def close(self) -> None:
        """Cancel the function where it waits."""
        if self.is_waiting:
            try:
                self._outcome.close()
            except BaseException:  # noqa: BLE001 (of a function whose request is refused)
                _LOG.exception("a handler raised an exception when its request was refused")
        self._failure = None  # its traceback refers to this object

    def answer(self, request: Request, handlers: HandlerTable) -> bytes | None:
        """Return the answer to *request* if the function has returned a result that can be sent; None otherwise."""
        value = self._outcome
        result = plain_json(self.handler, value)
        if result is None:
            if type(value) is StructuredJson:
                value = value.to_result()
            if type(value) is not models.CallToolResult:
                return None
            try:
                result = result_json(handlers, self.handler, self.peer, value)
            except McpgenError:  # it is raised again where it becomes an error response
                return None
        if self.exchange is not None:
            self.exchange.has_ended = True  # a task that the function has started may still have the context
        return envelope.encode_response(request.id, result)

    def as_handler(self) -> MethodHandler:
        """Return how the call is served, with a function that goes on from here."""
        return msgspec.structs.replace(self.handler, call=self._finish, has_begun=self.is_waiting)

    async def _finish(self, _params: Any, _context: Any) -> Any:  # noqa: ANN401 (as of any handler)
        """Return the result of the function, which has its params already and takes no context."""
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        if self.is_waiting:
            steps: Generator[Any, Any, Any] = self._outcome.__await__()
            return (yield from steps)
        if self._failure is None:
            return self._outcome
        failure, self._failure = self._failure, None
        try:
            raise failure
        finally:
            del failure  # its traceback refers to this frame, and to the one of `__init__`


def start_stateless_call(
    engine: Engine,
    headers: Mapping[str, str],
    request: Request,
    meta: RequestMeta,
    open_session: Callable[[], ServerSession],
) -> DirectCall | None:
    """Start a call of a stateless client; return None if it needs the general path, or must be refused there.

    *open_session* returns the session of the request, for a function that takes a `Context`.
    """
    handlers, revision, name = engine.handlers, meta.revision, meta.name
    if isinstance(revision, UnsetType) or isinstance(name, UnsetType) or revision not in handlers.stateless_revisions:
        return None
    matches_headers = headers.get(http.REVISION) == revision and headers.get(http.METHOD) == CALL
    if not matches_headers or headers.get(http.NAME) != name:  # the name of a tool is never encoded
        return None
    if isinstance(meta.client_capabilities, UnsetType) or handlers.tool_headers.of(name) is not None:
        return None
    try:
        peer = client_peer(revision, meta.client_capabilities, meta.client_info, engine.limits)
    except RequestError:
        return None
    found = _function(handlers, meta, peer)
    if found is None:
        return None
    handler, params = found
    if not handler.takes_context:
        return DirectCall(handler, params, peer)
    return None if handler.may_wait else _start_with_context(handler, params, open_session(), request, meta, peer)


def start_session_call(session: ServerSession, request: Request, meta: RequestMeta) -> DirectCall | None:
    """Start a call in a session; return None as `start_stateless_call` does."""
    peer = session.peer
    if peer is None or not isinstance(meta.revision, UnsetType) or request.id in session.exchanges:
        return None
    if session.overload() is not None:
        return None
    if session.engine.tasks is not None or not session.has_declared(peer.revision, CALL):
        return None
    found = _function(session.handlers, meta, peer)
    if found is None:
        return None
    handler, params = found
    if not handler.takes_context:
        return DirectCall(handler, params, peer)
    return None if handler.may_wait else _start_with_context(handler, params, session, request, meta, peer)


def _function(handlers: HandlerTable, meta: RequestMeta, peer: Peer) -> tuple[MethodHandler, Struct] | None:
    """Return how the function of a call is called, and its params; None if the call needs the general path."""
    method = handlers.method_handlers(peer.revision).get(CALL)
    if method is None or method.fast_path is None or has_opentelemetry():  # `Connection.serve` opens the span
        return None
    return method.fast_path(meta)


def _start_with_context(  # noqa: PLR0913, PLR0917 (of the functions before)
    handler: MethodHandler, params: Struct, session: ServerSession, request: Request, meta: RequestMeta, peer: Peer
) -> DirectCall:
    exchange = Exchange(open_request(session, request, meta, peer), handler, params, request.params)
    return DirectCall(handler, params, peer, Context(session.engine, session, exchange, peer, None), exchange)


def open_request(session: ServerSession, request: Request, meta: RequestMeta, peer: Peer) -> OpenRequest:
    """Return *request* as an open request of *session*."""
    token, level = meta.progress_token, meta.log_level
    return OpenRequest(session, request.id, peer, token, level, access=session.access)


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
            cancel_task(self._task)

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
