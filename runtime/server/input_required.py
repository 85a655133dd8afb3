"""Demands for input: how a stateless client is asked, and how it comes back.

Theory of operation. The questions of a handler are gathered until it has nothing more to ask for the moment
(`flush_requests`).
Its open request is answered with all of them and with a sealed token, and the exchange waits. The client sends the
request again with the answers (`resume_parked`), and the handler never knows.

If the handler is gone (another process, a restart), one that may be run twice is run again: the answers it got before
come back in the sealed state. Any other is told that it is too late.

A handler may also make a demand itself (`demand_input`). Then it ends with it, and is run anew with the answers.

Spec:
    2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.errors import AdaptationError, RequestError, UnsupportedByPeer
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.server.exchange import Body, Exchange
from mcpgen.runtime.server.parked_requests import InputRound, NoRoom
from mcpgen.runtime.server.request_state import MAX_CONTENT_BYTES, StateTooLarge, params_digest
from mcpgen.runtime.server.server_requests import ServerRequest, abandon_all, flush_soon, require_capability

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.exchange import Entry, Origin
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.service import HandlerTable

__all__ = ["demand_input", "demand_urls", "expire_parked", "flush_requests", "forget_parked", "resume_parked"]

_LOG = logging.getLogger("mcpgen.session")

# A client that repeats a retry does so because an answer was late, and does so a few times.
_MOST_REPEATS = 128

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class _Sealed(Struct, frozen=True, omit_defaults=True):
    """What the sealed state of a demand holds: a round of ours, or else what the handler itself wants back.

    Attributes:
        token: Names the round.
        own: What the handler wants back.
        answers: For a replay: what was answered before, by key.
    """

    token: str | None = None
    own: str | None = None
    answers: dict[str, Raw] | None = None


_decode_sealed = msgspec.json.Decoder(_Sealed).decode


def flush_requests(exchange: Exchange) -> None:
    """Answer the open request of *exchange* with what its handler asks, and let it wait."""
    exchange.is_flushing = False
    origin = exchange.origin
    if exchange.has_ended or origin is None or not exchange.asks:
        return
    service = origin.session.service
    exchange.rounds += 1
    if exchange.rounds > service.limits.max_rounds:
        _refuse(exchange, "the request has asked for input too often")
        return
    token = service.token()
    state = _seal(service, exchange, _round(service, exchange, token))
    try:
        parked = service.waiting.park(token, exchange)
    except NoRoom:
        _refuse(exchange, "too many requests wait for input")
        return
    requests = {key: _input_request(question) for key, question in exchange.asks.items()}
    result = msgspec.json.encode({"resultType": "input_required", "inputRequests": requests, "requestState": state})
    body = Body(service.sign(result, origin.peer.revision))
    origin.session.answer(exchange, body)
    exchange.last_peer = origin.peer
    exchange.origin = None
    exchange.round = parked
    origin.session.sink.expire_later()


def _refuse(exchange: Exchange, reason: str) -> None:
    """Let none of the open questions be asked."""
    questions = list(exchange.asks.values())
    exchange.asks.clear()
    for each in questions:
        each.fail(RequestError(Code.INTERNAL_ERROR, reason))


def _input_request(question: ServerRequest) -> dict[str, object]:
    members: dict[str, object] = {"method": question.codec.method}
    if not isinstance(question.params, UnsetType):
        members["params"] = Raw(question.params)
    return members


def _round(service: HandlerTable, exchange: Exchange, token: str) -> _Sealed:
    if exchange.is_forgetful or not service.may_replay(exchange):
        return _Sealed(token=token)
    return _Sealed(token=token, answers=exchange.answers)


def _seal(service: HandlerTable, exchange: Exchange, sealed: _Sealed) -> str:
    try:
        return service.sealer.seal(msgspec.json.encode(sealed), **_binding(exchange))
    except StateTooLarge:
        # Without the answers the handler can go on where it waits, and nowhere else.
        return service.sealer.seal(msgspec.json.encode(_Sealed(token=sealed.token)), **_binding(exchange))


def _binding(exchange: Exchange) -> dict[str, Any]:
    raw = Raw(b"{}") if isinstance(exchange.raw, UnsetType) else exchange.raw
    method = f"{exchange.peer.revision} {exchange.entry.method}"
    user = "" if exchange.origin is None else exchange.origin.session.user
    return {"principal": user, "method": method, "digest": params_digest(raw)}


def demand_input(exchange: Exchange, result: Any) -> None:
    """Answer *exchange* with a demand for input that its handler made itself; what it wants back is sealed.

    Raises:
        UnsupportedByPeer: The client has not declared that it can answer.
        AdaptationError: Its revision cannot express the demand.
        RequestError: The handler may not make demands, or makes an empty one.
    """
    origin = exchange.origin
    if origin is None:
        raise RequestError(Code.INTERNAL_ERROR, "the handler demands input while it waits for some")
    service, peer = origin.session.service, origin.peer
    if not exchange.entry.may_ask:
        raise RequestError(Code.INTERNAL_ERROR, f"the result of {exchange.entry.method} cannot be a demand for input")
    if result.request_state is UNSET and not result.input_requests:
        raise RequestError(Code.INTERNAL_ERROR, "the handler demands input without saying what")
    if result.request_state is not UNSET:
        own = msgspec.json.encode(_Sealed(own=result.request_state))
        try:
            state = service.sealer.seal(own, **_binding(exchange))
        except StateTooLarge as error:
            raise RequestError(Code.INTERNAL_ERROR, f"the handler demands {error}") from error
        result = msgspec.structs.replace(result, request_state=state)
    body = exchange.entry.codec.result(result)
    for each in msgspec.json.decode(body).get("inputRequests", {}).values():
        require_capability(peer, each["method"], msgspec.json.encode(each.get("params", {})))
    origin.session.end(exchange, Body(service.sign(body, peer.revision)))


def demand_urls(exchange: Exchange, failure: RequestError) -> bool:
    """Demand that the user visits the pages which the error *failure* lists, if it does so and the client is stateless.

    The handler is run anew when the client comes back, as it would be by a client of 2025-11-25.

    Raises:
        UnsupportedByPeer: The client has not declared that it can send its user to a page.

    Spec:
        2025-11-25, client/elicitation, "URL Elicitation Required Error"; 2026-07-28, changelog, which removed it.
    """
    origin, entry = exchange.origin, exchange.entry
    if origin is None:
        return False
    service = origin.session.service
    code = getattr(service.methods(service.native_revision).ErrorCode, "URL_ELICITATION_REQUIRED", None)
    data: Any = failure.data
    if code != failure.code or not is_object(data) or not data.get("elicitations"):
        return False
    try:
        way = codec(service.native_revision, origin.peer.revision).ask("elicitation/create")
    except AdaptationError:
        return False  # the error itself will be adapted, or refused
    requests: dict[str, object] = {}
    for number, page in enumerate(data["elicitations"], 1):
        params = way.params(msgspec.to_builtins(page))
        require_capability(origin.peer, way.method, params)  # whichever way it is told
        requests[f"elicitation-{number}"] = _input_request(ServerRequest(way, params, page))
    if origin.peer.era == "handshake" or not entry.may_ask:
        return False
    result = msgspec.json.encode({"resultType": "input_required", "inputRequests": requests})
    origin.session.end(exchange, Body(service.sign(result, origin.peer.revision)))
    return True


def resume_parked(session: ServerSession, request: Request, origin: Origin, meta: RequestMeta, entry: Entry) -> None:
    """Go on with the exchange whose demand for input *request* answers.

    Raises:
        RequestError: Its state is not valid, has expired, or its handler is gone.
        InvalidPayload: Its answers are not.
    """
    service = session.service
    probe = Exchange(origin, entry, None, request.params)
    sealed = _decode_sealed(service.sealer.open(str(meta.request_state), **_binding(probe)))
    if sealed.token is None:
        params = entry.codec.params(request.params)
        probe.params = msgspec.structs.replace(params, request_state=sealed.own)
        session.start(probe)
        return
    responses = _responses(meta.input_responses)
    found = service.waiting.find(sealed.token)
    if found is None:
        probe.params = entry.codec.params(request.params)
        if sealed.answers is None or not service.may_replay(probe):
            raise RequestError(Code.INVALID_PARAMS, "The requestState has expired; send the request without it")
        # Answers to what was never asked have keys that no question will have.
        probe.answers = responses | sealed.answers
        session.start(probe)
    elif found.body is not None:
        session.reply(origin, found.body)
    elif found.is_taken:
        if len(found.others) >= _MOST_REPEATS:
            raise RequestError(Code.INTERNAL_ERROR, "the same requestState came too often")
        session.exchanges[origin.id] = origin
        found.others.append(origin)
        origin.on_drop = partial(found.others.remove, origin)
    else:
        _take_up(session, found, origin, responses)


def _responses(raw: Raw | UnsetType) -> dict[str, Raw]:
    try:
        return {} if isinstance(raw, UnsetType) else _decode_members(raw)
    except msgspec.DecodeError:
        raise RequestError(Code.INVALID_PARAMS, "inputResponses is not an object") from None


def _take_up(session: ServerSession, found: InputRound, origin: Origin, responses: dict[str, Raw]) -> None:
    """Let *origin* be the open request of the exchange that waits in *found*."""
    exchange = found.exchange
    # Read all before anything changes: a client that sent nonsense may come back with the same state.
    read = {key: each.read(responses[key]) for key, each in exchange.asks.items() if key in responses}
    found.is_taken = True
    exchange.origin = origin
    exchange.round = found
    session.exchanges[origin.id] = exchange
    if exchange.early is not None:
        session.answer(exchange, exchange.early)
        return
    for key, result in read.items():
        question = exchange.asks.pop(key)
        _remember(session.service, exchange, key, responses[key])
        question.settle(result)
    for key, question in list(exchange.asks.items()):
        try:
            require_capability(origin.peer, question.codec.method, question.params)
        except UnsupportedByPeer as error:
            del exchange.asks[key]
            question.fail(error)
    if exchange.asks:
        flush_soon(exchange)


def forget_parked(service: HandlerTable, exchange: Exchange) -> None:
    """Give up an exchange that waits, since nobody can go on with it here; a retry finds that it has expired."""
    exchange.has_ended = True
    if exchange.round is not None:
        service.waiting.forget(exchange.round)


def _remember(service: HandlerTable, exchange: Exchange, key: str, answer: Raw) -> None:
    """Keep an answer for a replay, if there can be one: if the handler allows it, and a state can hold them all."""
    if not exchange.is_forgetful and service.may_replay(exchange):
        exchange.answers[key] = Raw(bytes(answer))
        if sum(len(memoryview(each)) for each in exchange.answers.values()) > MAX_CONTENT_BYTES:
            exchange.answers.clear()
            exchange.is_forgetful = True


def expire_parked(service: HandlerTable) -> float | None:
    """Give up the exchanges that nobody came back to in time, and drop the tasks whose time is over.

    Returns:
        In how many seconds there will be more to do; None if there is nothing that could expire.
    """
    for exchange in service.waiting.expire():
        _LOG.info("nobody came back to %s", exchange.entry.method)
        exchange.has_ended = True
        abandon_all(exchange)
        if exchange.handle is not None:
            exchange.handle.cancel()
    deadlines: list[float] = []
    if service.waiting.deadline is not None:
        deadlines.append(service.waiting.deadline - service.clock())
    following = None if service.tasking is None else service.tasking.expire()
    if following is not None:
        deadlines.append(following - service.wall_clock())
    return max(0.0, min(deadlines)) if deadlines else None
