"""Wait for what a client answers to the requests of a server."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError, UnsupportedByPeer, seconds_text
from mcpgen.runtime.protocol.exception_groups import joined_unsupported
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.server_requests import prepare_request, send_prepared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.server.exchange import Exchange, ServerRequest
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["check_asks", "collect_input", "wait_result"]


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


async def wait_result(session: ServerSession, exchange: Exchange | None, request: ServerRequest) -> Any:
    """Wait for the result of a request to the client; withdraw it if the wait ends before."""
    if not request.is_done:
        done = anyio.Event()
        request.on_done = done.set
        # A parked exchange expires by itself; until then, a stateless client may retry.
        peer = session.peer if exchange is None else exchange.peer
        is_stateless = peer is not None and peer.era == "stateless"
        try:
            with anyio.move_on_after(math.inf if is_stateless else session.limits.answer_seconds):
                await done.wait()
        finally:
            if not request.is_done:
                session.withdraw(request, exchange)
        if not request.is_done:
            limit = seconds_text(session.limits.answer_seconds)
            raise RequestError(ErrorCode.INTERNAL_ERROR, f"the client did not answer within {limit}")
    return request.result()


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
            responses = {key: await wait_result(session, exchange, request) for key, request in requests.items()}
    finally:
        for request in requests.values():
            session.withdraw(request, exchange)
    return msgspec.structs.replace(exchange.params, input_responses=responses, request_state=result.request_state)
