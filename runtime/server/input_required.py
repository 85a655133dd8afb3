"""Input from stateless clients: ``InputRequiredResult``, request states and retries.

Theory of operation. The requests of a handler to its client are collected until the handler only waits
(`flush_requests`). Then its open request is answered with all of them and a sealed state, and the exchange is parked.
The client sends its request again with the responses and the state (`resume_parked`), and the handler continues.

If the handler is gone (another process, a restart) and may run again, it does: the sealed state holds the client's
earlier responses. Any other gets an error that says whether the handler was one of this process.

A handler may also return an ``InputRequiredResult`` itself (`send_input_required`). Then it is called again with the
responses in its params.

Spec:
    2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import AdaptationError, RequestError, UnsupportedByPeer
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.exception_groups import joined_unsupported
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.error_mapping import unsupported_error, url_elicitations_fault
from mcpgen.runtime.server.exchange import Exchange, ResponseBody, ServerRequest
from mcpgen.runtime.server.extensions import missing_extension
from mcpgen.runtime.server.parked_requests import TooManyParked
from mcpgen.runtime.server.request_results import check_asks
from mcpgen.runtime.server.request_state import MAX_CONTENT_BYTES, StateRefused, StateTooLarge
from mcpgen.runtime.server.server_requests import flush_soon, note_elicitation_id, read_result, require_capability

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import InputRound, MethodHandler, OpenRequest
    from mcpgen.runtime.server.request_state import RequestStateSealer
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = [
    "expire_parked",
    "flush_requests",
    "forget_parked",
    "process_of_state",
    "resume_parked",
    "send_input_required",
    "send_url_elicitations",
]

_LOG = logging.getLogger("mcpgen.session")

# A client repeats a retry when the response is late, a few times at most.
_MAX_DUPLICATES = 128
_TASKS = "io.modelcontextprotocol/tasks"

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class _State(Struct, frozen=True, omit_defaults=True):
    """The content of a request state: a round, or the state of a handler that returned an ``InputRequiredResult``.

    Attributes:
        token: Names the round.
        process: Names the process that has it.
        own: The handler's state.
        answers: For a replay: the client's earlier responses, by key.
    """

    token: str | None = None
    process: str | None = None
    own: str | None = None
    answers: dict[str, Raw] | None = None


_decode_state = msgspec.json.Decoder(_State).decode


def flush_requests(session: ServerSession, exchange: Exchange) -> None:
    """Answer the open request of *exchange* with the requests of its handler, and park it."""
    exchange.is_flushing = False
    request = exchange.request
    if exchange.has_ended or request is None or not exchange.server_requests:
        return
    engine = session.engine
    exchange.round_count += 1
    if exchange.round_count > engine.limits.max_rounds:
        reason = f"the handler asked for input too often; the limit is {engine.limits.max_rounds} (max_rounds)"
        _fail_requests(exchange, reason)
        return
    token = engine.new_token()
    state = _seal_round(engine, exchange, token)
    try:
        parked = engine.parked.park(token, exchange)
    except TooManyParked:
        reason = (
            "the handler cannot wait for input from the client: too many handlers wait, or with this one they would "
            "keep too many bytes (max_waiting, max_waiting_bytes); ask the client for less at once, or try again later"
        )
        _fail_requests(exchange, reason)
        return
    requests = {key: _input_request(each) for key, each in exchange.server_requests.items()}
    result = msgspec.json.encode({"resultType": "input_required", "inputRequests": requests, "requestState": state})
    session.respond(exchange, ResponseBody(engine.handlers.sign(result, request.peer.revision)))
    exchange.last_peer, exchange.last_access = request.peer, request.access
    exchange.request = None
    exchange.input_round = parked
    request.session.output.expire_later()


def _fail_requests(exchange: Exchange, reason: str) -> None:
    """Fail the requests of a handler, none of which was sent."""
    requests, exchange.server_requests = exchange.server_requests, {}
    for each in requests.values():
        each.fail(RequestError(ErrorCode.INTERNAL_ERROR, reason))


def _input_request(request: ServerRequest) -> dict[str, object]:
    members: dict[str, object] = {"method": request.codec.method}
    if not isinstance(request.params, UnsetType):
        members["params"] = Raw(request.params)
    return members


def _seal_round(engine: Engine, exchange: Exchange, token: str) -> str:
    """Return the request state of a round, with the client's responses so far if the handler may run again."""
    if not exchange.cannot_replay and engine.handlers.may_replay(exchange):
        state = _State(token=token, process=engine.process, answers=exchange.earlier_responses)
        try:
            return _seal(engine, exchange, state)
        except StateTooLarge:
            pass  # without the responses, the exchange can be resumed in this process only
    return _seal(engine, exchange, _State(token=token, process=engine.process))


def _seal(engine: Engine, exchange: Exchange, state: _State) -> str:
    return engine.sealer.seal(msgspec.json.encode(state), **_binding(exchange))


def _binding(exchange: Exchange) -> dict[str, Any]:
    from mcpgen.runtime.server.params_digest import params_digest  # noqa: PLC0415 (it loads OpenSSL and json)

    raw = Raw(b"{}") if isinstance(exchange.raw, UnsetType) else exchange.raw
    method = f"{exchange.peer.revision} {exchange.handler.method}"
    user = "" if exchange.request is None else exchange.request.session.user
    return {"principal": user, "method": method, "digest": params_digest(raw)}


def send_input_required(session: ServerSession, exchange: Exchange, result: Any) -> None:
    """Answer *exchange* with an ``InputRequiredResult`` of its handler, whose state is sealed.

    Raises:
        UnsupportedByPeer: The client has not declared a capability that the requests need.
        AdaptationError: Its revision cannot express the requests.
        RequestError: The method does not allow such a result, the result has no request and no state, or an
            earlier request of the handler has no answer yet.
    """
    request = exchange.request
    if request is None:
        reason = (
            "the handler returned an InputRequiredResult, but its earlier request to the client, such as `elicit`, "
            "has no answer yet; await that first"
        )
        raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
    engine, peer = session.engine, request.peer
    if not exchange.handler.may_request_input:
        reason = f"{exchange.handler.method} does not allow the InputRequiredResult that its handler returned"
        raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
    check_asks(result)
    if result.request_state is not UNSET:
        try:
            state = _seal(engine, exchange, _State(own=result.request_state))
        except StateTooLarge as error:
            reason = f"the handler's InputRequiredResult cannot be sent: {error}"
            raise RequestError(ErrorCode.INTERNAL_ERROR, reason) from error
        result = msgspec.structs.replace(result, request_state=state)
    body = exchange.handler.codec.result(result)
    missing = _missing(peer, _required(msgspec.json.decode(body)))
    if missing is not None:
        raise missing
    session.end(exchange, ResponseBody(engine.handlers.sign(body, peer.revision)))


def send_url_elicitations(session: ServerSession, exchange: Exchange, failure: RequestError) -> bool:
    """Answer a stateless client with the pages that the error *failure* lists; return whether it lists any.

    The handler is called again when the client retries, as it is for a client of 2025-11-25.

    Raises:
        UnsupportedByPeer: The client has not declared that it can send its user to a page.

    Spec:
        2025-11-25, client/elicitation, "URL Elicitation Required Error"; 2026-07-28, changelog, which removed it.
    """
    request, handlers = exchange.request, session.handlers
    code = getattr(handlers.methods(handlers.native_revision).ErrorCode, "URL_ELICITATION_REQUIRED", None)
    data: Any = failure.data
    if request is None or code != failure.code or url_elicitations_fault(handlers.native_revision, data) is not None:
        return False
    try:
        elicitation = codec(handlers.native_revision, request.peer.revision).outgoing_request("elicitation/create")
        pages = [(each, elicitation.params(msgspec.to_builtins(each))) for each in data["elicitations"]]
    except AdaptationError:
        return False  # the error itself is adapted, or refused
    requests: dict[str, object] = {}
    for number, (page, params) in enumerate(pages, 1):
        require_capability(request.peer, elicitation.method, params)  # in either era
        # From what the author wrote, because the params of a stateless client have no id.
        note_elicitation_id(session, msgspec.json.encode(page))
        requests[f"elicitation-{number}"] = _input_request(ServerRequest(elicitation, params, page))
    if request.peer.era == "handshake" or not exchange.handler.may_request_input:
        return False
    result = msgspec.json.encode({"resultType": "input_required", "inputRequests": requests})
    session.end(exchange, ResponseBody(handlers.sign(result, request.peer.revision)))
    return True


def resume_parked(
    session: ServerSession, message: Request, request: OpenRequest, meta: RequestMeta, handler: MethodHandler
) -> None:
    """Continue the exchange whose ``InputRequiredResult`` the retry *request* answers.

    Raises:
        RequestError: Its state is not valid, has expired, or its handler is gone.
        InvalidPayload: Its responses are not valid.
    """
    engine = session.engine
    # A new exchange: bound to the state as the first request was, and started if the handler has to run again.
    exchange = Exchange(request, handler, None, message.params)
    is_waiting = partial(_is_waiting, engine)
    state = _decode_state(engine.sealer.open(str(meta.request_state), **_binding(exchange), is_waiting=is_waiting))
    if state.token is None:
        params = handler.codec.params(message.params)
        exchange.params = msgspec.structs.replace(params, request_state=state.own)
        session.start(exchange)
        return
    responses = _responses(meta.input_responses)
    parked = engine.parked.find(state.token)
    if parked is None:
        exchange.params = handler.codec.params(message.params)
        if state.answers is None or not engine.handlers.may_replay(exchange):
            raise StateRefused(_why_gone(engine, state))
        # Keys that the handler never uses do no harm.
        exchange.earlier_responses = responses | state.answers
        session.start(exchange)
    elif (response := parked.response) is not None:
        _check_repeatable(request.peer, response)
        session.hold(request)
        session.output.reply_in_turn(request, lambda: response)
    elif parked.is_resumed:
        if len(parked.duplicates) >= _MAX_DUPLICATES:
            reason = f"{_MAX_DUPLICATES} requests with this requestState have no response yet; wait for one of them"
            raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
        first = parked.exchange.request
        if first is not None and first.peer.declared != request.peer.declared:
            reason = "a request with this requestState, but with other capabilities, has no response yet; wait for it"
            raise RequestError(ErrorCode.INVALID_PARAMS, reason)
        session.hold(request)
        parked.duplicates.append(request)
        request.on_cancel = partial(parked.duplicates.remove, request)
    else:
        _resume(session, parked, request, responses)


def _check_repeatable(peer: Peer, response: ResponseBody) -> None:
    """Check that *peer*, which repeats a retry, has declared what the *response* to the first one needs.

    Raises:
        RequestError: It has not.
    """
    if b'"input_required"' not in response.json and b'"task"' not in response.json:
        return
    result: dict[str, Any] = msgspec.json.decode(response.json)
    if result.get("resultType") == "task" and _TASKS not in peer.extensions:
        raise missing_extension(peer, _TASKS, "the response to this requestState")
    missing = _missing(peer, _required(result)) if result.get("resultType") == "input_required" else None
    if missing is not None:
        raise unsupported_error(peer, missing)


def _required(result: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the methods and params of the requests in an ``InputRequiredResult``."""
    requests: Mapping[str, Any] = result.get("inputRequests", {})
    return [(each["method"], msgspec.json.encode(each.get("params", {}))) for each in requests.values()]


def _missing(peer: Peer, requests: Iterable[tuple[str, bytes | UnsetType]]) -> UnsupportedByPeer | None:
    """Return what *requests*, methods with params, need and *peer* has not declared; None if it has declared all."""
    missing: list[UnsupportedByPeer] = []
    for method, params in requests:
        try:
            require_capability(peer, method, params)
        except UnsupportedByPeer as error:
            missing.append(error)
    return joined_unsupported(missing) if missing else None


def process_of_state(sealer: RequestStateSealer, state: str) -> str | None:
    """Return the process that a request state names, unverified; None if it names none."""
    try:
        return _decode_state(sealer.unverified(state)).process
    except (StateRefused, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _why_gone(engine: Engine, state: _State) -> Literal["displaced", "ended", "elsewhere"]:
    if state.process != engine.process:
        return "elsewhere"
    return "displaced" if state.token is not None and engine.parked.gave_way(state.token) else "ended"


def _is_waiting(engine: Engine, content: bytes) -> bool:
    token = _decode_state(content).token
    return token is not None and engine.parked.find(token) is not None


def _responses(raw: Raw | UnsetType) -> dict[str, Raw]:
    try:
        return {} if isinstance(raw, UnsetType) else _decode_members(raw)
    except msgspec.DecodeError:
        raise RequestError(ErrorCode.INVALID_PARAMS, "inputResponses must be an object") from None


def _resume(session: ServerSession, parked: InputRound, request: OpenRequest, responses: dict[str, Raw]) -> None:
    """Make *request* the open request of a parked exchange.

    Raises:
        RequestError: It does not answer a request for which its client has not declared the capability.
        InvalidPayload: Its responses are not valid.

    Spec:
        2026-07-28, basic/index, "Statelessness": capabilities are those of each request. So such a retry ends nothing.
    """
    exchange = parked.exchange
    # Decode everything before anything changes: after an invalid retry the client may try again with the same state.
    results = {
        key: read_result(session.engine.reading, each, responses[key])
        for key, each in exchange.server_requests.items()
        if key in responses
    }
    open_requests = [each for key, each in exchange.server_requests.items() if key not in responses]
    missing = _missing(request.peer, [(each.codec.method, each.params) for each in open_requests])
    if missing is not None:
        raise unsupported_error(request.peer, missing)
    session.engine.parked.resume(parked, request.peer)
    exchange.request = request
    exchange.input_round = parked
    session.exchanges[request.id] = exchange
    if exchange.unsent_response is not None:
        session.respond(exchange, exchange.unsent_response)
        return
    _keep(session.engine, exchange, {key: responses[key] for key in results})
    for key, result in results.items():
        exchange.server_requests.pop(key).set_result(result)
    if exchange.server_requests:
        flush_soon(exchange)


def _keep(engine: Engine, exchange: Exchange, responses: Mapping[str, Raw]) -> None:
    """Charge responses, which the handler may keep; keep them if it may run again and a state can hold all of them."""
    exchange.charge(sum(map(decoded_bytes, responses.values())))
    if exchange.cannot_replay or not engine.handlers.may_replay(exchange):
        return
    exchange.earlier_responses |= {key: each.copy() for key, each in responses.items()}
    exchange.charge(sum(len(memoryview(each)) for each in responses.values()))
    if sum(len(memoryview(each)) for each in exchange.earlier_responses.values()) > MAX_CONTENT_BYTES:
        exchange.earlier_responses.clear()
        exchange.cannot_replay = True


def forget_parked(engine: Engine, exchange: Exchange) -> None:
    """Drop a parked exchange whose handler was stopped; a retry is told that its handler has ended."""
    exchange.has_ended = True
    if exchange.input_round is not None:
        engine.parked.forget(exchange.input_round)


def expire_parked(engine: Engine) -> float | None:
    """Stop the exchanges whose client did not retry in time, and drop the expired tasks.

    Returns:
        In how many seconds to call this again; None if there is nothing that could expire.
    """
    for exchange in engine.parked.expire():
        _LOG.info(
            "the handler of %s is cancelled: its client did not send the request again in time", exchange.handler.method
        )
        exchange.abandon()
    of_tasks = None if engine.tasks is None else engine.tasks.seconds_to_expiry()
    seconds = [each for each in (engine.parked.seconds_to_expiry, of_tasks) if each is not None]
    return max(0.0, min(seconds)) if seconds else None
