"""Wait for a client: until it reads, and for its answers to the requests of a server."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.lowlevel
import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError, UnsupportedByPeer, seconds_text
from mcpgen.runtime.protocol.exception_groups import joined_unsupported
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.exchange import RequestEnded
from mcpgen.runtime.server.functions.worker_threads import WORK
from mcpgen.runtime.server.server_requests import prepare_request, send_prepared

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpgen.runtime.server.exchange import Exchange, ServerRequest
    from mcpgen.runtime.server.notification_run import NotificationRun
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["check_asks", "collect_input", "request_result", "wait_for_client", "wait_for_requests"]

# How many requests of one handler are made at once. A function may ask for each item of a list that its client has
# sent, in a task of its own; each request takes 0.1 ms.
_MAX_AT_ONCE: Final = 100

# How many turns of the event loop later a handler has failed if one of its requests is refused: its task group must end
# the task of that request, then those of the others, then itself.
_FAILURE_TURNS: Final = 8

T = TypeVar("T")


def check_asks(result: Any) -> None:
    """Check that an ``InputRequiredResult`` has requests or a state.

    Raises:
        RequestError: It has neither.

    Spec:
        2026-07-28, basic/patterns/mrtr, "Server Requirements": a server MUST include at least one of them.
    """
    if result.request_state is UNSET and not result.input_requests:
        reason = (
            "the handler returned an InputRequiredResult without `input_requests` and `request_state`; set one of them"
        )
        raise RequestError(ErrorCode.INTERNAL_ERROR, reason)


async def wait_for_client(wait: Callable[[], Awaitable[T]], give_way: Callable[[], object] = lambda: None) -> T:
    """Return the result of *wait*, which waits for the client. A plain function may have to give way or end meanwhile.

    Args:
        wait: Called without arguments.
        give_way: Called in the event loop before *wait* is cancelled because the function gives way.

    Raises:
        RequestError: The function gave way.
        RequestEnded: The server ends.
    """
    work = WORK.get()
    if work is None:
        return await wait()
    scope = anyio.CancelScope()

    def end() -> None:
        give_way()
        scope.cancel()

    with scope, work.threads.asking(work, end):
        return await wait()
    if work.threads.is_ending:
        raise RequestEnded("the request is over: the server ends")
    raise RequestError(
        ErrorCode.INTERNAL_ERROR,
        "the function waited for its client while all threads of the server were in use (max_threads), so the server "
        "ended this wait to serve another client; try again later, or write the function as `async def`, which waits "
        "without a thread",
    )


async def request_result(  # noqa: PLR0913 (what asks, and what is asked)
    session: ServerSession,
    exchange: Exchange | None,
    method: str,
    params: Any,
    *,
    terms: str,
    run: NotificationRun | None = None,
) -> Any:
    """Send a request to the client, and return the result; *run* is that of the handler, if it has no exchange.

    For the other arguments and what is raised, see `mcpgen.runtime.server.server_requests`.
    """
    if exchange is not None and len(exchange.server_requests) >= _MAX_AT_ONCE:
        request = exchange.request
        exchange.delayed_requests += 1
        try:
            await (session if request is None else request.session).output.wait_turn()
        finally:
            exchange.delayed_requests -= 1
    task = None if exchange is None else exchange.task
    with nullcontext() if task is None else task.awaiting_input():
        question = prepare_request(session, exchange, method, params, terms=terms)
        question.keep = None if run is None else run.keep_answer
        send_prepared(session, exchange, question)
        return await _wait_result(session, exchange, question)


async def wait_for_requests(exchange: Exchange) -> None:
    """Wait until the handler of *exchange* has had time to make all its requests, or `_MAX_AT_ONCE` of many."""
    # One turn of the event loop: a handler that makes several requests in a task each has then made all of them.
    await anyio.lowlevel.checkpoint()
    for _ in range(_FAILURE_TURNS if exchange.lacks_capability else 0):
        await anyio.lowlevel.checkpoint()
    # On a busy machine, few of many have a turn at a time. A round for each few would be more rounds than a handler may
    # have (`Limits.max_rounds`).
    while exchange.delayed_requests and len(exchange.server_requests) < _MAX_AT_ONCE:
        await anyio.lowlevel.checkpoint()


async def _wait_result(session: ServerSession, exchange: Exchange | None, request: ServerRequest) -> Any:
    """Wait for the result of a request to the client; withdraw it if the wait ends before."""
    if not request.is_done:
        done = anyio.Event()
        request.on_done = done.set
        # A parked exchange expires by itself; until then, a stateless client may retry.
        peer = session.peer if exchange is None else exchange.peer
        is_stateless = peer is not None and peer.era == "stateless"
        try:
            with anyio.move_on_after(math.inf if is_stateless else session.limits.answer_seconds):
                await wait_for_client(done.wait, partial(_displace, session, exchange))
        finally:
            if not request.is_done:
                session.withdraw(request, exchange)
        if not request.is_done:
            limit = seconds_text(session.limits.answer_seconds)
            raise RequestError(ErrorCode.INTERNAL_ERROR, f"the client did not answer within {limit}")
    return request.result()


def _displace(session: ServerSession, exchange: Exchange | None) -> None:
    """Stop *exchange* if it is parked. Any other answers its request, with the error that its function gets."""
    parked = None if exchange is None or exchange.has_ended or exchange.request is not None else exchange.input_round
    if parked is not None:
        session.engine.parked.displace(parked)


async def collect_input(session: ServerSession, exchange: Exchange, result: Any) -> Any:
    """Send the requests of an ``InputRequiredResult`` by themselves, and return the params of a retry with the answers.

    A client of a handshake gets them as messages, and a client of a task in ``tasks/get``.

    Raises:
        UnsupportedByPeer: The client cannot answer all of them.
        RequestError: It refuses, or *result* has nothing to answer.
    """
    check_asks(result)
    wanted: Mapping[str, Any] = {} if isinstance(result.input_requests, UnsetType) else result.input_requests
    native_revision = session.handlers.native_revision
    requests: dict[str, ServerRequest] = {}
    missing: list[UnsupportedByPeer] = []
    for key, each in wanted.items():
        try:
            params = getattr(each, "params", UNSET)
            requests[key] = prepare_request(session, exchange, each.method, params, terms=native_revision)
        except UnsupportedByPeer as error:
            missing.append(error)
    if missing:  # the user must not answer questions in vain
        raise joined_unsupported(missing)
    try:
        with nullcontext() if exchange.task is None else exchange.task.awaiting_input():
            for request in requests.values():
                send_prepared(session, exchange, request)
            responses = {key: await _wait_result(session, exchange, request) for key, request in requests.items()}
    finally:
        for request in requests.values():
            session.withdraw(request, exchange)
    return msgspec.structs.replace(exchange.params, input_responses=responses, request_state=result.request_state)
