"""What a server asks of its client, in the era in which it may, and what it is answered.

Spec:
    2024-11-05 to 2025-11-25, client/roots, client/sampling, client/elicitation, basic/utilities/ping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError, quoted, sole_exception
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import lacking
from mcpgen.runtime.protocol.envelope import error_json
from mcpgen.runtime.protocol.messages import Code

if TYPE_CHECKING:
    from mcpgen.runtime.client.client_features import RequestHandler
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.protocol.messages import Request, RequestId
    from mcpgen.runtime.transports.spawner import Handle

__all__ = ["BatchResponse", "IncomingRequest", "complete", "fail", "permitted", "stop", "take"]

_EMPTY = b"{}"


class BatchResponse:
    """Gathers the answers to the requests of one batch (2025-03-26), which go back as one batch."""

    def __init__(self) -> None:
        self.open: int = 0
        self.messages: list[bytes] = []
        self.is_complete: bool = False

    def send_if_finished(self, session: ClientSession) -> None:
        """Send them, once everything in the batch is answered."""
        if self.is_complete and not self.open and self.messages:
            messages, self.messages = self.messages, []
            session.answer(envelope.encode_batch(messages))


class IncomingRequest(Struct, eq=False):
    """A request of the server that is being answered.

    Attributes:
        id: Its id.
        method: What is asked.
        handling: How it is answered.
        params: In the terms of home.
        batch: What gathers the answers, if it came in a batch.
        handle: What runs its handler.
    """

    id: RequestId
    method: str
    handling: RequestHandler
    params: Any
    batch: BatchResponse | None = None
    handle: Handle | None = None


def take(session: ClientSession, request: Request, batch: BatchResponse | None) -> None:
    """Answer *request*, or start what will."""
    if session.server is not None and session.server.era == "stateless":
        # 2026-07-28, basic/transports/stdio: a server MUST NOT ask in this way, and a client MUST NOT write responses.
        session.complain("the server may not send the request %s: it is ignored", quoted(request.method))
        return
    try:
        asked = _asked(session, request, batch)
    except RequestError as error:
        _send(session, envelope.encode_error(request.id, error_json(error)), batch)
        return
    if asked is None:
        _send(session, envelope.encode_response(request.id, _EMPTY), batch)
        return
    if batch is not None:
        batch.open += 1
    session.asked[request.id] = asked
    session.running += 1
    session.sink.start(asked)


def _asked(session: ClientSession, request: Request, batch: BatchResponse | None) -> IncomingRequest | None:
    """Return what is to be answered by a handler; None for a ping.

    Raises:
        RequestError: It is refused.
    """
    if request.id in session.asked:
        raise RequestError(Code.INVALID_REQUEST, "another request with this id is open")
    if request.method == "ping":
        return None
    if session.server is None:
        raise RequestError(Code.METHOD_NOT_FOUND, "nothing was agreed on yet")
    if max(session.running, len(session.asked)) >= session.limits.max_in_flight:
        raise RequestError(Code.INTERNAL_ERROR, "too many requests are open")
    handling, params = permitted(session, request.method, request.params)
    return IncomingRequest(request.id, request.method, handling, params, batch)


def permitted(session: ClientSession, method: str, raw: Any) -> tuple[RequestHandler, Any]:
    """Return how a question of the server is answered, and what it asks.

    Raises:
        RequestError: We have not declared that we answer it, or its revision does not allow it.

    Spec:
        2025-11-25, client/roots, client/sampling, client/elicitation, "Error Handling" each: -32601 for what is not
        supported, -32602 for a mode or for tools that were not declared.
    """
    revision = session.revision or ""
    handling = session.offering.handlings(revision).get(method)
    if handling is None or session.us is None:
        raise RequestError(Code.METHOD_NOT_FOUND, f"this client does not answer {quoted(method)}")
    try:
        params = handling.codec.params(raw)
        written: dict[str, Any] = msgspec.json.decode(raw) if isinstance(raw, msgspec.Raw) else {}
    except (InvalidPayload, AdaptationError, msgspec.DecodeError, RecursionError) as error:
        raise RequestError(Code.INVALID_PARAMS, str(error)) from None
    missing = lacking(session.us, method, written)
    if missing is not None:
        whole = method.partition("/")[0] in missing and not any(missing.values())
        code = Code.METHOD_NOT_FOUND if whole else Code.INVALID_PARAMS
        raise RequestError(code, f"this client has not declared {', '.join(_paths(missing))}")
    return handling, params


def _paths(missing: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for key, value in missing.items():
        found += [f"{key}.{rest}" for rest in _paths(value)] if value else [key]
    return found


def complete(session: ClientSession, asked: IncomingRequest, result: Any) -> None:
    """Answer *asked* with what its handler returned.

    Raises:
        InvalidPayload: It is not what home allows.
        AdaptationError: The server's revision cannot express it.
    """
    if session.asked.get(asked.id) is asked:
        _answer(session, asked, envelope.encode_response(asked.id, asked.handling.codec.result(result)))


def fail(session: ClientSession, asked: IncomingRequest, failure: BaseException) -> None:
    """Answer *asked* with what its handler raised."""
    if session.asked.get(asked.id) is not asked:
        return
    failure = sole_exception(failure)
    error = RequestError(Code.INTERNAL_ERROR, "the client failed to handle this request")
    if isinstance(failure, RequestError):
        error = RequestError(failure.code, failure.message, failure.data)
    else:
        session.complain("the handler of %s failed", asked.method, failure=failure)
    try:
        body = _error(asked, error)
    except (InvalidPayload, TypeError, ValueError, RecursionError) as problem:
        session.complain("the error of %s cannot be sent: %s", asked.method, problem)
        body = error_json(RequestError(Code.INTERNAL_ERROR, "the client failed to handle this request"))
    _answer(session, asked, envelope.encode_error(asked.id, body))


def _error(asked: IncomingRequest, error: RequestError) -> bytes:
    try:
        return asked.handling.codec.error(error.code, error.message, error.data)
    except AdaptationError:  # a home without sessions has no such errors; where there are any, they are all alike
        return error_json(error)


def stop(session: ClientSession, asked: IncomingRequest) -> None:
    """Give up *asked*: its server does not want an answer any more, or is gone."""
    session.asked.pop(asked.id, None)
    if asked.handle is not None:
        asked.handle.cancel()
    if asked.batch is not None:
        asked.batch.open -= 1
        asked.batch.send_if_finished(session)


def _answer(session: ClientSession, asked: IncomingRequest, message: bytes) -> None:
    del session.asked[asked.id]
    if asked.batch is not None:
        asked.batch.open -= 1
    _send(session, message, asked.batch)


def _send(session: ClientSession, message: bytes, batch: BatchResponse | None) -> None:
    if batch is None:
        session.answer(message)
        return
    batch.messages.append(message)
    batch.send_if_finished(session)
